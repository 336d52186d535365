//! [`Bookmark`]: a sealed position in a chain, from which another process can continue. It is refused
//! if it was edited, or is used with another query, host or subject.
//!
//! A bookmark contains the cursor, so it is a secret. The seal is a checksum: it detects damage and
//! mistakes, but does not prevent forgery.
//!
//! Layout, all integers little-endian. Every future version keeps the magic, the version byte and the
//! SHA-256 at the end, so that an older siteline can distinguish "newer" from "damaged".
//!
//! ```text
//! "SLBM" version:u8 origin:[u8;32] query:[u8;32] sequence:u64 pages:u64
//! cursor_length:u32 cursor seen_count:u32 seen:[[u8;16]] sha256:[u8;32]
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::cursor::{Cursor, CursorHash};
use super::query::{Query, origin_fingerprint};
use crate::error::{Error, Kind, Result};
use crate::lock::Mutex;

const MAGIC: &[u8; 4] = b"SLBM";
const VERSION: u8 = 1;
const SEAL_LENGTH: usize = 32;
/// A bookmark contains the hashes of at most so many of the last cursors.
const SEEN_KEPT: usize = 1_024;

/// No chain has as many pages. A forged bookmark may say so, and must not make a count overflow.
const MOST_PAGES: u64 = 1 << 48;

/// The hashes of a chain's cursors in order of arrival: append-only and shared, so that the bookmark
/// of a page is a pointer, not a copy.
pub(super) type CursorLog = Arc<Mutex<Vec<CursorHash>>>;

/// A sealed position in a chain.
#[derive(Clone)]
pub struct Bookmark {
    pub(super) origin: [u8; 32],
    pub(super) query: [u8; 32],
    /// Sequence number of the next page.
    pub(super) sequence: u64,
    /// Pages read so far, including those before a resumption.
    pub(super) pages: u64,
    pub(super) cursor: Cursor,
    pub(super) seen: CursorLog,
    /// The length of `seen` when the bookmark was created.
    pub(super) seen_count: usize,
}

impl Bookmark {
    /// Pages read before this position.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The hashes of the last cursors, oldest first.
    pub(super) fn seen_hashes(&self) -> Vec<CursorHash> {
        let seen = self.seen.lock();
        let count = self.seen_count.min(seen.len());
        seen[count.saturating_sub(SEEN_KEPT)..count].to_vec()
    }

