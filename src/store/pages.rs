//! The log of page requests: the range, time and counts of each. The newest requests, and those of
//! unfinished chains, also have the points that they brought (seen points).

use std::collections::BTreeMap;

use rusqlite::{Connection, Row as SqlRow};

use super::arrivals::{self, ArrivalChanges, ArrivalRun, ArrivalSums, Arrivals};
use super::bytes::Checksum;
use super::failure::{StoreFailure, StoreResult};
use super::feeds::FeedRow;
use super::history::Event;
use super::seen::SeenPoints;
use super::target::Applied;

/// Seen points are kept for at least this many of the newest pages.
pub(super) const KEPT: u64 = 1_024;
/// A chain without a page for this many sequence numbers is taken for abandoned.
pub(super) const ABANDONED: u64 = 4 * KEPT;

/// One page request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRow {
    pub(super) sequence: u64,
    /// Sequence number of the chain's first page.
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

    /// The row, its checksum, and the bytes of its arrivals.
    fn read<'r>(feed: i64, row: &'r SqlRow<'_>) -> StoreResult<(Self, i64, &'r [u8])> {
        let number = |index: usize| row.get::<_, i64>(index);
        let count = |index| Ok::<_, StoreFailure>(number(index)?.cast_unsigned());
        let tally = Applied {
            inserted: count(7)?,
            revised: count(8)?,
            unchanged: count(9)?,
            flagged: count(10)?,
        };
        let page = Self {
            sequence: count(0)?,
            chain: count(1)?,
            start: number(2)?,
            end: number(3)?,
            read_at: number(4)?,
            is_last: number(5)? != 0,
            points: number(6)?,
            tally,
        };
        let (check, arrivals) = (number(11)?, row.get_ref(12)?.as_blob().unwrap_or_default());
        if row_check(feed, &page.numbers(), arrivals) != check {
            return Err(StoreFailure::Corrupt("the row of a page does not match its checksum"));
        }
        Ok((page, check, arrivals))
    }

    /// True for a page between the first page of this one's chain and this one, both included.
    fn is_after(&self, row: &SeenRow) -> bool {
        (self.chain..=self.sequence).contains(&row.sequence)
    }

    /// Adds the page to the log, with its arrivals, and changes those of other pages.
    pub(super) fn save(
        &self,
        connection: &Connection,
        feed: &mut FeedRow,
        arrivals: ArrivalChanges,
    ) -> StoreResult<()> {
        save_row(connection, feed, &self.numbers(), arrivals.own)?;
        for (sequence, mut more) in arrivals.others {
            if more.are_none() {
                continue;
            }
            add_arrivals(connection, feed, sequence, more)?;
        }
        Ok(())
    }
}

/// The numbers of a page's row.
pub(super) type PageNumbers = [i64; 11];

fn row_check(feed: i64, numbers: &PageNumbers, arrivals: &[u8]) -> i64 {
    Checksum::new("pages").number(feed).numbers(numbers).bytes(arrivals).value()
}

/// Adds the row of a page to the log.
pub(super) fn save_row(
    connection: &Connection,
    feed: &mut FeedRow,
    numbers: &PageNumbers,
    arrivals: Arrivals,
) -> StoreResult<()> {
    let bytes = arrivals.encode().ok_or_else(|| {
        let what = "a page of points at millions of timestamps".to_owned();
        StoreFailure::Refused(what, "Ask for smaller pages.")
    })?;
    let check = row_check(feed.id, numbers, &bytes);
    let sql =
        "INSERT INTO pages VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    let mut statement = connection.prepare(sql)?;
    let row = [feed.id].into_iter().chain(*numbers).chain([check]);
    for (index, number) in (1..).zip(row) {
        statement.raw_bind_parameter(index, number)?;
    }
    statement.raw_bind_parameter(14, bytes)?;
    statement.raw_execute()?;
    feed.pages = feed.pages.wrapping_add(check);
    Ok(())
}

/// Writes the row of a page anew whose arrivals a late page changes (S11).
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
    let wrong = StoreFailure::Corrupt("the arrivals of a page are not those of its points");
    let bytes = bytes.ok_or(wrong)?;
    let check = row_check(feed.id, &page.numbers(), &bytes);
    let sql = r#"UPDATE pages SET "check" = ?3, arrivals = ?4 WHERE feed = ?1 AND sequence = ?2"#;
    connection.execute(sql, (key.0, key.1, check, bytes))?;
    feed.pages = feed.pages.wrapping_sub(old).wrapping_add(check);
    Ok(())
}

/// The ranges of chains, in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PageChains {
    /// Those whose last page was applied.
    pub(crate) ended: Vec<(i64, i64)>,
    /// Those that had begun and not ended.
    pub(crate) begun: Vec<(i64, i64)>,
}

