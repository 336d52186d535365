//! The points of the newest page requests and of unfinished chains. They show which points are
//! absent when a chain ends, and how to merge a page that is applied late.

use rusqlite::Connection;

use super::bytes::Checksum;
use super::failure::{StoreFailure, StoreResult};
use super::feeds::FeedRow;
use super::history::Event;
use super::pages::{self, PageRow};
use super::schema::{check_digest, sum_rows};
use super::seen::SeenPoints;

/// Seen points are kept for at least this many of the newest pages.
pub(super) const KEPT: u64 = 1_024;
/// A chain without a page for this many sequence numbers counts as abandoned.
pub(super) const ABANDONED: u64 = 4 * KEPT;

#[derive(Debug)]
struct SeenRow {
    sequence: u64,
    chain: u64,
    /// The sequence number of the chain's last page, or 0 before it was applied.
    finished: u64,
    runs: Vec<u8>,
}

impl SeenRow {
    fn check(&self, feed: i64) -> i64 {
        let numbers = [self.sequence, self.chain, self.finished].map(u64::cast_signed);
        Checksum::new("seen").number(feed).numbers(&numbers).bytes(&self.runs).value()
    }

    fn save(&self, connection: &Connection, feed: &mut FeedRow) -> StoreResult<()> {
        let check = self.check(feed.id);
        let [sequence, chain, finished] =
            [self.sequence, self.chain, self.finished].map(u64::cast_signed);
        let sql = "INSERT OR REPLACE INTO seen VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        connection.execute(sql, (feed.id, chain, sequence, finished, check, &self.runs))?;
        feed.seen = feed.seen.wrapping_add(check);
        Ok(())
    }
}

fn seen_rows(
    connection: &Connection,
    feed: i64,
    chain: Option<u64>,
    from: u64,
) -> StoreResult<Vec<SeenRow>> {
    let sql = r#"SELECT sequence, chain, finished, "check", runs FROM seen
        WHERE feed = ?1 AND chain BETWEEN ?2 AND ?3 AND sequence >= ?4"#;
    let (first, last) = chain.map_or((0, u64::MAX >> 1), |chain| (chain, chain));
    let [first, last, from] = [first, last, from].map(u64::cast_signed);
    let mut rows = Vec::new();
    sum_rows(connection, sql, (feed, first, last, from), |row| {
        let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
        let (sequence, chain, finished) = (number(0)?, number(1)?, number(2)?);
        let seen = SeenRow { sequence, chain, finished, runs: row.get(4)? };
        let check = seen.check(feed);
        if row.get(3) != Ok(check) {
            return Err(StoreFailure::Corrupt("the points of a page do not match their checksum"));
        }
        rows.push(seen);
        Ok(check)
    })?;
    Ok(rows)
}

/// Verifies that no row is missing.
pub(super) fn verify(connection: &Connection, feed: &FeedRow) -> StoreResult<()> {
    let sql = r#"SELECT COALESCE(SUM("check"), 0) FROM seen WHERE feed = ?1"#;
    let digest: i64 = connection.query_row(sql, [feed.id], |row| row.get(0))?;
    check_digest(digest, feed.seen, "the points of a page are missing from its log")
}

/// Verifies and decodes all rows.
pub(super) fn check(connection: &Connection, feed: &FeedRow) -> StoreResult<()> {
    verify(connection, feed)?;
    union_of(&seen_rows(connection, feed.id, None, 0)?, |_| true).map(drop)
}

fn union_of(rows: &[SeenRow], pick: impl Fn(&SeenRow) -> bool) -> StoreResult<SeenPoints> {
    let mut seen = SeenPoints::default();
    for row in rows.iter().filter(|row| pick(row)) {
        let damaged = StoreFailure::Corrupt("the points of a page cannot be decoded");
        seen.add(&row.runs).ok_or(damaged)?;
    }
    Ok(seen.sorted())
}

/// The last page of a chain marks all its pages as finished.
pub(super) fn save(
    connection: &Connection,
    feed: &mut FeedRow,
    page: &PageRow,
    finished: u64,
    runs: Vec<u8>,
) -> StoreResult<()> {
    let (sequence, chain) = (page.sequence, page.chain);
    SeenRow { sequence, chain, finished, runs }.save(connection, feed)?;
    if !page.is_last {
        return Ok(());
    }
    for mut row in seen_rows(connection, feed.id, Some(chain), 0)? {
        if row.finished == 0 {
            feed.seen = feed.seen.wrapping_sub(row.check(feed.id));
            row.finished = page.sequence;
            row.save(connection, feed)?;
        }
    }
    Ok(())
}

