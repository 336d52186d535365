//! A sealed position in a read, from which another process can continue. It is rejected if it was
//! edited, or belongs to another query, host or subject. It contains cursors, so it is a secret.
//! The seal is a checksum against damage and mistakes, not forgery.
//!
//! Layout: every version keeps the magic, the version byte and the SHA-256 at the end, so that
//! another siteline can tell a version from damage. The JSON in between is a [`Sealed`].
//!
//! ```text
//! "SLBM" version:u8 json sha256:[u8;32]
//! ```

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::cursor::{Cursor, CursorHash};
use super::query::Query;
use crate::error::{Error, Kind, Result};
use crate::lock::Mutex;

const MAGIC: &[u8; 4] = b"SLBM";
const VERSION: u8 = 3;
const SEAL_LENGTH: usize = 32;
/// The latest cursor hashes of a chain are kept.
const SEEN_KEPT: usize = 1_024;

/// Far above any chain. It keeps a forged bookmark from overflowing a count.
const MOST_PAGES: u64 = 1 << 48;

/// The beginning of an append-only list in order of arrival. The list is shared, so the bookmark of
/// a page holds a pointer, not a copy.
#[derive(Debug, Clone)]
pub(crate) struct Log<T> {
    list: Arc<Mutex<Vec<T>>>,
    count: usize,
}

impl<T: Clone> Log<T> {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Called only on the longest one.
    pub(super) fn push(&mut self, item: T) {
        self.list.lock().push(item);
        self.count += 1;
    }

    /// The last items, at most this many.
    pub(crate) fn last(&self, most: usize) -> Vec<T> {
        self.list.lock()[self.count.saturating_sub(most)..self.count].to_vec()
    }
}

impl<T> From<Vec<T>> for Log<T> {
    fn from(list: Vec<T>) -> Self {
        Self { count: list.len(), list: Arc::new(Mutex::new(list)) }
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WholeChain {
    pub(crate) query: [u8; 32],
    pub(crate) pages: u64,
}

#[derive(Clone)]
pub(crate) struct Mark {
    pub(super) query: [u8; 32],
    /// The number of the next page.
    pub(super) sequence: u64,
    /// Includes the pages before a resumption.
    pub(crate) pages: u64,
    pub(crate) page_size: Option<u32>,
    pub(super) cursor: Cursor,
    pub(super) seen: Log<CursorHash>,
}

/// The bounds that a resumed scan with the same form copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fixed {
    /// Of the query and the form of its bounds.
    pub(crate) form: [u8; 32],
    pub(crate) start: Option<Timestamp>,
    pub(crate) end: Option<Timestamp>,
}

/// The read that a bookmark belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// Hash of base URL and subject.
    pub(crate) origin: [u8; 32],
    /// Hash of the query, or of the queries of all chains.
    pub(crate) query: [u8; 32],
    /// `None` for a chain of a feed.
    pub(crate) fixed: Option<Fixed>,
}

/// The contents of a bookmark.
#[derive(Serialize, Deserialize)]
struct Sealed {
    owner: Owner,
    whole: Vec<WholeChain>,
    marks: Vec<SealedMark>,
}

#[derive(Serialize, Deserialize)]
struct SealedMark {
    query: [u8; 32],
    sequence: u64,
    pages: u64,
    page_size: Option<u32>,
    cursor: String,
    /// The latest hashes, in base64.
    seen: String,
}

/// Chains that are not in it have not begun.
#[derive(Clone)]
pub struct Bookmark {
    pub(crate) owner: Owner,
    pub(crate) marks: Vec<Mark>,
    pub(crate) whole: Log<WholeChain>,
}

impl Mark {
    /// Oldest first.
    pub(super) fn seen_hashes(&self) -> Vec<CursorHash> {
        self.seen.last(SEEN_KEPT)
    }

    fn sealed(&self) -> SealedMark {
        SealedMark {
            query: self.query,
            sequence: self.sequence,
            pages: self.pages,
            page_size: self.page_size,
            cursor: self.cursor.secret().to_owned(),
            seen: URL_SAFE_NO_PAD.encode(self.seen_hashes().as_flattened()),
        }
    }

    fn unsealed(sealed: SealedMark) -> Option<Self> {
        let SealedMark { query, sequence, pages, page_size, cursor, seen } = sealed;
        let hashes = URL_SAFE_NO_PAD.decode(seen).ok()?;
        let (cursor, seen) = (Cursor::new(&cursor), hashes.as_chunks::<16>().0.to_vec().into());
        Some(Self { query, sequence, pages, page_size, cursor, seen })
    }
}

impl Bookmark {
    pub fn pages(&self) -> u64 {
        let marks = self.marks.iter().map(|mark| mark.pages);
        marks.chain(self.whole().iter().map(|chain| chain.pages)).sum()
    }

    pub(crate) fn whole(&self) -> Vec<WholeChain> {
        self.whole.last(usize::MAX)
    }

