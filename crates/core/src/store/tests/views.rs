//! Reading: order, ranges, batches, delays.

use arrow_array::RecordBatchReader;

use super::*;

fn filled(folder: &Folder) -> Store {
    let store = folder.store();
    let mut points: Vec<Point> = Vec::new();
    for series in [2, 0, 1] {
        points.extend((0..1_500).map(|minute| (series, minute, Some(f64::from(series)))));
    }
    Request::whole(1, 0, 1_500, &points).apply_to(&store, b"").unwrap();
    store
}

#[test]
fn a_range_returns_exactly_its_points() {
    let folder = Folder::new();
    let store = filled(&folder);
    let ranges = [(-5, 1), (510, 514), (1_499, 9_999)].map(|(a, b)| (a * MINUTE, b * MINUTE));
    let filter = PointFilter { ranges: Some(ranges.to_vec()), ..all(View::Latest, Flagged::Keep) };
    let minutes: Vec<i64> = read(&store, filter).unwrap().iter().map(|row| row.1).collect();
    assert_eq!(minutes, [0, 510, 511, 512, 513, 1_499].repeat(3));
    let none = PointFilter { ranges: Some(Vec::new()), ..all(View::Latest, Flagged::Keep) };
    assert_eq!(read(&store, none).unwrap(), []);
    let ranges = [(-5, 0), (0, 1), (1_499, 1_500), (1_500, 9_999), (i64::MIN / MINUTE, 9_999)];
    let held = store.holds("line", &ranges.map(|(a, b)| (a * MINUTE, b * MINUTE))).unwrap();
    assert_eq!(held, [false, true, true, false, true]);
    assert_eq!(store.holds("other", &[(0, 1)]).unwrap(), [false]);
}

#[test]
fn the_smallest_and_the_largest_timestamp_are_stored() {
    let folder = Folder::new();
    let store = folder.store();
    let mut page = page(1, true, &[(1, 0, Some(1.0)), (1, 1, Some(2.0))]);
    let mut table = TableBuilder::new(2);
    for timestamp in [i64::MAX, i64::MIN] {
        table.push(timestamp, [Some(f64::MIN), Some(-0.0), None], None);
    }
    table.series(&identity(1));
    page.points = Arc::new(table.finish().unwrap());
    let chain = ChainRange { first: 1, start: Timestamp::MIN, end: Timestamp::MAX };
    let delivery = Delivery {
        batch_first: page.sequence,
        page: Arc::new(page),
        read_at: time_of(9),
        chain,
        interval_seconds: Some(60),
        is_only_chain: true,
    };
    assert_eq!(store.apply("line", Some(&delivery), b"").unwrap().inserted, 2);
    assert_eq!(store.apply("line", Some(&delivery), b"").unwrap().unchanged, 2);
    store.check(&Watch::default()).unwrap();
    let mut reader = store.read("line", all(View::Latest, Flagged::Keep)).unwrap();
    assert_eq!(reader.next_batch(usize::MAX).unwrap().unwrap().num_rows(), 2);
}

#[test]
fn a_reader_can_return_one_batch() {
    let folder = Folder::new();
    let store = filled(&folder);
    let mut reader = store.read("line", all(View::Latest, Flagged::Keep)).unwrap();
    assert_eq!(reader.next_batch(usize::MAX).unwrap().unwrap().num_rows(), 4_500);
    assert!(reader.next_batch(usize::MAX).unwrap().is_none());
    let reader: Box<dyn RecordBatchReader + Send + 'static> =
        Box::new(store.read("line", all(View::ChangedSince(0), Flagged::Keep)).unwrap());
    let schema = reader.schema();
    assert_eq!(schema.fields().last().unwrap().name(), "change");
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    assert!(batches.iter().all(|batch| batch.schema() == schema));
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 4_500);
}

