//! One page and the state that follows from it, in one transaction (§4.5.2).

use std::collections::BTreeMap;

use arrow_array::Array as _;
use rusqlite::Connection;

use super::block::{PointVersion, Values};
use super::directory::{BlockKey, FeedIndex};
use super::failure::{StoreFailure, StoreResult};
use super::feeds::{FeedRow, Feeds, LARGEST};
use super::page_merge::{Limits, PageMerge};
use super::pages::{self, LaterPages, PageRow};
use super::seen;
use super::target::{Applied, Delivery};
use super::written::KnownFeed;
use crate::data::{Envelope, Page, PointColumns};

/// Buckets in a block. With fewer, the file grows and lookups take longer. With more, each changed
/// point rewrites more bytes: with many series, a page changes only a few points of each block.
const BUCKETS: i64 = 128;
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Old seen points are deleted once per this many pages.
const PRUNE_EVERY: i64 = 64;

/// Writes a page and the state, without the commit. What is known of the feed is passed by value: a
/// failure drops it, because it may contain what was rolled back. So may the feeds.
pub(super) fn apply(
    connection: &Connection,
    (feeds, known): (&mut Feeds, Option<KnownFeed>),
    name: &str,
    delivery: Option<&Delivery<'_>>,
    state: &[u8],
    limits: Limits,
) -> StoreResult<(Option<KnownFeed>, Applied)> {
    let mut feed = feeds.find_or_new(name);
    let Some(delivery) = delivery else {
        feeds.save(connection, feed, state)?;
        return Ok((known, Applied::default()));
    };
    let mut known = match known {
        Some(known) if known.index.generation == feed.generation => known,
        _ => KnownFeed::load(connection, &feed)?,
    };
    let applied = deliver(connection, &mut known, &mut feed, delivery, limits)?;
    known.index.generation = feed.generation;
    feeds.save(connection, feed, state)?;
    Ok((Some(known), applied))
}

fn deliver(
    connection: &Connection,
    known: &mut KnownFeed,
    feed: &mut FeedRow,
    delivery: &Delivery<'_>,
    limits: Limits,
) -> StoreResult<Applied> {
    let mut log = log_row(delivery)?;
    let late = log.sequence <= feed.sequence;
    if late
        && let Some(done) = pages::after(connection, feed.id, log.sequence - 1)?.first()
        && done.sequence == log.sequence
    {
        // The page was applied before, but its caller did not learn of the commit. A different page
        // with this number is refused: it would be lost.
        if (PageRow { tally: done.tally, read_at: done.read_at, ..log }) != *done {
            let what = format!("another page with the number {} is stored already", log.sequence);
            return Err(StoreFailure::Refused(what, "Give each page request its own number."));
        }
        let Applied { inserted, revised, unchanged, .. } = done.tally;
        return Ok(Applied { unchanged: inserted + revised + unchanged, ..Applied::default() });
    }
    let points = points(connection, &mut known.index, feed, delivery.page)?;
    if feed.span == 0 && !points.is_empty() {
        feed.span = span(delivery.interval_seconds, &points);
    }
    let timestamps: Vec<(i64, Vec<i64>)> = points
        .iter()
        .map(|(series, rows)| (*series, rows.iter().map(|row| row.timestamp).collect()))
        .collect();
    let runs = seen::encode(timestamps.iter().map(|(series, times)| (*series, times.as_slice())));
    if (late || log.is_last) && !known.index.seen {
        pages::verify_seen(connection, feed)?;
        known.index.seen = true;
    }
    let later =
        if late { LaterPages::load(connection, feed, &log, &runs)? } else { LaterPages::default() };
    let brought =
        if log.is_last { pages::since_chain(connection, feed.id, &log, &runs)? } else { None };
    let finished = if log.is_last { log.sequence } else { later.finished(log.chain) };
    let incoming = in_blocks(points, feed.span);
    let page_merge = PageMerge::new(connection, known, feed, log, limits)?;
    log.tally = page_merge.run(incoming, late.then_some(&later), brought.as_ref())?;
    log.save(connection, feed)?;
    pages::save_seen(connection, feed, &log, finished, runs)?;
    feed.sequence = feed.sequence.max(log.sequence);
    feed.generation += 1;
    if feed.generation % PRUNE_EVERY == 0 {
        pages::prune_seen(connection, feed)?;
    }
    Ok(log.tally)
}

fn log_row(delivery: &Delivery<'_>) -> StoreResult<PageRow> {
    let (page, chain) = (delivery.page, delivery.chain);
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

/// A page's points by series, sorted and without duplicates: of two rows the later one wins.
fn points(
    connection: &Connection,
    known: &mut FeedIndex,
    feed: &mut FeedRow,
    page: &Page,
) -> StoreResult<BTreeMap<i64, Vec<PointVersion>>> {
    let mut series: Vec<Option<i64>> = Vec::new();
    let mut points: BTreeMap<i64, Vec<PointVersion>> = BTreeMap::new();
    for envelope in page.points.envelopes.iter().filter(|envelope| !envelope.rows.is_empty()) {
        if series.len() <= envelope.series {
            series.resize(envelope.series + 1, None);
        }
        let id = match series[envelope.series] {
            Some(id) => id,
            None => known.series(connection, feed, &page.points.series[envelope.series])?,
        };
        series[envelope.series] = Some(id);
        read_rows(page, envelope, points.entry(id).or_default());
    }
    for rows in points.values_mut() {
        if !rows.is_sorted_by(|one, next| one.timestamp < next.timestamp) {
            rows.reverse();
            rows.sort_by_key(|row| row.timestamp);
            rows.dedup_by_key(|row| row.timestamp);
        }
    }
    Ok(points)
}

fn read_rows(page: &Page, envelope: &Envelope, rows: &mut Vec<PointVersion>) {
    let PointColumns { timestamps, numbers, sample_counts: counts, .. } = &*page.points;
    rows.extend(envelope.rows.clone().map(|row| {
        let number = numbers.each_ref().map(|array| array.is_valid(row).then(|| array.value(row)));
        let count = counts.is_valid(row).then(|| counts.value(row));
        let values = Values::new(number, count);
        let timestamp = timestamps.value(row);
        PointVersion { timestamp, version: page.sequence, absent: false, values }
    }));
}

/// How much time a block spans, in microseconds: [`BUCKETS`] times the bucket width. Where no width
/// is known, the smallest step on the first page with points takes its place, within limits.
fn span(interval_seconds: Option<u32>, points: &BTreeMap<i64, Vec<PointVersion>>) -> i64 {
    if let Some(seconds) = interval_seconds.filter(|seconds| *seconds > 0) {
        return BUCKETS * i64::from(seconds) * SECOND;
    }
    let steps = points.values().flat_map(|rows| {
        rows.windows(2).map(|pair| pair[1].timestamp.saturating_sub(pair[0].timestamp))
    });
    let least = BUCKETS * SECOND;
    steps.min().map_or(DAY, |step| step.saturating_mul(BUCKETS).clamp(least, 32 * DAY))
}

fn in_blocks(
    points: BTreeMap<i64, Vec<PointVersion>>,
    span: i64,
) -> BTreeMap<BlockKey, Vec<PointVersion>> {
    let mut blocks = BTreeMap::new();
    for (series, rows) in points {
        let stretch = |row: &PointVersion| row.timestamp.div_euclid(span);
        for rows in rows.chunk_by(|one, next| stretch(one) == stretch(next)) {
            blocks.insert((series, stretch(&rows[0])), rows.to_vec());
        }
    }
    blocks
}