    pub(crate) fn mark(&self, query: &Query) -> Option<&Mark> {
        let query = query.fingerprint();
        self.marks.iter().find(|mark| mark.query == query)
    }

    /// Identifies the partial table that ends here.
    pub fn digest(&self) -> [u8; 32] {
        self.to_bytes().last_chunk().copied().unwrap_or_default()
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let marks = self.marks.iter().map(Mark::sealed).collect();
        let sealed = Sealed { owner: self.owner, whole: self.whole(), marks };
        // Text and integers always serialise.
        let json = serde_json::to_vec(&sealed).unwrap_or_default();
        let mut bytes = [MAGIC, &[VERSION][..], &json].concat();
        bytes.extend_from_slice(digest::digest(&digest::SHA256, &bytes).as_ref());
        bytes
    }

    /// Returns `BookmarkError` for damaged bytes, and for those of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.get(..4) != Some(MAGIC) || bytes.len() < 5 + SEAL_LENGTH {
            return Err(Error::new(Kind::BookmarkError, "This is not a siteline bookmark."));
        }
        let (sealed, seal) = bytes.split_at(bytes.len() - SEAL_LENGTH);
        if digest::digest(&digest::SHA256, sealed).as_ref() != seal {
            return Err(damaged());
        }
        match sealed[4] {
            VERSION => Self::unsealed(&sealed[5..]).ok_or_else(damaged),
            0 => Err(damaged()),
            other => Err(Error::new(
                Kind::BookmarkError,
                format!("Another siteline made this bookmark (version {other}, not {VERSION})."),
            )
            .with_hint("Use that siteline, or read the range again from its start.")),
        }
    }

    fn unsealed(json: &[u8]) -> Option<Self> {
        let Sealed { owner, whole, marks } = serde_json::from_slice(json).ok()?;
        let marks: Vec<Mark> = marks.into_iter().map(Mark::unsealed).collect::<Option<_>>()?;
        let numbers = marks.iter().flat_map(|mark| [mark.sequence, mark.pages]);
        let mut numbers = numbers.chain(whole.iter().map(|chain| chain.pages));
        // For this many chains and pages the sum fits into 64 bits.
        let is_plausible =
            numbers.all(|number| number <= MOST_PAGES) && marks.len() + whole.len() < 1 << 15;
        is_plausible.then(|| Self { owner, marks, whole: whole.into() })
    }

    pub(crate) fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.to_bytes())
    }

    /// Parses base64url text, with white space around it.
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim().trim_end_matches('='))
            .map_err(|_| Error::new(Kind::BookmarkError, "This is not a siteline bookmark."))?;
        Self::from_bytes(&bytes)
    }

    /// Returns `BookmarkError` for another query, host or subject.
    pub(crate) fn check(&self, origin: [u8; 32], query: [u8; 32]) -> Result<()> {
        if self.owner.origin != origin {
            return Err(Error::new(
                Kind::BookmarkError,
                "This bookmark belongs to another host or subject.",
            )
            .with_hint(
                "Resume with the client that made it, or one with the same base URL and subject.",
            ));
        }
        if self.owner.query != query {
            return Err(Error::new(Kind::BookmarkError, "This bookmark belongs to another query.")
                .with_hint("Use the same parameters. Compare scan.query of both scans."));
        }
        Ok(())
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mark({} after {} pages)", self.cursor, self.pages)
    }
}

impl fmt::Debug for Bookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cursors: Vec<String> = self.marks.iter().map(|mark| mark.cursor.to_string()).collect();
        write!(f, "Bookmark({} after {} pages)", cursors.join(" "), self.pages())
    }
}

