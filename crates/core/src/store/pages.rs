//! The log of page requests. [`super::seen_log`] stores the points of the newest requests and of
//! unfinished chains.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, Row as SqlRow, params_from_iter};

use super::arrivals::{self, ArrivalChanges, ArrivalRun, ArrivalSums, Arrivals};
use super::bytes::Checksum;
use super::failure::{StoreFailure, StoreResult};
use super::feeds::FeedRow;
use super::schema::{check_digest, sum_rows};
use super::target::Applied;
use crate::data::ranges::Range;

const OTHER_ARRIVALS: &str = "the arrivals of a page do not match its points";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRow {
    pub(super) sequence: u64,
    /// Sequence number of the first page of the chain.
    pub(super) chain: u64,
    /// The chain's range.
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) read_at: i64,
    pub(super) is_last: bool,
    pub(super) points: i64,
    pub(super) tally: Applied,
}

impl PageRow {
    const COLUMNS: &str = r#"sequence, chain, "start", "end", read_at, is_last, points,
        inserted, revised, unchanged, flagged, "check", arrivals"#;

    fn numbers(&self) -> PageNumbers {
        let Applied { inserted, revised, unchanged, flagged } = self.tally;
        let [inserted, revised, unchanged, flagged] =
            [inserted, revised, unchanged, flagged].map(u64::cast_signed);
        let (sequence, chain) = (self.sequence.cast_signed(), self.chain.cast_signed());
        let (read_at, is_last) = (self.read_at, i64::from(self.is_last));
        let (start, end, points) = (self.start, self.end, self.points);
        [
            sequence, chain, start, end, read_at, is_last, points, inserted, revised, unchanged,
            flagged,
        ]
    }

    /// Also returns the checksum and the encoded arrivals.
    fn read<'r>(feed: i64, row: &'r SqlRow<'_>) -> StoreResult<(Self, i64, &'r [u8])> {
        let mut numbers: PageNumbers = [0; 11];
        for (index, number) in numbers.iter_mut().enumerate() {
            *number = row.get(index)?;
        }
        let (check, arrivals) = (row.get(11)?, row.get_ref(12)?.as_blob().unwrap_or_default());
        if row_check(feed, &numbers, arrivals) != check {
            return Err(StoreFailure::Corrupt("the row of a page does not match its checksum"));
        }
        let [sequence, chain, start, end, read_at, is_last, points, tally @ ..] = numbers;
        let [sequence, chain] = [sequence, chain].map(i64::cast_unsigned);
        let [inserted, revised, unchanged, flagged] = tally.map(i64::cast_unsigned);
        let (is_last, tally) = (is_last != 0, Applied { inserted, revised, unchanged, flagged });
        let page = Self { sequence, chain, start, end, read_at, is_last, points, tally };
        Ok((page, check, arrivals))
    }

    /// Whether a page was read between the start of this page's chain and this page, inclusive.
    pub(super) fn is_after(&self, sequence: u64) -> bool {
        (self.chain..=self.sequence).contains(&sequence)
    }

    /// Also changes the arrivals of other pages.
    pub(super) fn save(
        &self,
        connection: &Connection,
        feed: &mut FeedRow,
        arrivals: ArrivalChanges,
    ) -> StoreResult<()> {
        let numbers = self.numbers();
        let bytes = arrivals.own.encode().ok_or_else(|| {
            let what = "a page has points at millions of timestamps".to_owned();
            StoreFailure::Refused(what, "Request smaller pages.")
        })?;
        let check = row_check(feed.id, &numbers, &bytes);
        let sql = "INSERT INTO pages VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let row = [feed.id].into_iter().chain(numbers).chain([check]).map(Value::from);
        connection.execute(sql, params_from_iter(row.chain([bytes.into()])))?;
        feed.pages = feed.pages.wrapping_add(check);
        for (sequence, mut more) in arrivals.others {
            if !more.are_none() {
                add_arrivals(connection, feed, sequence, more)?;
            }
        }
        Ok(())
    }
}

type PageNumbers = [i64; 11];

fn row_check(feed: i64, numbers: &PageNumbers, arrivals: &[u8]) -> i64 {
    Checksum::new("pages").number(feed).numbers(numbers).bytes(arrivals).value()
}

