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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_texts_are_recognised_and_others_are_not() {
        let mut ids = IdentityTexts::default();
        assert!(ids.take(b"\"a\"").is_none());
        let keys = ["a", "b", "c", "a", "b"].map(|text| ids.key(text));
        assert_eq!(keys, [0, 1, 2, 0, 1]);
        assert_eq!(ids.take(b"\"c\","), Some((2, 3)));
        assert_eq!(ids.take(b"\"c\","), Some((2, 3)));
        for body in [b"\"cc\"".as_slice(), b"\"c", b"c\"", b"\"\"", b"", b"\"\\u0063\""] {
            assert_eq!(ids.take(body), None);
        }
        let mut ids = IdentityTexts::default();
        ids.key("q\"");
        assert_eq!(ids.take(b"\"q\"\""), None);
        assert_eq!(&**ids.text(0), "q\"");
    }
}