fn damaged() -> Error {
    Error::new(Kind::BookmarkError, "This bookmark was edited or damaged.")
        .with_hint("Read the range again from its start.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::query::{QueryInput, origin_fingerprint};
    use crate::http::test_server::assert_error;

    fn query(site: &str) -> Query {
        Query::new(QueryInput { site: vec![site.to_owned()], ..QueryInput::default() }).unwrap()
    }

    fn mark(site: &str, seen: usize) -> Mark {
        let hashes = (0..seen).map(|n| Cursor::new(&n.to_string()).hash()).collect();
        Mark {
            query: query(site).fingerprint(),
            sequence: 7,
            pages: 7,
            page_size: Some(9),
            cursor: Cursor::new("sécret/+="),
            seen: Vec::into(hashes),
        }
    }

    fn bookmark(seen: usize) -> Bookmark {
        let origin = origin_fingerprint("https://a.example subject");
        let owner = Owner { origin, query: query("S1").fingerprint(), fixed: None };
        Bookmark { owner, marks: vec![mark("S1", seen)], whole: Vec::new().into() }
    }

    /// A bookmark of a scan with one complete chain and two others.
    fn of_scan() -> Bookmark {
        let whole = WholeChain { query: query("S3").fingerprint(), pages: 5 };
        let start = "2026-11-01T00:00:00Z".parse().ok();
        let fixed = Some(Fixed { form: [7; 32], start, end: None });
        let one = bookmark(3);
        let owner = Owner { fixed, ..one.owner };
        let marks = vec![mark("S1", 3), mark("S2", 0)];
        let mut longer = Log::from(vec![whole]);
        let made = Bookmark { owner, marks, whole: longer.clone() };
        longer.push(whole);
        made
    }

    #[test]
    fn p12_a_bookmark_round_trips_through_bytes_and_text() {
        let one = bookmark(3);
        let read = Bookmark::from_text(&format!(" {}\n", one.to_text())).unwrap();
        assert_eq!((read.to_bytes(), read.owner, read.pages()), (one.to_bytes(), one.owner, 7));
        let made = of_scan();
        let read = Bookmark::from_bytes(&made.to_bytes()).unwrap();
        assert_eq!((read.to_bytes(), read.owner, read.pages()), (made.to_bytes(), made.owner, 19));
        assert_eq!(read.whole().len(), 1);
        assert_eq!(read.mark(&query("S2")).unwrap().query, query("S2").fingerprint());
        assert!(read.mark(&query("S3")).is_none());
        assert_eq!((read.digest(), read.digest() == bookmark(3).digest()), (made.digest(), false));
    }

    #[test]
    fn p12_every_flipped_bit_is_detected() {
        for bytes in [bookmark(3).to_bytes(), of_scan().to_bytes()] {
            for bit in 0..bytes.len() * 8 {
                let mut edited = bytes.clone();
                edited[bit / 8] ^= 1 << (bit % 8);
                let error = Bookmark::from_bytes(&edited).unwrap_err();
                assert_eq!(error.kind(), Kind::BookmarkError, "{bit}");
            }
            for length in 0..bytes.len() {
                assert!(Bookmark::from_bytes(&bytes[..length]).is_err(), "{length}");
            }
        }
    }

    fn sealed(bytes: &[u8]) -> Vec<u8> {
        [bytes, digest::digest(&digest::SHA256, bytes).as_ref()].concat()
    }

    #[test]
    fn p12_another_version_is_reported_as_such() {
        let bytes = bookmark(0).to_bytes();
        let fields = &bytes[5..bytes.len() - SEAL_LENGTH];
        // Only magic, version and seal of another version are known.
        for (version, fields, expected) in [
            (VERSION + 1, fields, "Another siteline"),
            (u8::MAX, &[], "Another siteline"),
            (VERSION - 1, fields, "Another siteline"),
            (0, fields, "edited or damaged"),
            (VERSION, &[], "edited or damaged"),
            (VERSION, b"{}", "edited or damaged"),
        ] {
            let bytes = sealed(&[MAGIC, &[version][..], fields].concat());
            assert_error(Bookmark::from_bytes(&bytes), Kind::BookmarkError, expected);
        }
        assert_error(
            Bookmark::from_bytes(&sealed(MAGIC)),
            Kind::BookmarkError,
            "not a siteline bookmark",
        );
    }

    #[test]
    fn bookmarks_of_two_positions_have_other_bytes() {
        let made = bookmark(3);
        let at = |mark| Bookmark { marks: vec![mark], ..made.clone() };
        let of = |owner| Bookmark { owner, ..made.clone() };
        for other in [
            at(Mark { sequence: 8, ..mark("S1", 3) }),
            at(Mark { pages: 8, ..mark("S1", 3) }),
            at(Mark { page_size: None, ..mark("S1", 3) }),
            at(Mark { cursor: Cursor::new("another"), ..mark("S1", 3) }),
            of(Owner { query: query("S2").fingerprint(), ..made.owner }),
            of(Owner { origin: origin_fingerprint("https://b.example subject"), ..made.owner }),
            bookmark(4),
            of_scan(),
        ] {
            assert_ne!(made.to_bytes(), other.to_bytes(), "{other:?}");
        }
    }

    #[test]
    fn p12_a_forged_count_is_refused() {
        for (sequence, pages) in [(u64::MAX, 7), (7, u64::MAX), (MOST_PAGES + 1, 7)] {
            let marks = vec![Mark { sequence, pages, ..mark("S1", 3) }];
            let forged = Bookmark { marks, ..bookmark(3) };
            let error = Bookmark::from_bytes(&forged.to_bytes()).unwrap_err();
            assert_eq!(error.kind(), Kind::BookmarkError);
        }
        let marks = vec![Mark { sequence: MOST_PAGES, pages: MOST_PAGES, ..mark("S1", 3) }];
        let largest = Bookmark { marks, ..bookmark(3) };
        assert!(Bookmark::from_bytes(&largest.to_bytes()).is_ok());
    }

    #[test]
    fn p12_only_the_last_cursors_are_kept() {
        let made = bookmark(3_000);
        let read = Bookmark::from_bytes(&made.to_bytes()).unwrap();
        assert_eq!(read.marks[0].seen_hashes().len(), SEEN_KEPT);
        assert_eq!(read.marks[0].seen_hashes().last(), Some(&Cursor::new("2999").hash()));
    }
}
