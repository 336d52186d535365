//! Writes one page, and the state that follows from it, in one transaction.

use rusqlite::Connection;

use super::block::{PointVersion, Values};
use super::directory::FeedIndex;
use super::directory_page::BlockKey;
use super::failure::{StoreFailure, StoreResult};
use super::feeds::{FeedRow, Feeds, LARGEST};
use super::history::MergeCounts;
use super::page_merge::{PageMerge, RecentLimits};
use super::pages::{self, PageRow};
use super::recent::SeriesPoint;
use super::seen;
use super::seen_log::{self, LaterPages};
use super::target::{Applied, Delivery};
use super::writer_cache::{FeedChange, KnownFeed};
use crate::data::Page;

/// With fewer buckets per block, the file grows and lookups take longer. With more, each changed
/// point rewrites more bytes: with many series, a page changes only a few points of each block.
const BUCKETS: i64 = 128;
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Old seen points are deleted once per this many pages.
const PRUNE_EVERY: i64 = 64;

/// Writes a page and the state, without the commit. A failure drops the caches, because they may
/// contain what was rolled back.
pub(super) fn apply(
    connection: &Connection,
    (feeds, known): (&mut Feeds, &mut Option<KnownFeed>),
    name: &str,
    delivery: Option<&Delivery>,
    state: &[u8],
    limits: RecentLimits,
) -> StoreResult<Applied> {
    let mut feed = feeds.find_or_new(name);
    let Some(delivery) = delivery else {
        feeds.save(connection, feed, state)?;
        return Ok(Applied::default());
    };
    let known = KnownFeed::current(connection, &feed, known)?;
    let applied = deliver(connection, known, &mut feed, delivery, limits)?;
    known.index.generation = feed.generation;
    feeds.save(connection, feed, state)?;
    Ok(applied)
}

fn deliver(
    connection: &Connection,
    known: &mut KnownFeed,
    feed: &mut FeedRow,
    delivery: &Delivery,
    limits: RecentLimits,
) -> StoreResult<Applied> {
    let mut log = log_row(delivery)?;
    let late = log.sequence <= feed.sequence;
    if late
        && let Some(done) = pages::after(connection, feed, log.sequence - 1)?.first()
        && done.sequence == log.sequence
    {
        // The page was applied, but its caller did not learn of the commit. A different page with
        // this number would be lost.
        if (PageRow { tally: done.tally, read_at: done.read_at, ..log }) != *done {
            let what = format!("another page with the number {} is already stored", log.sequence);
            return Err(StoreFailure::Refused(what, "Give each page request a new number."));
        }
        let Applied { inserted, revised, unchanged, .. } = done.tally;
        return Ok(Applied { unchanged: inserted + revised + unchanged, ..Applied::default() });
    }
    let points = points(connection, &mut known.index, feed, &delivery.page)?;
    if feed.span == 0 && !points.is_empty() {
        feed.span = span(delivery.interval_seconds, &points);
    }
    let timestamps: Vec<i64> = points.iter().map(|(_, row)| row.timestamp).collect();
    let mut left = timestamps.as_slice();
    let runs = seen::encode(by_series(&points).map(|of_one| {
        let (own, rest) = left.split_at(of_one.len());
        left = rest;
        (of_one[0].0, own)
    }));
    if (late || log.is_last) && !known.index.seen {
        seen_log::verify(connection, feed)?;
        known.index.seen = true;
    }
    let later = late.then(|| LaterPages::load(connection, feed, &log, &runs)).transpose()?;
    let brought =
        if log.is_last { seen_log::since_chain(connection, feed.id, &log, &runs)? } else { None };
    let finished = later.as_ref().map_or(0, |later| later.finished(log.chain));
    let finished = if log.is_last { log.sequence } else { finished };
    let incoming = in_blocks(&points, feed.span);
    let change = FeedChange::new(connection, known, feed)?;
    let page_merge = PageMerge::new(change, log, limits);
    let MergeCounts { tally, arrivals } =
        page_merge.run(incoming, later.as_ref(), brought.as_ref())?;
    log.tally = tally;
    log.save(connection, feed, arrivals)?;
    seen_log::save(connection, feed, &log, finished, runs)?;
    feed.sequence = feed.sequence.max(log.sequence);
    feed.generation += 1;
    if feed.generation % PRUNE_EVERY == 0 {
        seen_log::prune(connection, feed)?;
    }
    Ok(log.tally)
}