/// Updates the arrivals of a page that a late page changes.
fn add_arrivals(
    connection: &Connection,
    feed: &mut FeedRow,
    sequence: u64,
    more: Arrivals,
) -> StoreResult<()> {
    let columns = PageRow::COLUMNS;
    let sql = format!("SELECT {columns} FROM pages WHERE feed = ?1 AND sequence = ?2");
    let mut statement = connection.prepare(&sql)?;
    let key = (feed.id, sequence.cast_signed());
    let (page, old, bytes) = statement.query_row(key, |row| {
        Ok(PageRow::read(feed.id, row)
            .map(|(page, check, bytes)| (page, check, more.added_to(bytes))))
    })??;
    let wrong = StoreFailure::Corrupt(OTHER_ARRIVALS);
    let bytes = bytes.ok_or(wrong)?;
    let check = row_check(feed.id, &page.numbers(), &bytes);
    let sql = r#"UPDATE pages SET "check" = ?3, arrivals = ?4 WHERE feed = ?1 AND sequence = ?2"#;
    connection.execute(sql, (key.0, key.1, check, bytes))?;
    feed.pages = feed.pages.wrapping_sub(old).wrapping_add(check);
    Ok(())
}

/// Ranges of chains, in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PageChains {
    pub ended: Vec<Range>,
    pub begun: Vec<Range>,
}

impl PageChains {
    /// `pages` are ascending.
    pub(super) fn until(sequence: u64, pages: &[PageRow]) -> Self {
        let mut begun = BTreeMap::new();
        let mut ended = Vec::new();
        for page in pages.iter().take_while(|page| page.sequence <= sequence) {
            let range = Range::new(page.start, page.end);
            if page.is_last {
                begun.remove(&page.chain);
                ended.push(range);
            } else {
                begun.insert(page.chain, range);
            }
        }
        Self { ended, begun: begun.into_values().collect() }
    }
}

/// Visits the pages after a sequence number, ascending.
fn visit(
    connection: &Connection,
    feed: &FeedRow,
    sequence: u64,
    mut each: impl FnMut(PageRow, &[u8]) -> StoreResult<()>,
) -> StoreResult<()> {
    let columns = PageRow::COLUMNS;
    let sql =
        format!("SELECT {columns} FROM pages WHERE feed = ?1 AND sequence > ?2 ORDER BY sequence");
    let sum = sum_rows(connection, &sql, (feed.id, sequence.cast_signed()), |row| {
        let (page, check, arrivals) = PageRow::read(feed.id, row)?;
        each(page, arrivals)?;
        Ok(check)
    })?;
    if sequence > 0 {
        return Ok(());
    }
    check_digest(sum, feed.pages, "a row of the page log is missing")
}

/// Verifies that no page is missing if it returns all.
pub(super) fn after(
    connection: &Connection,
    feed: &FeedRow,
    sequence: u64,
) -> StoreResult<Vec<PageRow>> {
    let mut pages = Vec::new();
    visit(connection, feed, sequence, |page, _| {
        pages.push(page);
        Ok(())
    })?;
    Ok(pages)
}

pub(super) fn all(connection: &Connection, feed: &FeedRow) -> StoreResult<Vec<PageRow>> {
    after(connection, feed, 0)
}

/// Ascending.
pub(super) fn arrivals(
    connection: &Connection,
    feed: &FeedRow,
    mut each: impl FnMut(u64, Vec<ArrivalRun>),
) -> StoreResult<()> {
    visit(connection, feed, 0, |page, bytes| {
        let damaged = StoreFailure::Corrupt("the arrivals of a page cannot be decoded");
        each(page.sequence, arrivals::runs(bytes).ok_or(damaged)?);
        Ok(())
    })
}

/// None of the points of these chains is kept.
pub(super) fn forget(connection: &Connection, feed: &mut FeedRow, before: i64) -> StoreResult<()> {
    let sql = r#"DELETE FROM pages WHERE feed = ?1 AND "end" < ?2 RETURNING "check""#;
    let deleted = sum_rows(connection, sql, (feed.id, before), |row| Ok(row.get(0)?))?;
    feed.pages = feed.pages.wrapping_sub(deleted);
    Ok(())
}

/// Also compares the arrivals with those in the blocks, if given.
pub(super) fn check(
    connection: &Connection,
    feed: &FeedRow,
    of_blocks: Option<&ArrivalSums>,
) -> StoreResult<()> {
    let mut of_pages = ArrivalSums::default();
    arrivals(connection, feed, |sequence, runs| of_pages.add_page(sequence, &runs))?;
    if of_blocks.is_none_or(|of_blocks| of_pages == *of_blocks) {
        Ok(())
    } else {
        Err(StoreFailure::Corrupt(OTHER_ARRIVALS))
    }
}
