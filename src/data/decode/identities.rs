//! The ids of a page's series: each text is kept once, under a number.

use std::collections::HashMap;
use std::sync::Arc;

use super::string::is_plain;

/// The distinct texts of one of the five ids on a page, numbered. An envelope mostly has the id of the
/// one before it, or the id that followed that one last time: these two are compared in place.
#[derive(Default)]
pub(super) struct IdentityTexts {
    texts: Vec<IdText>,
    known: HashMap<Arc<str>, i32>,
    last: usize,
}

/// One text.
struct IdText {
    shared: Arc<str>,
    /// JSON writes it without escapes.
    plain: bool,
    /// The text that followed it last.
    next: usize,
}

impl IdentityTexts {
    /// The key of the string at the start of `bytes` and its length with its quotes, if it is one
    /// of the two that are tried.
    #[inline]
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<(i32, usize)> {
        let bytes = bytes.strip_prefix(b"\"")?;
        let last = self.texts.get(self.last)?;
        for place in [last.next, self.last] {
            let IdText { shared: text, plain, .. } = &self.texts[place];
            if *plain && bytes.starts_with(text.as_bytes()) && bytes.get(text.len()) == Some(&b'"')
            {
                let length = text.len() + 2;
                return Some((self.follow(place), length));
            }
        }
        None
    }

    /// The key of a text.
    pub(super) fn key(&mut self, text: &str) -> i32 {
        let place = match self.known.get(text) {
            Some(key) => usize::try_from(*key).unwrap_or_default(),
            None => self.add(text),
        };
        self.follow(place)
    }

    fn follow(&mut self, place: usize) -> i32 {
        self.texts[self.last].next = place;
        self.last = place;
        key(place)
    }

    fn add(&mut self, text: &str) -> usize {
        let place = self.texts.len();
        let shared: Arc<str> = Arc::from(text);
        self.known.insert(Arc::clone(&shared), key(place));
        self.texts.push(IdText { shared, plain: is_plain(text), next: place });
        place
    }

    /// The text of a key that [`IdentityTexts::key`] gave.
    pub(super) fn text(&self, key: i32) -> &Arc<str> {
        &self.texts[usize::try_from(key).unwrap_or_default()].shared
    }
}

/// A body of less than 2 GiB holds no more texts than that.
fn key(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_predicted_by_those_before_them_and_never_mistaken() {
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