/// Deletes the seen points of abandoned chains, and of old pages of chains that ended long ago.
/// Keeps all that the last page of an older, unfinished chain will need ([`since_chain`]).
pub(super) fn prune(connection: &Connection, feed: &mut FeedRow) -> StoreResult<()> {
    let old = |kept| feed.sequence.saturating_sub(kept).cast_signed();
    let abandoned = r#"DELETE FROM seen WHERE feed = ?1 AND finished = 0 AND chain IN (
            SELECT chain FROM seen WHERE feed = ?1 AND finished = 0
            GROUP BY chain HAVING MAX(sequence) <= ?2)
        RETURNING sequence, "check""#;
    let ended = r#"DELETE FROM seen WHERE feed = ?1 AND finished BETWEEN 1 AND ?2 AND sequence < (
            SELECT COALESCE(MIN(chain), ?2 + 1) FROM seen
            WHERE feed = ?1 AND NOT finished BETWEEN 1 AND ?2)
        RETURNING finished, "check""#;
    for (sql, until) in [(abandoned, old(ABANDONED)), (ended, old(KEPT))] {
        let deleted = sum_rows(connection, sql, (feed.id, until), |row| {
            feed.pruned = feed.pruned.max(row.get::<_, i64>(0)?.cast_unsigned());
            Ok(row.get(1)?)
        })?;
        feed.seen = feed.seen.wrapping_sub(deleted);
    }
    Ok(())
}

/// Returns the points that pages of any chain brought since the chain of `last` began. Another
/// chain may have brought a late point that this chain had already passed. Such a point is not
/// absent. Returns `None` if some of these points were deleted.
pub(super) fn since_chain(
    connection: &Connection,
    feed: i64,
    last: &PageRow,
    runs: &[u8],
) -> StoreResult<Option<SeenPoints>> {
    let mut rows = seen_rows(connection, feed, Some(last.chain), 0)?;
    let (sequence, chain) = (last.sequence, last.chain);
    if rows.len() as u64 != sequence - chain {
        let sql = "SELECT COUNT(*) FROM pages
            WHERE feed = ?1 AND sequence BETWEEN ?2 AND ?3 AND chain = ?2";
        let numbers = (feed, chain.cast_signed(), i64::MAX);
        let pages: i64 = connection.query_row(sql, numbers, |row| row.get(0))?;
        if pages.cast_unsigned() != rows.len() as u64 {
            return Ok(None);
        }
        rows = seen_rows(connection, feed, None, chain)?;
    }
    rows.push(SeenRow { sequence, chain, finished: 0, runs: runs.to_vec() });
    union_of(&rows, |row| last.is_after(row.sequence)).map(Some)
}

/// The events of newer pages, for an older page that is applied late.
#[derive(Debug, Default)]
pub(super) struct LaterPages {
    pages: Vec<(u64, SeenPoints)>,
    ended: Vec<(PageRow, SeenPoints)>,
}

impl LaterPages {
    pub(super) fn load(
        connection: &Connection,
        feed: &FeedRow,
        page: &PageRow,
        runs: &[u8],
    ) -> StoreResult<Self> {
        if page.sequence <= feed.pruned {
            let what = format!(
                "page request {} arrived too late: requests up to {} can no longer be merged",
                page.sequence, feed.pruned
            );
            return Err(StoreFailure::Refused(what, "Read the range of the page again."));
        }
        let mut rows = seen_rows(connection, feed.id, None, 0)?;
        let newer = rows.iter().filter(|row| row.sequence > page.sequence);
        let mut later = Self::default();
        for row in newer {
            later.pages.push((row.sequence, union_of(std::slice::from_ref(row), |_| true)?));
        }
        let (sequence, chain) = (page.sequence, page.chain);
        rows.push(SeenRow { sequence, chain, finished: 0, runs: runs.to_vec() });
        let pages = pages::after(connection, feed, page.sequence)?;
        for last in pages.into_iter().filter(|p| p.is_last) {
            later.ended.push((last, union_of(&rows, |row| last.is_after(row.sequence))?));
        }
        Ok(later)
    }

    /// Returns 0 if the last page of the chain is not applied yet.
    pub(super) fn finished(&self, chain: u64) -> u64 {
        self.ended.iter().find(|(last, _)| last.chain == chain).map_or(0, |(last, _)| last.sequence)
    }

    /// Ascending.
    pub(super) fn events(&self, series: i64, timestamp: i64) -> Vec<Event> {
        let brought = |seen: &SeenPoints| seen.finder(series).holds(timestamp);
        let pages = self.pages.iter().filter(|(_, seen)| brought(seen));
        let absent = self
            .ended
            .iter()
            .filter(|(last, seen)| (last.start..last.end).contains(&timestamp) && !brought(seen));
        let pages = pages.map(|(sequence, _)| (*sequence, false));
        let mut events: Vec<Event> =
            pages.chain(absent.map(|(last, _)| (last.sequence, true))).collect();
        events.sort_unstable();
        events
    }
}