#[test]
fn the_directory_estimates_the_number_of_points() {
    let folder = Folder::new();
    let store = filled(&folder);
    let points = |view, flagged, minutes: Option<(i64, i64)>| {
        let ranges = minutes.map(|(from, to)| vec![(from * MINUTE, to * MINUTE)]);
        let filter = PointFilter { ranges, ..all(view, flagged) };
        let mut reader = store.read("line", filter).unwrap();
        reader.find_blocks().unwrap();
        reader.likely_points()
    };
    assert_eq!(points(View::Latest, Flagged::Keep, None), 4_500);
    assert_eq!(points(View::Latest, Flagged::Only, None), 0);
    assert_eq!(points(View::AsOf(1), Flagged::Keep, None), 4_500);
    assert_eq!(points(View::ChangedSince(0), Flagged::Keep, None), 4_500);
    assert_eq!(points(View::Latest, Flagged::Keep, Some((130, 131))), 3);
    assert_eq!(points(View::Latest, Flagged::Keep, Some((0, 192))), 3 * 192);
    Request::whole(2, 0, 1_500, &[(1, 3, Some(9.0))]).apply_to(&store, b"").unwrap();
    assert_eq!(points(View::Latest, Flagged::Only, None), 4_499);
    assert_eq!(points(View::AsOf(1), Flagged::Keep, None), 4_500);
    // Only the block shows which of its points have changed or were withdrawn before.
    assert_eq!(points(View::ChangedSince(1), Flagged::Keep, None), 0);
    assert_eq!(points(View::AsOf(1), Flagged::Only, None), 0);
    let mut reader = store.read("line", all(View::Latest, Flagged::Keep)).unwrap();
    assert_eq!(reader.next_batch(1_500).unwrap().unwrap().num_rows(), 1_500);
    assert_eq!(reader.likely_points(), 3_000, "the remaining points");
}

#[test]
fn a_reader_keeps_its_snapshot_while_pages_are_applied() {
    let folder = Folder::new();
    let store = filled(&folder);
    let mut reader = store.read("line", all(View::Latest, Flagged::Drop)).unwrap();
    let mut read = rows(&reader.next_batch(1).unwrap().unwrap());
    Request::whole(2, 0, 1_500, &[(1, 3, Some(9.0))]).apply_to(&store, b"").unwrap();
    while let Some(batch) = reader.next_batch(1_000).unwrap() {
        read.extend(rows(&batch));
    }
    assert_eq!(read.len(), 4_500);
    assert_eq!(latest(&store), [(1, 3, Some(9.0_f64.to_bits()), None)]);
}

#[test]
fn a_change_has_a_kind() {
    let folder = Folder::new();
    let store = folder.store();
    let point = |minute, value| (1, minute, Some(value));
    for (sequence, points) in [
        (1, vec![point(1, 1.0), point(2, 1.0), point(3, 1.0)]),
        (2, vec![point(3, 2.0), point(4, 1.0)]),
        (3, vec![point(2, 1.0), point(3, 2.0), point(4, 1.0)]),
    ] {
        Request::whole(sequence, 0, 9, &points).apply_to(&store, b"").unwrap();
    }
    for (since, expected) in [
        (0, vec![(1, "withdrawn"), (2, "new"), (3, "new"), (4, "new")]),
        (1, vec![(1, "withdrawn"), (2, "revised"), (3, "revised"), (4, "new")]),
        (2, vec![(2, "returned")]),
        (3, vec![]),
    ] {
        let changes = read(&store, all(View::ChangedSince(since), Flagged::Keep)).unwrap();
        let changes: Vec<(i64, &str)> =
            changes.iter().map(|row| (row.1, row.3.as_deref().unwrap())).collect();
        assert_eq!(changes, expected, "since {since}");
    }
}

#[test]
fn a_batch_ends_with_the_block_that_completes_it() {
    let folder = Folder::new();
    let store = filled(&folder);
    // 1,500 points of a series fill blocks of 128 and one of 92.
    for (asked, given) in [(1, 128), (128, 128), (129, 256), (1_500, 1_500), (1_501, 1_628)] {
        let mut reader = store.read("line", all(View::Latest, Flagged::Keep)).unwrap();
        assert_eq!(reader.next_batch(asked).unwrap().unwrap().num_rows(), given, "{asked}");
    }
}

#[test]
fn ranges_that_only_touch_do_not_overlap() {
    use super::super::found_blocks::overlapping;
    let ranges = [0..5, 10..15, 20..25];
    for (times, expected) in [
        (5..10, 0..0),
        (4..10, 0..1),
        (5..11, 1..2),
        (4..11, 0..2),
        (11..12, 1..2),
        (25..99, 0..0),
        (-9..0, 0..0),
        (-9..99, 0..3),
    ] {
        assert_eq!(overlapping(&ranges, &times), &ranges[expected], "{times:?}");
    }
}

