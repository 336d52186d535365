//! The ids of a page's series. Each distinct text is stored once, with a number.

use std::collections::HashMap;
use std::sync::Arc;

use super::string::is_plain;

/// The numbered distinct texts of one of the five ids. An envelope usually has the id of the
/// previous one, or the id that followed that one last time. These two are compared in place.
#[derive(Default)]
pub(super) struct IdentityTexts {
    texts: Vec<IdText>,
    known: HashMap<Arc<str>, i32>,
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
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<(i32, usize)> {
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

    pub(super) fn key(&mut self, text: &str) -> i32 {
        let index = match self.known.get(text) {
            Some(key) => usize::try_from(*key).unwrap_or_default(),
            None => self.add(text),
        };
        self.follow(index)
    }

    fn follow(&mut self, index: usize) -> i32 {
        self.texts[self.last].next = index;
        self.last = index;
        key(index)
    }

    fn add(&mut self, text: &str) -> usize {
        let index = self.texts.len();
        let shared: Arc<str> = Arc::from(text);
        self.known.insert(Arc::clone(&shared), key(index));
        self.texts.push(IdText { shared, plain: is_plain(text), next: index });
        index
    }

    pub(super) fn text(&self, key: i32) -> &Arc<str> {
        &self.texts[usize::try_from(key).unwrap_or_default()].shared
    }
}

/// Cannot overflow, because a body has less than 2 GiB and so fewer texts.
fn key(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}
