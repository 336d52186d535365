//! Page requests: sequence numbers, late and repeated pages, blocks, and seen points.

use super::super::feeds::{Feeds, LARGEST};
use super::super::seen_log::KEPT;
use super::model::Model;
use super::*;

/// Applies the page as read at this minute.
fn apply(
    store: &Store,
    request: &Request,
    read_at: i64,
    interval_seconds: Option<u32>,
) -> Result<Applied> {
    let page = page(request.sequence, request.is_last, &request.points);
    request.apply_page(store, page, b"state", read_at, interval_seconds)
}

/// Points of series 1 at these minutes, all with the same value.
fn points(minutes: impl IntoIterator<Item = i64>, value: f64) -> Vec<Point> {
    minutes.into_iter().map(|minute| (1, minute, Some(value))).collect()
}

/// A page of a chain that began with `first`.
fn part(first: u64, sequence: u64, is_last: bool, minutes: &[i64]) -> Request {
    let points = points(minutes.iter().copied(), 1.0);
    Request { first, is_last, ..Request::whole(sequence, 0, 9, &points) }
}

#[test]
fn a_page_with_an_impossible_number_is_refused() {
    let folder = Folder::new();
    let store = folder.store();
    let page = |first, sequence| part(first, sequence, true, &[1]);
    for (first, sequence) in
        [(0, 0), (0, 1), (2, 1), (1, LARGEST + 1), (LARGEST + 1, LARGEST + 1), (1, u64::MAX)]
    {
        let applied = apply(&store, &page(first, sequence), 9, Some(60));
        assert_error(applied, Kind::StoreError, "began with");
        assert_eq!(store.feeds().unwrap(), Vec::<String>::new());
    }
    // An accepted page can be read.
    apply(&store, &page(LARGEST, LARGEST), 9, Some(60)).unwrap();
    assert_eq!((store.sequence("line").unwrap(), latest(&store).len()), (LARGEST, 1));
    store.check(&Watch::default()).unwrap();
}

#[test]
fn s7_a_forged_feed_out_of_range_is_refused() {
    for (span, sequence, pruned, is_valid) in [
        (0, LARGEST, LARGEST, true),
        (-1, 1, 1, false),
        (1, LARGEST + 1, 1, false),
        (1, 1, LARGEST + 1, false),
        (-1, LARGEST + 1, 1, false),
    ] {
        let folder = Folder::new();
        let store = folder.store();
        store.apply("line", None, b"state").unwrap();
        // The row has a valid checksum, and the digest of the feeds is valid.
        let connection = Connection::open(folder.file()).unwrap();
        let mut feeds = Feeds::load(&connection).unwrap();
        let mut feed = feeds.find_or_new("line");
        (feed.span, feed.sequence, feed.pruned) = (span, sequence, pruned);
        feeds.save(&connection, feed, b"state").unwrap();
        let read = store.feeds().map_err(|error| error.kind());
        let expected = if is_valid { Ok(vec!["line".to_owned()]) } else { Err(Kind::StoreCorrupt) };
        assert_eq!(read, expected, "{span} {sequence} {pruned}");
    }
}

#[test]
fn a_page_applied_again_changes_nothing() {
    let folder = Folder::new();
    let store = folder.store();
    let first = Request::whole(1, 0, 9, &points(0..7, 1.0));
    let again = [points(0..4, 1.0), points(4..7, 2.0), points(7..9, 2.0)].concat();
    let second = Request::whole(2, 0, 9, &again);
    apply(&store, &first, 100, Some(60)).unwrap();
    let applied = apply(&store, &second, 200, Some(60)).unwrap();
    assert_eq!(applied, Applied { inserted: 2, revised: 3, unchanged: 4, flagged: 0 });
    let applied = apply(&store, &second, 300, Some(60)).unwrap();
    assert_eq!(applied, Applied { unchanged: 9, ..Applied::default() });
    // The time of the first application counts.
    assert_eq!([199, 200, 300].map(|m| store.sequence_at("line", time_of(m)).unwrap()), [1, 2, 2]);
}

#[test]
fn the_interval_or_the_first_points_size_blocks() {
    const DAY: i64 = 24 * 60 * MINUTE;
    // Number of points, their step in microseconds, and the expected number of blocks.
    for (interval, count, step, blocks) in [
        (Some(60), 256, MINUTE, 2),
        (Some(7_200), 256, 120 * MINUTE, 2),
        (Some(3_600), 256, 120 * MINUTE, 4),
        (Some(0), 256, MINUTE, 2),
        (None, 256, MINUTE, 2),
        // At least 128 seconds, at most 32 days.
        (None, 2_000, 1_000, 1),
        (None, 257, 1_000_000, 3),
        (None, 65, DAY, 3),
    ] {
        let folder = Folder::new();
        let store = folder.store();
        let mut page = page(1, true, &[]);
        let mut table = TableBuilder::new(0);
        for row in 0..count {
            table.push(row * step, [Some(1.0), None, None], None);
        }
        table.series(&identity(1));
        page.points = Arc::new(table.finish().unwrap());
        let request = Request::whole(1, 0, 1, &[]);
        request.apply_page(&store, page, b"", 9, interval).unwrap();
        let made = folder.number("SELECT COUNT(*) FROM contents");
        assert_eq!(made, blocks, "{interval:?}, {count} in steps of {step}");
        let mut reader = store.read("line", all(View::Latest, Flagged::Keep)).unwrap();
        let read = reader.next_batch(usize::MAX).unwrap().unwrap();
        assert_eq!(i64::try_from(read.num_rows()).unwrap(), count);
    }
}

