//! Compares the arrivals in the page log with the histories in the blocks.

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::block::PointVersion;
use super::super::pages::PageRow;
use super::model::{limits, requests};
use super::*;

/// Counts the delays point by point from all blocks.
fn counted(store: &Store, width: i64) -> Delays {
    let count = |connection: &Connection| {
        let feeds = Feeds::load(connection)?;
        let feed = feeds.known("line")?;
        let log = pages::all(connection, feed)?;
        let known = FeedIndex::load(connection, feed)?;
        let mut directory = Directory::new(connection, feed.id)?;
        let mut delays = Delays::default();
        let found = FoundBlocks::load(connection, &known, feed, &Ranges::all(), None)?;
        for block in &found.blocks {
            let rows = found.rows(&mut directory, *block)?;
            for history in rows.chunk_by(|one, next| one.timestamp == next.timestamp) {
                for (index, row) in history.iter().enumerate() {
                    if index > 0 && history[index - 1].values == row.values {
                        continue;
                    }
                    let Some(sighting) = sighting(row, &log, width) else { continue };
                    let kind = if index == 0 { &mut delays.points } else { &mut delays.revisions };
                    *kind.entry(sighting).or_insert(0) += 1;
                }
            }
        }
        Ok(delays)
    };
    store.snapshot(count).unwrap()
}

/// The reads around the page that brought a row, or `None` if no complete read has its bucket.
fn sighting(row: &PointVersion, log: &[PageRow], width: i64) -> Option<Sighting> {
    let by_number: HashMap<u64, &PageRow> = log.iter().map(|page| (page.sequence, page)).collect();
    let page = by_number[&row.version];
    let age = |at: i64| Age::of_seconds((at - row.timestamp - width).div_euclid(1_000_000));
    let complete =
        |last: &&PageRow| last.is_last && (last.start..last.end).contains(&row.timestamp);
    let began = |last: &PageRow| by_number.get(&last.chain).unwrap_or(&last).read_at;
    let before = log.iter().filter(complete).rfind(|last| last.sequence < page.chain);
    let looked = log.iter().filter(complete).map(|last| age(began(last))).max()?;
    let by = age(page.read_at);
    Some(Sighting { after: before.map(|last| age(began(last))), by, looked: looked.max(by) })
}

/// Asserts that the page log agrees with the blocks.
pub(super) fn assert_agree(store: &Store) {
    for width in [MINUTE, 1_500_000, 600 * MINUTE] {
        assert_eq!(store.delays("line", width).unwrap(), counted(store, width));
    }
    store.check(&Watch::default()).unwrap();
}

proptest! {
    #![proptest_config(crate::test_kit::cases(60))]

    #[test]
    fn arrivals_agree_with_the_blocks_in_any_order(
        (requests, order) in prop_oneof![requests(3), requests(9)].prop_flat_map(|requests| {
            let order: Vec<usize> = (0..requests.len()).collect();
            let shuffled = Just(order.clone()).prop_shuffle();
            (Just(requests), prop_oneof![Just(order), shuffled])
        }),
        limits in limits(),
    ) {
        let folder = Folder::new();
        let store = folder.store_with(limits);
        for index in order {
            requests[index].apply_to(&store, b"state").unwrap();
            assert_agree(&store);
        }
        drop(store);
        assert_agree(&folder.store());
    }

    #[test]
    fn a_run_counts_like_its_timestamps(
        start in -40..40_i64, length in 1..400_i64, step in 1..90_i64,
        chains in prop::collection::vec((-50..400_i64, 1..400_i64), 0..6),
    ) {
        let (_folder, store) = new_store();
        let points: Vec<Point> =
            (0..length).map(|index| (1, start + index * step, Some(1.0))).collect();
        let most = points[points.len() - 1].1;
        // The first half arrives with the first page, and is read again after minutes to weeks.
        let half = points.len() / 2;
        Request::whole(1, start, most / 2, &points[..half]).apply_to(&store, b"").unwrap();
        for ((from, length), sequence) in chains.iter().zip(2..) {
            Request::whole(sequence, *from, from + length * step, &points)
                .apply_to(&store, b"").unwrap();
        }
        Request::whole(9, start, most + 1, &points).apply_to(&store, b"").unwrap();
        assert_agree(&store);
    }
}

#[test]
fn s10_lateness_needs_only_the_page_log() {
    let (folder, store) = new_store();
    let points = |minutes: std::ops::Range<i64>, value| -> Vec<Point> {
        (0..9).flat_map(|s| minutes.clone().map(move |m| (s, m, Some(value)))).collect()
    };
    Request::whole(1, 0, 500, &points(0..500, 1.0)).apply_to(&store, b"").unwrap();
    Request::whole(2, 400, 600, &points(400..600, 2.0)).apply_to(&store, b"").unwrap();
    Request::whole(3, 0, 600, &points(0..600, 2.0)).apply_to(&store, b"").unwrap();
    Request::whole(4, 0, 600, &points(0..600, 2.0)).apply_to(&store, b"").unwrap();
    let delays = store.delays("line", MINUTE).unwrap();
    assert_eq!(delays.points.values().sum::<u64>(), 9 * 600);
    assert_eq!(delays.revisions.values().sum::<u64>(), 9 * 500);
    assert_agree(&store);
    // A page on a grid takes a few bytes, whatever its points are.
    assert!(folder.number("SELECT MAX(LENGTH(arrivals)) FROM pages") < 40);
    let last = folder.number("SELECT LENGTH(arrivals) FROM pages WHERE sequence = 4");
    assert_eq!(last, 1, "it brought nothing new");
    folder.execute("DELETE FROM contents; DELETE FROM shelves");
    assert_eq!(store.delays("line", MINUTE).unwrap(), delays);
}

#[test]
fn s22_lateness_covers_exactly_the_kept_points() {
    let fill = |store: &Store, kept: std::ops::Range<i64>| {
        for (sequence, from, to) in [(1, 0, 300), (2, 200, 600), (3, 0, 600), (4, 100, 700)] {
            let minutes = (from..to).filter(|minute| kept.contains(minute));
            let points: Vec<Point> = minutes.map(|m| (1, m, Some(value(sequence)))).collect();
            Request::whole(sequence, from, to, &points).apply_to(store, b"").unwrap();
        }
    };
    let (folder, other) = (Folder::new(), Folder::new());
    let (store, same) = (folder.store(), other.store());
    fill(&store, 0..700);
    fill(&same, 350..700);
    let before = store.delays("line", MINUTE).unwrap();
    store.compact("line", Range::new(0, 600 * MINUTE).into(), &Watch::default()).unwrap();
    assert_eq!(store.delays("line", MINUTE).unwrap(), before, "versions are not needed");
    store.forget("line", 350 * MINUTE, b"", &Watch::default()).unwrap();
    assert_eq!(store.delays("line", MINUTE).unwrap(), same.delays("line", MINUTE).unwrap());
    store.check(&Watch::default()).unwrap();
}