impl PageChains {
    /// The chains of the pages up to a sequence number; `pages` are ascending.
    pub(super) fn until(sequence: u64, pages: &[PageRow]) -> Self {
        let mut begun = BTreeMap::new();
        let mut ended = Vec::new();
        for page in pages.iter().take_while(|page| page.sequence <= sequence) {
            if page.is_last {
                begun.remove(&page.chain);
                ended.push((page.start, page.end));
            } else {
                begun.insert(page.chain, (page.start, page.end));
            }
        }
        Self { ended, begun: begun.into_values().collect() }
    }
}

/// Calls `each` with the pages after a sequence number, ascending, and the bytes of their arrivals. Gives
/// the digest of their rows.
fn visit(
    connection: &Connection,
    feed: i64,
    sequence: u64,
    mut each: impl FnMut(PageRow, &[u8]) -> StoreResult<()>,
) -> StoreResult<i64> {
    let columns = PageRow::COLUMNS;
    let sql =
        format!("SELECT {columns} FROM pages WHERE feed = ?1 AND sequence > ?2 ORDER BY sequence");
    let mut statement = connection.prepare(&sql)?;
    let mut found = statement.query((feed, sequence.cast_signed()))?;
    let mut digest = 0_i64;
    while let Some(row) = found.next()? {
        let (page, check, arrivals) = PageRow::read(feed, row)?;
        digest = digest.wrapping_add(check);
        each(page, arrivals)?;
    }
    Ok(digest)
}

/// The pages after a sequence number, ascending.
pub(super) fn after(
    connection: &Connection,
    feed: i64,
    sequence: u64,
) -> StoreResult<Vec<PageRow>> {
    let mut pages = Vec::new();
    visit(connection, feed, sequence, |page, _| {
        pages.push(page);
        Ok(())
    })?;
    Ok(pages)
}

/// All pages; verifies that none is missing.
pub(super) fn all(connection: &Connection, feed: &FeedRow) -> StoreResult<Vec<PageRow>> {
    let mut pages = Vec::new();
    let digest = visit(connection, feed.id, 0, |page, _| {
        pages.push(page);
        Ok(())
    })?;
    if digest != feed.pages {
        return Err(StoreFailure::Corrupt("a row of the page log is missing"));
    }
    Ok(pages)
}

/// Calls `each` with the arrivals of all pages, ascending, each with its sequence number.
pub(super) fn arrivals(
    connection: &Connection,
    feed: &FeedRow,
    mut each: impl FnMut(u64, Vec<ArrivalRun>),
) -> StoreResult<()> {
    let digest = visit(connection, feed.id, 0, |page, bytes| {
        let damaged = StoreFailure::Corrupt("the arrivals of a page cannot be decoded");
        each(page.sequence, arrivals::runs(bytes).ok_or(damaged)?);
        Ok(())
    })?;
    if digest != feed.pages {
        return Err(StoreFailure::Corrupt("a row of the page log is missing"));
    }
    Ok(())
}

/// Deletes the pages of chains that ended before a time: they brought nothing that is kept.
pub(super) fn forget(connection: &Connection, feed: &mut FeedRow, before: i64) -> StoreResult<()> {
    let sql = r#"DELETE FROM pages WHERE feed = ?1 AND "end" < ?2 RETURNING "check""#;
    let mut statement = connection.prepare(sql)?;
    let mut deleted = statement.query((feed.id, before))?;
    while let Some(row) = deleted.next()? {
        feed.pages = feed.pages.wrapping_sub(row.get(0)?);
    }
    Ok(())
}

/// Verifies the page log, and that the arrivals in it are those of the blocks, where these are known.
pub(super) fn check(
    connection: &Connection,
    feed: &FeedRow,
    of_blocks: Option<&ArrivalSums>,
) -> StoreResult<()> {
    let mut of_pages = ArrivalSums::default();
    arrivals(connection, feed, |sequence, runs| of_pages.add_page(sequence, &runs))?;
    let wrong = "the arrivals of a page are not those of its points";
    if of_blocks.is_none_or(|of_blocks| of_pages == *of_blocks) {
        Ok(())
    } else {
        Err(StoreFailure::Corrupt(wrong))
    }
}

/// The seen points of one page, as [`super::seen::encode`] wrote them.
#[derive(Debug)]
struct SeenRow {
    sequence: u64,
    chain: u64,
    /// The sequence number of the chain's last page; 0 before that page was applied.
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
        let numbers = [self.sequence, self.chain, self.finished].map(u64::cast_signed);
        let [sequence, chain, finished] = numbers;
        let sql = "INSERT OR REPLACE INTO seen VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        connection.execute(sql, (feed.id, chain, sequence, finished, check, &self.runs))?;
        feed.seen = feed.seen.wrapping_add(check);
        Ok(())
    }
}