#[test]
fn a_page_without_points_flags_what_was_there() {
    let folder = Folder::new();
    let store = filled(&folder);
    let applied = Request::whole(2, 10, 20, &[]).apply_to(&store, b"").unwrap();
    assert_eq!(applied, Applied { flagged: 30, ..Applied::default() });
    let flagged = read(&store, all(View::Latest, Flagged::Only)).unwrap();
    assert_eq!(flagged.len(), 30);
    assert!(flagged.iter().all(|row| (10..20).contains(&row.1)));
    // A point is flagged once.
    let applied = Request::whole(3, 10, 20, &[]).apply_to(&store, b"").unwrap();
    assert_eq!(applied, Applied::default());
}

#[test]
fn sequence_at_returns_the_last_page_read() {
    let folder = Folder::new();
    let store = folder.store();
    for sequence in [1, 2, 5] {
        Request::whole(sequence, 0, 9, &[]).apply_to(&store, b"").unwrap();
    }
    let sequence_at = |minute| store.sequence_at("line", time_of(minute)).unwrap();
    assert_eq!([10_000, 10_001, 10_004, 10_005].map(sequence_at), [0, 1, 2, 5]);
    assert_eq!(store.sequence_at("other", time_of(99_999)).unwrap(), 0);
}

/// Bucket 100 ends at minute 101; request n was read at minute 10,000 + n.
#[test]
fn s10_the_reads_around_each_value_are_found() {
    let folder = Folder::new();
    let store = folder.store();
    let put = |request: Request| request.apply_to(&store, b"").unwrap();
    put(Request::whole(1, 0, 200, &[(1, 100, Some(1.0))]));
    // A chain of two pages. Nothing was late for its first page.
    let page = Request::whole(2, 200, 400, &[(1, 300, Some(1.0))]);
    put(Request { is_last: false, ..page.clone() });
    put(Request { sequence: 3, points: vec![(1, 301, Some(1.0))], ..page });
    // One late point, one revision, then points that return with the same values.
    put(Request::whole(4, 0, 200, &[(1, 100, Some(2.0)), (1, 99, Some(5.0))]));
    put(Request::whole(5, 0, 200, &[(1, 99, Some(5.0))]));
    put(Request::whole(6, 0, 400, &[(1, 99, Some(5.0)), (1, 100, Some(2.0)), (1, 302, Some(0.0))]));
    let delays = store.delays("line", MINUTE).unwrap();
    let age = |minute: i64, request: i64| Age::of_seconds((10_000 + request - minute - 1) * 60);
    let seen = |minute, after: Option<i64>, by| {
        let after = after.map(|request| age(minute, request));
        Sighting { after, by: age(minute, by), looked: age(minute, 6) }
    };
    let counted = |seen: &[Sighting]| {
        let mut counts = Sightings::new();
        for seen in seen {
            *counts.entry(*seen).or_insert(0) += 1;
        }
        counts
    };
    let points = [
        seen(100, None, 1),
        seen(300, None, 2),
        // The second page of a chain counts as read with its first page.
        seen(301, None, 3),
        seen(99, Some(1), 4),
        seen(302, Some(2), 6),
    ];
    assert_eq!(delays.points, counted(&points));
    assert_eq!(delays.revisions, counted(&[seen(100, Some(1), 4)]));
}

#[test]
fn s10_ages_are_steps_of_five_percent() {
    for seconds in [0, 1, 9, 10, 11, 60, 3_600, 86_400, 30 * 86_400, i64::MAX] {
        let age = Age::of_seconds(seconds);
        #[expect(clippy::cast_precision_loss, reason = "a step is 5 % wide")]
        let seconds = seconds as f64;
        assert!(age.seconds() >= seconds.min(1e22) || age.0 == 1_000, "{seconds}");
        assert!(age.0 == 0 || age.seconds() <= 1.051 * seconds, "{seconds}");
    }
}

