//! The store: one file that holds every version of every point of some feeds, and how far each feed
//! has been read. A page and the state that follows from it go down in one transaction, so that
//! data can't be behind its checkpoint (§4.5.2).

pub mod ledger;
pub mod target;

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use jiff::Timestamp;

pub use self::ledger::{FileLedger, Integration, UsualLedger};
pub use self::target::{Applied, Delivery, Span, Target};
use crate::error::Result;

/// One store file. Shared by threads and, each with its own connection, by processes.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
}

/// At which state of knowledge points are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// As they are known now.
    Latest,
    /// As they were known when this page request had been applied.
    AsOf(u64),
    /// Only those that are new or changed since then, with a column `change`: `new`, `revised`,
    /// `absent` (flagged since), `returned` (no longer flagged).
    ChangedSince(u64),
}

/// What becomes of points that a later complete read of their window did not bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flagged {
    /// They are given like all others.
    #[default]
    Keep,
    /// They are left out.
    Drop,
    /// Only they are given.
    Only,
}

/// What to read of a feed.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Bucket timestamps in these half-open ranges, microseconds, ascending and apart; `None`: all.
    pub ranges: Option<Vec<(i64, i64)>>,
    /// At which state of knowledge.
    pub view: View,
    /// What of flagged points.
    pub flagged: Flagged,
}

/// Reads a snapshot of a feed on a connection of its own, series by series in canonical order, then
/// by time.
#[derive(Debug)]
pub struct Reader {}

/// How late points and revisions came, where a range had been read completely before: seconds from
/// the end of a point's bucket to the read that brought it, ascending.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delays {
    /// Of points that were not there at the first complete read.
    pub points: Vec<(i64, u64)>,
    /// Of other values for points that were.
    pub revisions: Vec<(i64, u64)>,
}

impl Store {
    /// Opens the store at `path`; makes it where there is none.
    ///
    /// # Errors
    /// `StoreError` naming the path: not a store, made by a newer siteline, on a network
    /// filesystem, not readable; `StoreCorrupt`; `StoreFull`.
    pub fn open(path: &Path) -> Result<Self> {
        todo!("{path:?}")
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of its feeds, sorted.
    ///
    /// # Errors
    /// `StoreError`s.
    pub fn feeds(&self) -> Result<Vec<String>> {
        todo!()
    }

    /// The highest sequence number applied to a feed; 0 for one that is not there.
    ///
    /// # Errors
    /// `StoreError`s.
    pub fn sequence(&self, feed: &str) -> Result<u64> {
        todo!("{feed}")
    }

    /// The highest sequence number whose page had been read by then, by the service's time.
    ///
    /// # Errors
    /// `StoreError`s.
    pub fn sequence_at(&self, feed: &str, at: Timestamp) -> Result<u64> {
        todo!("{feed} {at}")
    }

    /// Begins to read points of a feed.
    ///
    /// # Errors
    /// `StoreError` for a feed that is not there; the others.
    pub fn read(&self, feed: &str, wanted: Wanted) -> Result<Reader> {
        todo!("{feed} {wanted:?}")
    }

    /// For each range whether the feed has any point in it.
    ///
    /// # Errors
    /// `StoreError`s.
    pub fn holds(&self, feed: &str, ranges: &[(i64, i64)]) -> Result<Vec<bool>> {
        todo!("{feed} {ranges:?}")
    }

    /// How late points and revisions came. `width` is the feed's bucket width in microseconds.
    ///
    /// # Errors
    /// `StoreError`s.
    pub fn delays(&self, feed: &str, width: i64) -> Result<Delays> {
        todo!("{feed} {width}")
    }

    /// Copies the store to another path, while it is in use.
    ///
    /// # Errors
    /// `StoreError` where something is there already; `StoreFull`; the others.
    pub fn backup(&self, to: &Path) -> Result<()> {
        todo!("{to:?}")
    }

    /// Reads everything and holds it against its checksums.
    ///
    /// # Errors
    /// `StoreCorrupt`.
    pub fn check(&self) -> Result<()> {
        todo!()
    }

    /// Closes its connections. Later calls are `ClosedError`s.
    pub fn close(&self) {
        todo!()
    }
}

impl Reader {
    /// The ten columns, and `change` for [`View::ChangedSince`].
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        todo!()
    }

    /// The next points: about `rows` of them, more where a block goes on; `None` after the last.
    ///
    /// # Errors
    /// `StoreError`s.
    pub fn next_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        todo!("{rows}")
    }
}

impl Target for Store {
    fn lock(&self, feed: &str) -> Result<Box<dyn std::any::Any + Send>> {
        todo!("{feed}")
    }

    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>> {
        todo!("{feed}")
    }

    fn apply(&self, feed: &str, delivery: Option<&Delivery<'_>>, state: &[u8]) -> Result<Applied> {
        todo!("{feed} {delivery:?} {state:?}")
    }
}
