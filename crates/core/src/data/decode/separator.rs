//! The bytes between two values of a body: commas, brackets, white space, a member's name and its
//! colon. Bytes that were parsed once are valid again between two values of the same members. They
//! are only compared, thirty-two at once.

/// Longer separators are not stored. A page's indentation takes a few dozen bytes.
const LONGEST: usize = 256;
/// The number of bytes compared at once.
const WINDOW: usize = 32;

#[derive(Debug, Clone)]
pub(super) struct Separator {
    head: Half,
    tail: Half,
    length: usize,
    /// The bytes after the window.
    rest: Vec<u8>,
}

/// Sixteen bytes, and a mask of the bytes to compare.
#[derive(Debug, Clone, Copy)]
struct Half {
    bytes: u128,
    mask: u128,
}

impl Half {
    fn new(text: &[u8]) -> Self {
        let (mut bytes, mut mask) = ([0; WINDOW / 2], [0; WINDOW / 2]);
        bytes[..text.len()].copy_from_slice(text);
        mask[..text.len()].fill(0xFF);
        Self { bytes: u128::from_le_bytes(bytes), mask: u128::from_le_bytes(mask) }
    }

    #[inline]
    fn matches(self, bytes: [u8; WINDOW / 2]) -> bool {
        u128::from_le_bytes(bytes) & self.mask == self.bytes
    }
}

impl Separator {
    /// `None` for an empty or too long separator.
    pub(super) fn new(text: &[u8]) -> Option<Self> {
        if text.is_empty() || text.len() > LONGEST {
            return None;
        }
        let (window, rest) = text.split_at(text.len().min(WINDOW));
        let (head, tail) = window.split_at(window.len().min(WINDOW / 2));
        let (head, tail) = (Half::new(head), Half::new(tail));
        Some(Self { head, tail, length: text.len(), rest: rest.to_vec() })
    }

    /// The offset after this separator, if it is at `at` and far enough from the end of the body.
    #[inline]
    pub(super) fn match_at(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let window = bytes.get(at..)?.first_chunk::<WINDOW>()?;
        if !self.head.matches(*window.first_chunk()?) {
            return None;
        }
        let end = at + self.length;
        if self.length > WINDOW / 2 && !self.tail.matches(*window.last_chunk()?) {
            return None;
        }
        let same = self.length <= WINDOW || bytes.get(at + WINDOW..end)? == self.rest;
        same.then_some(end)
    }
}
