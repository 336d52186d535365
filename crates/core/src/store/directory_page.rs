//! A directory page lists blocks of some series in some stretches, with summaries.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::block::PointVersion;
use super::bytes::{Checksum, Sink, Source};
use super::failure::{StoreFailure, StoreResult};
use super::view::{Flagged, View};

/// Numbers of series and of stretches that a directory page covers.
pub(super) const SERIES: i64 = 32;
pub(super) const STRETCHES: i64 = 16;

/// Series and stretch. The stretch is the timestamp divided by the feed's span.
pub(super) type BlockKey = (i64, i64);
/// Group of series and group of stretches.
pub(super) type PageKey = (i64, i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockEntry {
    pub(super) summary: BlockSummary,
    pub(super) chunk: i64,
    /// Checksum of the chunk.
    pub(super) sum: i64,
}

/// The facts about a block that need no read of the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct BlockSummary {
    /// Lowest version.
    pub(super) first: u64,
    /// Highest version.
    pub(super) changed: u64,
    /// A point with several versions counts once.
    pub(super) points: u64,
    /// Withdrawn points.
    pub(super) flagged: u64,
}

impl BlockSummary {
    pub(super) fn new(rows: &[PointVersion]) -> Self {
        let versions = || rows.iter().map(|row| row.version);
        let mut summary = Self {
            first: versions().min().unwrap_or_default(),
            changed: versions().max().unwrap_or_default(),
            ..Self::default()
        };
        for history in rows.chunk_by(|one, next| one.timestamp == next.timestamp) {
            summary.points += 1;
            summary.flagged += u64::from(history.last().is_some_and(|row| row.absent));
        }
        summary
    }

    /// Returns how many points of the block a view shows, or `None` if that needs the block.
    pub(super) fn count(&self, view: View, flagged: Flagged) -> Option<u64> {
        let View { since, until } = view;
        let until = until.unwrap_or(u64::MAX);
        let shows_none = until < self.first || since.is_some_and(|since| self.changed <= since);
        let shows_all = self.changed <= until && since.is_none_or(|since| since < self.first);
        let all = match flagged {
            Flagged::Keep => self.points,
            Flagged::Drop => self.points.saturating_sub(self.flagged),
            Flagged::Only => self.flagged,
        };
        if shows_none { Some(0) } else { shows_all.then_some(all) }
    }
}

#[derive(Debug, Default)]
pub(super) struct DirectoryPage {
    pub(super) entries: BTreeMap<BlockKey, BlockEntry>,
    pub(super) changed: bool,
}

impl DirectoryPage {
    pub(super) fn load(
        connection: &Connection,
        feed: i64,
        number: PageKey,
        check: i64,
    ) -> StoreResult<Self> {
        let sql = "SELECT entries FROM shelves WHERE feed = ?1 AND rack = ?2 AND shelf = ?3";
        let entries = connection.query_row(sql, (feed, number.0, number.1), |row| {
            let bytes = row.get_ref(0)?.as_blob().unwrap_or_default();
            let intact = page_check(feed, number, bytes) == check;
            Ok(intact.then(|| read_entries(bytes)).flatten())
        })?;
        let damaged = "a part of its directory does not match its checksum";
        let entries = entries.ok_or(StoreFailure::Corrupt(damaged))?;
        Ok(Self { entries, changed: false })
    }
}

pub(super) fn page_key(key: BlockKey) -> PageKey {
    (key.0.div_euclid(SERIES), key.1.div_euclid(STRETCHES))
}

pub(super) fn chunk_sum(feed: i64, key: BlockKey, bytes: &[u8]) -> i64 {
    Checksum::new("contents").numbers(&[feed, key.0, key.1]).bytes(bytes).value()
}

pub(super) fn page_check(feed: i64, number: PageKey, entries: &[u8]) -> i64 {
    Checksum::new("shelves").numbers(&[feed, number.0, number.1]).bytes(entries).value()
}

pub(super) fn entry_bytes(entries: &BTreeMap<BlockKey, BlockEntry>) -> Vec<u8> {
    let mut sink = Sink(Vec::with_capacity(entries.len() * 20));
    sink.length(entries.len());
    let mut last = (0, 0);
    for (key, BlockEntry { summary, chunk, sum }) in entries {
        sink.signed(key.0.wrapping_sub(last.0));
        sink.signed(key.1.wrapping_sub(last.1));
        sink.number(summary.first);
        sink.number(summary.changed.wrapping_sub(summary.first));
        sink.number(summary.points);
        sink.number(summary.flagged);
        sink.signed(*chunk);
        sink.signed(*sum);
        last = *key;
    }
    sink.0
}

fn read_entries(bytes: &[u8]) -> Option<BTreeMap<BlockKey, BlockEntry>> {
    let mut source = Source(bytes);
    let mut entries = Vec::new();
    let mut last: BlockKey = (0, 0);
    for _ in 0..source.length()? {
        last.0 = last.0.wrapping_add(source.signed()?);
        last.1 = last.1.wrapping_add(source.signed()?);
        let first = source.number()?;
        let changed = first.wrapping_add(source.number()?);
        let (points, flagged) = (source.number()?, source.number()?);
        let summary = BlockSummary { first, changed, points, flagged };
        let (chunk, sum) = (source.signed()?, source.signed()?);
        entries.push((last, BlockEntry { summary, chunk, sum }));
    }
    // Faster than one insertion after the other, because the entries are sorted.
    source.0.is_empty().then(|| entries.into_iter().collect())
}
