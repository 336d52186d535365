//! Reading: order, ranges, batches, delays.

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
    let range = |(a, b): (i64, i64)| Range::new(a * MINUTE, b * MINUTE);
    let ranges = [(-5, 1), (510, 514), (1_499, 9_999)].into_iter().map(range).collect();
    let filter = PointFilter { ranges, ..all(View::LATEST, Flagged::Keep) };
    let minutes: Vec<i64> = read(&store, filter).unwrap().iter().map(|row| row.1).collect();
    assert_eq!(minutes, [0, 510, 511, 512, 513, 1_499].repeat(3));
    let none = PointFilter { ranges: Ranges::none(), ..all(View::LATEST, Flagged::Keep) };
    assert_eq!(read(&store, none).unwrap(), []);
    let ranges = [(-5, 0), (0, 1), (1_499, 1_500), (1_500, 9_999), (i64::MIN / MINUTE, 9_999)];
    let held = store.holds("line", &ranges.map(range)).unwrap();
    assert_eq!(held, [false, true, true, false, true]);
    assert_eq!(store.holds("other", &[Range::new(0, 1)]).unwrap(), [false]);
}

#[test]
fn a_reader_can_return_one_batch() {
    let folder = Folder::new();
    let store = filled(&folder);
    let mut reader = store.read("line", all(View::LATEST, Flagged::Keep)).unwrap();
    assert_eq!(reader.next_batch(usize::MAX).unwrap().unwrap().num_rows(), 4_500);
    assert!(reader.next_batch(usize::MAX).unwrap().is_none());
    let mut reader = store.read("line", all(View::changed_since(0), Flagged::Keep)).unwrap();
    let schema = reader.schema();
    assert_eq!(schema.fields().last().unwrap().name(), "change");
    let batches: Vec<RecordBatch> =
        std::iter::from_fn(|| reader.next_batch(1_000).unwrap()).collect();
    assert!(batches.iter().all(|batch| batch.schema() == schema));
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 4_500);
}

#[test]
fn sequence_at_returns_the_last_page_read() {
    let (_folder, store) = new_store();
    for sequence in [1, 2, 5] {
        Request::whole(sequence, 0, 9, &[]).apply_to(&store, b"").unwrap();
    }
    let sequence_at = |minute| store.sequence_at("line", time_of(minute)).unwrap();
    assert_eq!([10_000, 10_001, 10_004, 10_005].map(sequence_at), [0, 1, 2, 5]);
    assert_eq!(store.sequence_at("other", time_of(99_999)).unwrap(), 0);
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
    let filter = PointFilter { series: one, ..all(View::LATEST, Flagged::Keep) };
    assert_eq!(read(&store, filter).unwrap().len(), 40);
    let mut reader = store.read("line", all(View::LATEST, Flagged::Drop)).unwrap();
    assert_eq!(reader.count_points().unwrap(), 1_600 - 80, "without their bytes");
    let none = read(&store, all(View::as_of(0), Flagged::Keep)).unwrap();
    assert_eq!(none, [], "later blocks are not read");
    assert!(read(&store, all(View::LATEST, Flagged::Keep)).is_err());
}