#[test]
fn a_feed_keeps_its_blocks_when_its_interval_changes() {
    let folder = Folder::new();
    let store = folder.store();
    for (sequence, interval, inserted, revised) in
        [(1, Some(60), 300, 0), (2, Some(3_600), 0, 300), (3, None, 0, 300)]
    {
        let request = Request::whole(sequence, 0, 300, &points(0..300, value(sequence)));
        let applied = apply(&store, &request, 9, interval).unwrap();
        assert_eq!((applied.inserted, applied.revised), (inserted, revised), "{interval:?}");
        let read = latest(&store);
        let minutes: Vec<i64> = read.iter().map(|row| row.1).collect();
        assert_eq!(minutes, (0..300).collect::<Vec<_>>());
        assert!(read.iter().all(|row| row.2 == Some(value(sequence).to_bits())));
    }
    store.check(&Watch::default()).unwrap();
}

#[test]
fn a_range_flags_nothing_in_the_next_block() {
    let folder = Folder::new();
    let store = folder.store();
    Request::whole(1, 0, 300, &points(0..300, 1.0)).apply_to(&store, b"").unwrap();
    for (sequence, start, end, flagged) in [(2, 0, 128, 128), (3, 128, 128, 0), (4, 128, 129, 1)] {
        let applied = Request::whole(sequence, start, end, &[]).apply_to(&store, b"").unwrap();
        assert_eq!(applied, Applied { flagged, ..Applied::default() }, "{start}..{end}");
    }
    assert_eq!(latest(&store)[0].1, 129);
}

#[test]
fn every_64th_page_deletes_old_seen_points() {
    // The two pages of a chain in order, then in reverse order.
    for order in [[1, 2], [2, 1]] {
        let folder = Folder::new();
        let store = folder.store();
        for sequence in order {
            part(1, sequence, sequence == 2, &[1]).apply_to(&store, b"").unwrap();
        }
        for sequence in KEPT + 3..KEPT + 64 {
            part(sequence, sequence, true, &[1]).apply_to(&store, b"").unwrap();
        }
        let kept = || folder.number("SELECT COUNT(*) FROM seen");
        assert_eq!(kept(), 63, "{order:?}");
        part(KEPT + 64, KEPT + 64, true, &[1]).apply_to(&store, b"").unwrap();
        assert_eq!(kept(), 62, "{order:?}");
        // Another process sees from the generation that its cache is outdated.
        assert_eq!(folder.number("SELECT generation FROM feeds"), 64);
        store.check(&Watch::default()).unwrap();
    }
}

#[test]
fn s11_late_pages_agree_with_the_model() {
    let whole = |sequence, minutes: &[i64]| part(sequence, sequence, true, minutes);
    for (about, requests, flagged) in [
        (
            "a newer page brought the point: flagged in between, and not counted",
            vec![whole(1, &[1]), whole(5, &[1]), whole(3, &[])],
            vec![0, 0, 0],
        ),
        (
            "the point is flagged already, now from an older page on",
            vec![whole(1, &[1]), whole(5, &[]), whole(3, &[])],
            vec![0, 1, 0],
        ),
        (
            "the last page of a chain, after a later page brought the point",
            vec![whole(1, &[1]), part(2, 2, false, &[2]), whole(6, &[1, 2]), part(2, 4, true, &[])],
            vec![0, 0, 0, 0],
        ),
        (
            "a page before the chain that flagged the point brings another one",
            vec![whole(1, &[1]), whole(5, &[]), whole(3, &[1, 2]), whole(2, &[3])],
            vec![0, 1, 0, 0],
        ),
        (
            "another chain brought the point between the pages of this one",
            vec![
                whole(1, &[1]),
                part(2, 2, false, &[2]),
                part(2, 3, false, &[3]),
                whole(4, &[1, 2, 3]),
                part(2, 5, false, &[4]),
                part(2, 6, true, &[5]),
            ],
            vec![0; 6],
        ),
        (
            "no other page is between the pages of the chain",
            vec![
                whole(1, &[1]),
                part(2, 2, false, &[2]),
                part(2, 3, false, &[3]),
                part(2, 4, true, &[4]),
            ],
            vec![0, 0, 0, 1],
        ),
    ] {
        let folder = Folder::new();
        let (store, mut model) = (folder.store(), Model::default());
        let mut counted = Vec::new();
        for request in &requests {
            counted.push(request.apply_to(&store, b"").unwrap().flagged);
            model.add(request);
        }
        assert_eq!(counted, flagged, "{about}");
        model.assert_agrees(&store);
    }
}
