//! Recent points: a page with only a few points of each of many series becomes one row of the table
//! `recent`. Otherwise thousands of blocks would be rewritten for two points each. Once a stretch
//! of time has many recent points, they move into its blocks ([`super::page_merge`]).
//!
//! ```text
//! form:u8 rows timestamps:steps series:steps, then the other columns of a block
//! ```
//!
//! Rows are sorted by time, series and version, so a page on a grid needs few runs. The history of
//! a point is in its block and its recent points together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::Connection;

use super::block::{self, PointVersion};
use super::bytes::Checksum;
use super::directory_page::BlockKey;
use super::failure::{StoreFailure, StoreResult};
use super::feeds::FeedRow;
use super::schema::{check_digest, sum_rows};

/// A version of a point, and the number of its series.
pub(super) type SeriesPoint = (i64, PointVersion);

pub(super) fn encode(mut points: Vec<SeriesPoint>) -> Vec<u8> {
    points.sort_unstable_by_key(|(series, row)| (row.timestamp, *series, row.version));
    let rows: Vec<PointVersion> = points.iter().map(|(_, row)| *row).collect();
    block::encode_with(&rows, |sink| sink.steps(points.iter().map(|(series, _)| *series)))
}

/// Returns `None` for bytes that [`encode`] did not write.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<SeriesPoint>> {
    let mut series = Vec::new();
    let rows = block::decode_with(bytes, |source, count| {
        source.steps(count, |number| series.push(number))
    })?;
    let points: Vec<SeriesPoint> = series.into_iter().zip(rows).collect();
    let key = |(series, row): &SeriesPoint| (row.timestamp, *series, row.version);
    let is_sorted = points.is_sorted_by(|one, next| key(one) < key(next));
    is_sorted.then_some(points)
}

/// The recent points in a stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StretchCount {
    pub(super) rows: usize,
    /// One per series.
    pub(super) blocks: usize,
}

#[derive(Debug, Clone)]
struct SavedRow {
    check: i64,
    stretches: BTreeSet<i64>,
}

/// The recent points of a feed, by the block that they will move into.
#[derive(Debug, Clone, Default)]
pub(super) struct RecentPoints {
    blocks: HashMap<BlockKey, Vec<PointVersion>>,
    stretches: BTreeMap<i64, StretchCount>,
    /// By sequence number.
    saved: HashMap<i64, SavedRow>,
}

impl RecentPoints {
    /// Verifies all recent points of a feed, and keeps the blocks that `pick` selects.
    pub(super) fn load(
        connection: &Connection,
        feed: &FeedRow,
        pick: impl Fn(BlockKey) -> bool,
    ) -> StoreResult<Self> {
        let sql =
            r#"SELECT sequence, "check", points FROM recent WHERE feed = ?1 ORDER BY sequence"#;
        let mut recent = Self::default();
        let sum = sum_rows(connection, sql, [feed.id], |row| {
            let check: i64 = row.get(1)?;
            let (sequence, bytes) = (row.get(0)?, row.get_ref(2)?.as_blob().unwrap_or_default());
            let mut stretches = BTreeSet::new();
            for (series, point) in verified(feed, sequence, check, bytes)? {
                let key = (series, point.timestamp.div_euclid(feed.span));
                stretches.insert(key.1);
                if pick(key) {
                    recent.add(key, point);
                }
            }
            recent.saved.insert(sequence, SavedRow { check, stretches });
            Ok(check)
        })?;
        check_digest(sum, feed.recent, "recent points are missing")?;
        Ok(recent)
    }

    /// By time, then version.
    pub(super) fn rows(&self, key: BlockKey) -> &[PointVersion] {
        self.blocks.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = BlockKey> {
        self.blocks.keys().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.stretches.values().map(|count| count.rows).sum()
    }

    /// Ascending.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (i64, StretchCount)> {
        self.stretches.iter().map(|(stretch, count)| (*stretch, *count))
    }