#[test]
fn series_are_picked_by_any_of_their_ids() {
    let folder = Folder::new();
    let store = folder.store();
    let points = [(0, 1, Some(1.0)), (1, 1, Some(1.0)), (2, 1, Some(1.0)), (2, 700, None)];
    Request::whole(1, 0, 900, &points).apply_to(&store, b"").unwrap();
    let text = |ids: &[&str]| Some(ids.iter().map(|id| (*id).to_owned()).collect());
    let picked = |series: SeriesFilter| {
        let filter = PointFilter { series, ..all(View::Latest, Flagged::Keep) };
        let rows = read(&store, filter).map_err(|error| (error.kind(), error.to_string()))?;
        Ok::<_, (Kind, String)>(rows.into_iter().map(|row| (row.0, row.1)).collect::<Vec<_>>())
    };
    let none = SeriesFilter::default();
    let tag = |ids: &[&str]| SeriesFilter { tag: text(ids), ..none.clone() };
    assert_eq!(picked(tag(&["t2"])).unwrap(), [(2, 1), (2, 700)]);
    assert_eq!(picked(tag(&["t2", "t1", "t1"])).unwrap(), [(1, 1), (2, 1), (2, 700)]);
    assert_eq!(picked(tag(&[])).unwrap(), []);
    let machine = SeriesFilter { machine: text(&["M"]), ..tag(&["t1"]) };
    assert_eq!(picked(machine).unwrap(), [(1, 1)]);
    let device = SeriesFilter { device: text(&[""]), ..none.clone() };
    assert_eq!(picked(device).unwrap().len(), 4);
    // No series has both ids.
    let apart = SeriesFilter { series: Some(vec![ids_of(0)]), ..tag(&["t1"]) };
    assert_eq!(picked(apart).unwrap(), []);
    let without_tag = SeriesFilter { series: Some(vec![ids_of(0), ids_of(1)]), ..none.clone() };
    assert_eq!(picked(without_tag).unwrap(), [(0, 1), (1, 1)]);
    for (filter, what) in [
        (tag(&["t1", "t9"]), "no tag \"t9\""),
        (SeriesFilter { machine: text(&["m"]), ..none.clone() }, "no machine \"m\""),
        (SeriesFilter { device: text(&["D"]), ..tag(&["t9"]) }, "no device \"D\""),
        (SeriesFilter { series: Some(vec![ids_of(9)]), ..none }, "no series (S, None, M, , t9)"),
    ] {
        let (kind, text) = picked(filter).unwrap_err();
        assert!(kind == Kind::QueryError && text.contains(what), "{text}");
    }
}

#[test]
fn a_series_reads_only_its_blocks() {
    let folder = Folder::new();
    let store = folder.store_with(RecentLimits { few: 0, ..RecentLimits::default() });
    let points: Vec<Point> =
        (0..40).flat_map(|s| (0..40).map(move |m| (s, m * 16, Some(1.0)))).collect();
    Request::whole(1, 0, 700, &points).apply_to(&store, b"").unwrap();
    Request::whole(2, 600, 700, &[]).apply_to(&store, b"").unwrap();
    // Without their bytes no block can be read.
    let connection = Connection::open(folder.file()).unwrap();
    let spoil = "UPDATE contents SET bytes = x'00' WHERE id NOT IN (
        SELECT id FROM contents ORDER BY id LIMIT 5)";
    connection.execute_batch(spoil).unwrap();
    let one = SeriesFilter { series: Some(vec![ids_of(0)]), ..SeriesFilter::default() };
    let filter = PointFilter { series: one, ..all(View::Latest, Flagged::Keep) };
    assert_eq!(read(&store, filter).unwrap().len(), 40);
    for (view, flagged, expected) in [
        (View::Latest, Flagged::Keep, 1_600),
        (View::Latest, Flagged::Drop, 1_600 - 80),
        (View::AsOf(0), Flagged::Keep, 0),
        (View::AsOf(2), Flagged::Only, 80),
        (View::ChangedSince(0), Flagged::Keep, 1_600),
        (View::ChangedSince(2), Flagged::Keep, 0),
    ] {
        let count = store.read("line", all(view, flagged)).unwrap().count_points().unwrap();
        assert_eq!(count, expected, "{view:?} {flagged:?}");
    }
    let none = read(&store, all(View::AsOf(0), Flagged::Keep)).unwrap();
    assert_eq!(none, [], "later blocks are not read");
    assert!(read(&store, all(View::Latest, Flagged::Keep)).is_err());
}