    /// The sealed bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let seen = self.seen_hashes();
        let mut bytes = [
            MAGIC,
            &[VERSION][..],
            &self.origin,
            &self.query,
            &self.sequence.to_le_bytes(),
            &self.pages.to_le_bytes(),
            &length_bytes(self.cursor.len()),
            self.cursor.secret().as_bytes(),
            &length_bytes(seen.len()),
            seen.as_flattened(),
        ]
        .concat();
        bytes.extend_from_slice(digest::digest(&digest::SHA256, &bytes).as_ref());
        bytes
    }

    /// Parses sealed bytes.
    ///
    /// # Errors
    /// `Kind::BookmarkError` if a bit differs, or a newer siteline wrote it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.get(..4) != Some(MAGIC) || bytes.len() < 5 + SEAL_LENGTH {
            return Err(Error::new(Kind::BookmarkError, "this is not a bookmark of siteline"));
        }
        let (sealed, seal) = bytes.split_at(bytes.len() - SEAL_LENGTH);
        if digest::digest(&digest::SHA256, sealed).as_ref() != seal {
            return Err(damaged());
        }
        match sealed[4] {
            ..VERSION => Err(damaged()),
            VERSION => Self::read(&sealed[5..]).ok_or_else(damaged),
            newer => Err(Error::new(
                Kind::BookmarkError,
                format!(
                    "this bookmark was made by a newer siteline (version {newer}, not {VERSION})"
                ),
            )
            .with_hint("Upgrade siteline, or read the range again from its start.")),
        }
    }

    fn read(fields: &[u8]) -> Option<Self> {
        let mut fields = Fields(fields);
        let origin = fields.array()?;
        let query = fields.array()?;
        let sequence = u64::from_le_bytes(fields.array()?);
        let pages = u64::from_le_bytes(fields.array()?);
        if sequence > MOST_PAGES || pages > MOST_PAGES {
            return None;
        }
        let length = u32::from_le_bytes(fields.array()?);
        let cursor = std::str::from_utf8(fields.take(usize::try_from(length).ok()?)?).ok()?;
        let seen_count = usize::try_from(u32::from_le_bytes(fields.array()?)).ok()?;
        let hashes = fields.take(seen_count.checked_mul(16)?)?;
        let (hashes, _) = hashes.as_chunks::<16>();
        let seen = Arc::new(Mutex::new(hashes.to_vec()));
        let cursor = Cursor::new(cursor);
        let bookmark = Self { origin, query, sequence, pages, cursor, seen, seen_count };
        fields.0.is_empty().then_some(bookmark)
    }

    /// The sealed bytes as base64url text.
    #[must_use]
    pub(crate) fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.to_bytes())
    }

    /// Parses base64url text; surrounding white space is ignored.
    ///
    /// # Errors
    /// As [`Bookmark::from_bytes`].
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim().trim_end_matches('='))
            .map_err(|_| Error::new(Kind::BookmarkError, "this is not a bookmark of siteline"))?;
        Self::from_bytes(&bytes)
    }

    /// Refuses a bookmark of another query, host or subject (§4.4, rule 3). `origin` is the base
    /// URL and subject, as given to [`super::Chain::new`].
    ///
    /// # Errors
    /// `Kind::BookmarkError` that says which of the two differs.
    pub fn check(&self, query: &Query, origin: &str) -> Result<()> {
        if self.origin != origin_fingerprint(origin) {
            return Err(Error::new(
                Kind::BookmarkError,
                "this bookmark belongs to another host or subject",
            )
            .with_hint("Resume it with the client that made it: same base URL, same subject."));
        }
        if self.query != query.fingerprint() {
            return Err(Error::new(Kind::BookmarkError, "this bookmark belongs to another query")
                .with_hint(
                    "All parameters must be the same within a chain; compare scan.query of both.",
                ));
        }
        Ok(())
    }
}

impl fmt::Debug for Bookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bookmark({} after {} pages)", self.cursor, self.pages)
    }
}

impl PartialEq for Bookmark {
    fn eq(&self, other: &Self) -> bool {
        self.to_bytes() == other.to_bytes()
    }
}

impl Eq for Bookmark {}