/// The rows of `seen`, of one chain or of all, from a sequence number on.
fn seen_rows(
    connection: &Connection,
    feed: i64,
    chain: Option<u64>,
    from: u64,
) -> StoreResult<Vec<SeenRow>> {
    let sql = r#"SELECT sequence, chain, finished, "check", runs FROM seen
        WHERE feed = ?1 AND chain BETWEEN ?2 AND ?3 AND sequence >= ?4"#;
    let mut statement = connection.prepare(sql)?;
    let (first, last) = chain.map_or((0, u64::MAX >> 1), |chain| (chain, chain));
    let bounds = [first, last, from].map(u64::cast_signed);
    let mut found = statement.query((feed, bounds[0], bounds[1], bounds[2]))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
        let (sequence, chain, finished) = (number(0)?, number(1)?, number(2)?);
        let seen = SeenRow { sequence, chain, finished, runs: row.get(4)? };
        if seen.check(feed) != row.get::<_, i64>(3)? {
            return Err(StoreFailure::Corrupt("the points of a page do not match their checksum"));
        }
        rows.push(seen);
    }
    Ok(rows)
}

/// Verifies that no row of `seen` is missing.
pub(super) fn verify_seen(connection: &Connection, feed: &FeedRow) -> StoreResult<()> {
    let sql = r#"SELECT COALESCE(SUM("check"), 0) FROM seen WHERE feed = ?1"#;
    let digest: i64 = connection.query_row(sql, [feed.id], |row| row.get(0))?;
    if digest != feed.seen {
        return Err(StoreFailure::Corrupt("the points of a page are missing from its log"));
    }
    Ok(())
}

/// Verifies and decodes all rows of `seen`.
pub(super) fn check_seen(connection: &Connection, feed: &FeedRow) -> StoreResult<()> {
    verify_seen(connection, feed)?;
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

/// Saves the seen points of a page. The last page of a chain marks all pages of it as finished.
pub(super) fn save_seen(
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

/// Deletes the seen points of abandoned chains, and those of old pages whose chain ended long ago.
/// It keeps what the last page of an older, unfinished chain will need ([`since_chain`]).
pub(super) fn prune_seen(connection: &Connection, feed: &mut FeedRow) -> StoreResult<()> {
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
        let mut statement = connection.prepare(sql)?;
        let mut deleted = statement.query((feed.id, until))?;
        while let Some(row) = deleted.next()? {
            feed.pruned = feed.pruned.max(row.get::<_, i64>(0)?.cast_unsigned());
            feed.seen = feed.seen.wrapping_sub(row.get(1)?);
        }
    }
    Ok(())
}

/// The points that page requests of any chain brought since this chain began, and those of `last`,
/// its last page, which is being applied. Other chains count: they may have brought a late point
/// where this chain had passed already, and such a point is not absent. `None` where some of these
/// points were deleted.
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
    union_of(&rows, |row| last.is_after(row)).map(Some)
}

/// The events of newer pages, for an older page that is applied after them (S11).
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
                "page request {} comes too late: requests up to {} can no longer be merged",
                page.sequence, feed.pruned
            );
            return Err(StoreFailure::Refused(what, "Read its range again."));
        }
        let mut rows = seen_rows(connection, feed.id, None, 0)?;
        let newer = rows.iter().filter(|row| row.sequence > page.sequence);
        let mut later = Self::default();
        for row in newer {
            later.pages.push((row.sequence, union_of(std::slice::from_ref(row), |_| true)?));
        }
        let (sequence, chain) = (page.sequence, page.chain);
        rows.push(SeenRow { sequence, chain, finished: 0, runs: runs.to_vec() });
        for last in after(connection, feed.id, page.sequence)?.into_iter().filter(|p| p.is_last) {
            later.ended.push((last, union_of(&rows, |row| last.is_after(row))?));
        }
        Ok(later)
    }

    /// The sequence number of a chain's last page; 0 before that page was applied.
    pub(super) fn finished(&self, chain: u64) -> u64 {
        self.ended.iter().find(|(last, _)| last.chain == chain).map_or(0, |(last, _)| last.sequence)
    }

    /// The events of a point, ascending by sequence number.
    pub(super) fn events(&self, series: i64, timestamp: i64) -> Vec<Event> {
        let brought = |seen: &SeenPoints| seen.finder(series).holds(timestamp);
        let pages = self.pages.iter().filter(|(_, seen)| brought(seen));
        let absent = self
            .ended
            .iter()
            .filter(|(last, seen)| (last.start..last.end).contains(&timestamp) && !brought(seen));
        let mut events: Vec<(u64, Event)> = pages
            .map(|(sequence, _)| (*sequence, Event::Present(*sequence)))
            .chain(absent.map(|(last, _)| (last.sequence, Event::Absent(last.sequence))))
            .collect();
        events.sort_unstable_by_key(|(sequence, _)| *sequence);
        events.into_iter().map(|(_, event)| event).collect()
    }
}
