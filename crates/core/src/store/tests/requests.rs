//! Page requests: sequence numbers and blocks.

use super::super::feeds::LARGEST;
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

/// Points of series 1.
fn points(minutes: impl IntoIterator<Item = i64>, value: f64) -> Vec<Point> {
    minutes.into_iter().map(|minute| (1, minute, Some(value))).collect()
}

#[test]
fn a_page_with_an_impossible_number_is_refused() {
    let (_folder, store) = new_store();
    let page =
        |first, sequence| Request { first, ..Request::whole(sequence, 0, 9, &[(1, 1, Some(1.0))]) };
    for (first, sequence) in
        [(0, 0), (0, 1), (2, 1), (1, LARGEST + 1), (LARGEST + 1, LARGEST + 1), (1, u64::MAX)]
    {
        let applied = apply(&store, &page(first, sequence), 9, Some(60));
        assert_error(applied, Kind::StoreError, "began with");
        assert_eq!(store.feeds().unwrap(), Vec::<String>::new());
    }
    apply(&store, &page(LARGEST, LARGEST), 9, Some(60)).unwrap();
    assert_eq!((store.sequence("line").unwrap(), latest(&store).len()), (LARGEST, 1));
    store.check(&Watch::default()).unwrap();
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
        let (folder, store) = new_store();
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
        let mut reader = store.read("line", all(View::LATEST, Flagged::Keep)).unwrap();
        let read = reader.next_batch(usize::MAX).unwrap().unwrap();
        assert_eq!(i64::try_from(read.num_rows()).unwrap(), count);
    }
}

#[test]
fn a_feed_keeps_its_blocks_when_its_interval_changes() {
    let (_folder, store) = new_store();
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
    let (_folder, store) = new_store();
    Request::whole(1, 0, 300, &points(0..300, 1.0)).apply_to(&store, b"").unwrap();
    for (sequence, start, end, flagged) in [(2, 0, 128, 128), (3, 128, 128, 0), (4, 128, 129, 1)] {
        let applied = Request::whole(sequence, start, end, &[]).apply_to(&store, b"").unwrap();
        assert_eq!(applied, Applied { flagged, ..Applied::default() }, "{start}..{end}");
    }
    assert_eq!(latest(&store)[0].1, 129);
}