impl Hash for Bookmark {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_bytes().hash(state);
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

/// The cap of a body, which contains the cursor, is far below 4 GiB.
fn length_bytes(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

fn damaged() -> Error {
    Error::new(Kind::BookmarkError, "this bookmark was edited or damaged")
        .with_hint("Bookmarks are sealed; read the range again from its start.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::query::QueryInput;

    fn query(site: &str) -> Query {
        Query::new(QueryInput { site: Some(site.to_owned()), ..QueryInput::default() }).unwrap()
    }

    fn bookmark(seen: usize) -> Bookmark {
        let hashes = (0..seen).map(|n| Cursor::new(&n.to_string()).hash()).collect();
        Bookmark {
            origin: origin_fingerprint("https://a.example subject"),
            query: query("S1").fingerprint(),
            sequence: 7,
            pages: 7,
            cursor: Cursor::new("sécret/+="),
            seen: Arc::new(Mutex::new(hashes)),
            seen_count: seen,
        }
    }

    #[test]
    fn p12_a_bookmark_round_trips_through_bytes_and_text() {
        let made = bookmark(3);
        let read = Bookmark::from_text(&format!(" {}\n", made.to_text())).unwrap();
        assert_eq!(read, made);
        assert_eq!(read.cursor, made.cursor);
        assert_eq!(read.pages(), 7);
        assert!(read.check(&query("S1"), "https://a.example subject").is_ok());
    }

    #[test]
    fn p12_every_flipped_bit_is_detected() {
        let bytes = bookmark(3).to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut edited = bytes.clone();
            edited[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                Bookmark::from_bytes(&edited).unwrap_err().kind(),
                Kind::BookmarkError,
                "{bit}"
            );
        }
        for length in 0..bytes.len() {
            assert!(Bookmark::from_bytes(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn p12_another_query_and_another_host_give_different_errors() {
        let made = bookmark(0);
        let other = made.check(&query("S2"), "https://a.example subject").unwrap_err();
        assert!(other.to_string().contains("another query"), "{other}");
        let other = made.check(&query("S1"), "https://b.example subject").unwrap_err();
        assert!(other.to_string().contains("another host or subject"), "{other}");
    }

    /// These bytes with the seal that belongs to them.
    fn sealed(bytes: &[u8]) -> Vec<u8> {
        [bytes, digest::digest(&digest::SHA256, bytes).as_ref()].concat()
    }

    #[test]
    fn p12_a_newer_version_is_reported_as_such() {
        let bytes = bookmark(0).to_bytes();
        let fields = &bytes[5..bytes.len() - SEAL_LENGTH];
        // Of a newer version only magic, version and seal are known.
        for (version, fields, expected) in [
            (VERSION + 1, fields, "newer siteline"),
            (u8::MAX, &[], "newer siteline"),
            (0, fields, "edited or damaged"),
            (VERSION, &[], "edited or damaged"),
        ] {
            let bytes = sealed(&[MAGIC, &[version][..], fields].concat());
            let error = Bookmark::from_bytes(&bytes).unwrap_err();
            assert_eq!(error.kind(), Kind::BookmarkError);
            assert!(error.to_string().contains(expected), "{version}: {error}");
        }
        let error = Bookmark::from_bytes(&sealed(MAGIC)).unwrap_err();
        assert!(error.to_string().contains("not a bookmark"), "{error}");
    }

    #[test]
    fn bookmarks_of_two_positions_are_neither_equal_nor_of_one_hash() {
        let hash = |bookmark: &Bookmark| {
            let mut hasher = std::hash::DefaultHasher::new();
            bookmark.hash(&mut hasher);
            hasher.finish()
        };
        let made = bookmark(3);
        let same = Bookmark::from_bytes(&made.to_bytes()).unwrap();
        assert_eq!((&made, hash(&made)), (&same, hash(&same)));
        for other in [
            Bookmark { sequence: 8, ..made.clone() },
            Bookmark { pages: 8, ..made.clone() },
            Bookmark { cursor: Cursor::new("another"), ..made.clone() },
            Bookmark { query: query("S2").fingerprint(), ..made.clone() },
            Bookmark { origin: origin_fingerprint("https://b.example subject"), ..made.clone() },
            bookmark(4),
        ] {
            assert_ne!(made, other);
            assert_ne!(hash(&made), hash(&other), "{other:?}");
        }
    }

    #[test]
    fn p12_a_forged_count_is_refused() {
        for (sequence, pages) in [(u64::MAX, 7), (7, u64::MAX), (MOST_PAGES + 1, 7)] {
            let forged = Bookmark { sequence, pages, ..bookmark(3) };
            let error = Bookmark::from_bytes(&forged.to_bytes()).unwrap_err();
            assert_eq!(error.kind(), Kind::BookmarkError);
        }
        let largest = Bookmark { sequence: MOST_PAGES, pages: MOST_PAGES, ..bookmark(3) };
        assert!(Bookmark::from_bytes(&largest.to_bytes()).is_ok());
    }

    #[test]
    fn p12_only_the_last_cursors_are_kept() {
        let made = bookmark(3_000);
        let read = Bookmark::from_bytes(&made.to_bytes()).unwrap();
        assert_eq!(read.seen_hashes().len(), SEEN_KEPT);
        assert_eq!(read.seen_hashes().last(), Some(&Cursor::new("2999").hash()));
    }

    #[test]
    fn debug_of_a_bookmark_does_not_show_the_cursor() {
        let text = format!("{:?}", bookmark(1));
        assert!(!text.contains("cret"), "{text}");
        assert!(text.starts_with("Bookmark(cursor#"), "{text}");
    }
}