fn log_row(delivery: &Delivery) -> StoreResult<PageRow> {
    let (page, chain) = (&delivery.page, delivery.chain);
    if chain.first == 0 || chain.first > page.sequence || page.sequence > LARGEST {
        let (first, number) = (chain.first, page.sequence);
        let what =
            format!("page request {number} cannot belong to a chain that began with {first}");
        return Err(StoreFailure::Refused(what, "Page requests count from 1."));
    }
    Ok(PageRow {
        sequence: page.sequence,
        chain: chain.first,
        start: chain.start.as_microsecond(),
        end: chain.end.as_microsecond(),
        read_at: delivery.read_at.as_microsecond(),
        is_last: page.is_last,
        points: i64::try_from(page.rows()).unwrap_or(i64::MAX),
        tally: Applied::default(),
    })
}

/// The points by series and time, without older duplicates and forgotten points.
fn points(
    connection: &Connection,
    known: &mut FeedIndex,
    feed: &mut FeedRow,
    page: &Page,
) -> StoreResult<Vec<SeriesPoint>> {
    let mut series: Vec<Option<i64>> = vec![None; page.points.series.len()];
    let mut points: Vec<SeriesPoint> = Vec::with_capacity(page.rows());
    for envelope in page.points.envelopes.iter().filter(|envelope| !envelope.rows.is_empty()) {
        let id = match series[envelope.series] {
            Some(id) => id,
            None => known.series(connection, feed, &page.points.series[envelope.series])?,
        };
        series[envelope.series] = Some(id);
        points.extend(envelope.rows.clone().map(|row| (id, version_of(page, row))));
    }
    let kept_from = feed.retention.kept_from;
    points.retain(|(_, row)| row.timestamp >= kept_from);
    let key = |(series, row): &SeriesPoint| (*series, row.timestamp);
    if !points.is_sorted_by(|one, next| key(one) < key(next)) {
        points.reverse();
        points.sort_by_key(key);
        points.dedup_by_key(|point| key(point));
    }
    Ok(points)
}

#[inline]
fn version_of(page: &Page, row: usize) -> PointVersion {
    let (numbers, count) = page.points.values(row);
    let (timestamp, values) = (page.points.timestamps.value(row), Values::new(numbers, count));
    PointVersion { timestamp, version: page.sequence, absent: false, values }
}

fn by_series(points: &[SeriesPoint]) -> impl Iterator<Item = &[SeriesPoint]> {
    points.chunk_by(|one, next| one.0 == next.0)
}

/// The length of a block in microseconds. If the bucket width is unknown, it is the smallest step
/// on the first page with points, within limits.
fn span(interval_seconds: Option<u32>, points: &[SeriesPoint]) -> i64 {
    if let Some(seconds) = interval_seconds.filter(|seconds| *seconds > 0) {
        return BUCKETS * i64::from(seconds) * SECOND;
    }
    let steps = by_series(points).flat_map(|rows| {
        rows.windows(2).map(|pair| pair[1].1.timestamp.saturating_sub(pair[0].1.timestamp))
    });
    let least = BUCKETS * SECOND;
    steps.min().map_or(DAY, |step| step.saturating_mul(BUCKETS).clamp(least, 32 * DAY))
}

fn in_blocks(points: &[SeriesPoint], span: i64) -> Vec<(BlockKey, Vec<PointVersion>)> {
    let key = |(series, row): &SeriesPoint| (*series, row.timestamp.div_euclid(span));
    let blocks = points.chunk_by(|one, next| key(one) == key(next));
    blocks.map(|rows| (key(&rows[0]), rows.iter().map(|(_, row)| *row).collect())).collect()
}