    pub(super) fn stretches_of(&self, sequence: u64) -> Option<&BTreeSet<i64>> {
        self.saved.get(&sequence.cast_signed()).map(|row| &row.stretches)
    }

    fn add(&mut self, key: BlockKey, point: PointVersion) {
        let order = |row: &PointVersion| (row.timestamp, row.version);
        let rows = self.blocks.entry(key).or_default();
        let count = self.stretches.entry(key.1).or_default();
        count.blocks += usize::from(rows.is_empty());
        count.rows += 1;
        if rows.last().is_none_or(|last| order(last) < order(&point)) {
            rows.push(point);
        } else {
            let place = rows.partition_point(|row| order(row) < order(&point));
            rows.insert(place, point);
        }
    }

    /// Also writes the points as a row.
    pub(super) fn save(
        &mut self,
        connection: &Connection,
        feed: &mut FeedRow,
        sequence: u64,
        points: Vec<SeriesPoint>,
    ) -> StoreResult<()> {
        for (series, point) in &points {
            self.add((*series, point.timestamp.div_euclid(feed.span)), *point);
        }
        self.save_row(connection, feed, sequence.cast_signed(), points)
    }

    /// Removes the points of some stretches. Returns them by block.
    pub(super) fn take(
        &mut self,
        connection: &Connection,
        feed: &mut FeedRow,
        taken: &BTreeSet<i64>,
    ) -> StoreResult<BTreeMap<BlockKey, Vec<PointVersion>>> {
        let concerned = |_: &i64, row: &mut SavedRow| !row.stretches.is_disjoint(taken);
        let rows: Vec<(i64, SavedRow)> = self.saved.extract_if(concerned).collect();
        for (sequence, row) in rows {
            let mut left = Vec::new();
            if !row.stretches.is_subset(taken) {
                let sql = "SELECT points FROM recent WHERE feed = ?1 AND sequence = ?2";
                let bytes: Vec<u8> =
                    connection.query_row(sql, (feed.id, sequence), |row| row.get(0))?;
                left = verified(feed, sequence, row.check, &bytes)?;
                left.retain(|(_, row)| !taken.contains(&row.timestamp.div_euclid(feed.span)));
            }
            let sql = "DELETE FROM recent WHERE feed = ?1 AND sequence = ?2";
            connection.execute(sql, (feed.id, sequence))?;
            feed.recent = feed.recent.wrapping_sub(row.check);
            if !left.is_empty() {
                self.save_row(connection, feed, sequence, left)?;
            }
        }
        self.stretches.retain(|stretch, _| !taken.contains(stretch));
        Ok(self.blocks.extract_if(|key, _| taken.contains(&key.1)).collect())
    }

    fn save_row(
        &mut self,
        connection: &Connection,
        feed: &mut FeedRow,
        sequence: i64,
        points: Vec<SeriesPoint>,
    ) -> StoreResult<()> {
        let stretches = points.iter().map(|(_, row)| row.timestamp.div_euclid(feed.span)).collect();
        let bytes = encode(points);
        let check = row_check(feed.id, sequence, &bytes);
        let sql = "INSERT INTO recent VALUES (?1, ?2, ?3, ?4)";
        connection.execute(sql, (feed.id, sequence, check, bytes))?;
        feed.recent = feed.recent.wrapping_add(check);
        self.saved.insert(sequence, SavedRow { check, stretches });
        Ok(())
    }
}

/// Verifies the checksum of a row and decodes its points.
fn verified(
    feed: &FeedRow,
    sequence: i64,
    check: i64,
    bytes: &[u8],
) -> StoreResult<Vec<SeriesPoint>> {
    let intact = row_check(feed.id, sequence, bytes) == check && feed.span > 0;
    let points = intact.then(|| decode(bytes)).flatten();
    points.ok_or(StoreFailure::Corrupt("recent points do not match their checksum"))
}

fn row_check(feed: i64, sequence: i64, points: &[u8]) -> i64 {
    Checksum::new("recent").numbers(&[feed, sequence]).bytes(points).value()
}
