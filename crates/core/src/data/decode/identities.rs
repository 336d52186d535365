//! The ids of a page's series. Each distinct text is stored once, with a number.

use std::collections::HashMap;
use std::sync::Arc;

use super::string::is_plain;

/// The numbered distinct texts of one of the five ids. An envelope usually has the id of the
/// previous one, or the id that followed that one last time. These two are compared in place.
#[derive(Default)]
pub(super) struct IdentityTexts {
    texts: Vec<IdText>,
    known: HashMap<Arc<str>, usize>,
    last: usize,
}

struct IdText {
    shared: Arc<str>,
    /// Whether it needs no escapes in JSON.
    plain: bool,
    /// The text that followed it last time.
    next: usize,
}

impl IdentityTexts {
    /// The key and quoted length of the string at the start of `bytes`, if it is one of the two
    /// expected ones.
    #[inline]
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<(usize, usize)> {
        let bytes = bytes.strip_prefix(b"\"")?;
        let last = self.texts.get(self.last)?;
        for index in [last.next, self.last] {
            let IdText { shared: text, plain, .. } = &self.texts[index];
            if *plain && bytes.starts_with(text.as_bytes()) && bytes.get(text.len()) == Some(&b'"')
            {
                let length = text.len() + 2;
                return Some((self.follow(index), length));
            }
        }
        None
    }

    pub(super) fn key(&mut self, text: &str) -> usize {
        let known = self.known.get(text).copied();
        let index = known.unwrap_or_else(|| self.add(text));
        self.follow(index)
    }

    fn follow(&mut self, index: usize) -> usize {
        self.texts[self.last].next = index;
        self.last = index;
        index
    }

    fn add(&mut self, text: &str) -> usize {
        let index = self.texts.len();
        let shared: Arc<str> = Arc::from(text);
        self.known.insert(Arc::clone(&shared), index);
        self.texts.push(IdText { shared, plain: is_plain(text), next: index });
        index
    }

    pub(super) fn text(&self, key: usize) -> &Arc<str> {
        &self.texts[key].shared
    }
}
