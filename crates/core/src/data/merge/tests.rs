use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use proptest::prelude::*;

use super::*;
use crate::data::decode::{DecodeSettings, decode};
use crate::data::{TableBuilder, schema};

/// A point of a model: series, minute, value, count.
type Point = (u8, i64, Option<f64>, Option<i64>);

/// A page with one or more envelopes for each run of points of one series.
fn page(sequence: u64, points: &[Point]) -> Page {
    let envelopes: Vec<String> = points
        .chunk_by(|left, right| left.0 == right.0 && right.1 % 3 != 0)
        .map(|run| {
            let tag = if run[0].0 == 0 { "null".to_owned() } else { format!("\"t{}\"", run[0].0) };
            let points: Vec<String> = run
                .iter()
                .map(|(_, minute, value, count)| {
                    let timestamp = 1_793_491_200 + minute * 60;
                    let value = value.map_or("null".to_owned(), |value| format!("{value:e}"));
                    let count = count.map_or("null".to_owned(), |count| count.to_string());
                    format!(
                        r#"{{"timestamp":{timestamp},"value":{value},"sampleCount":{count},"q":{count}}}"#
                    )
                })
                .collect();
            format!(
                r#"{{"siteId":"S","lineId":null,"machineId":1,"deviceId":"D","tagGuid":{tag},"points":[{}]}}"#,
                points.join(",")
            )
        })
        .collect();
    let body = format!(r#"{{"series":[{}],"nextCursor":null}}"#, envelopes.join(","));
    let settings = DecodeSettings { extra_columns: extra(), ..DecodeSettings::default() };
    let decoded = decode(body.as_bytes(), &settings).unwrap();
    Page {
        points: Arc::new(decoded.points),
        report: decoded.report,
        sequence,
        raw: None,
        bookmark: None,
        is_last: false,
    }
}

fn extra() -> Vec<String> {
    vec!["q".to_owned()]
}

fn merged<'p>(pages: impl IntoIterator<Item = &'p Page>) -> Merged {
    let mut merger = Merger::new(&extra());
    for page in pages {
        merger.push(page).unwrap();
    }
    merger.finish().unwrap()
}

/// A row of the table in the form of the model: tag, minute, bits of the value, count.
type Row = (Option<String>, i64, Option<u64>, Option<i64>);

fn rows(merged: &Merged) -> Vec<Row> {
    let batch = &merged.points.batch().unwrap();
    let tags = batch.column(4).as_dictionary::<Int32Type>();
    let texts = tags.values().as_string::<i32>();
    let timestamps = batch.column(5).as_primitive::<TimestampMicrosecondType>();
    let values = batch.column(6).as_primitive::<Float64Type>();
    let counts = batch.column(9).as_primitive::<Int64Type>();
    (0..batch.num_rows())
        .map(|row| {
            let tag = tags.key(row).map(|key| texts.value(key).to_owned());
            let minute = (timestamps.value(row) / 1_000_000 - 1_793_491_200) / 60;
            let value = values.is_valid(row).then(|| values.value(row).to_bits());
            (tag, minute, value, counts.is_valid(row).then(|| counts.value(row)))
        })
        .collect()
}

#[test]
fn p11_one_series_on_many_pages_is_one_series() {
    let pages = [
        page(1, &[(1, 0, Some(1.0), Some(1)), (2, 0, Some(2.0), None), (1, 1, Some(1.5), Some(1))]),
        page(2, &[(2, 1, Some(2.5), None), (1, 2, Some(1.75), Some(1)), (0, 0, None, None)]),
    ];
    let table = merged(&pages);
    assert_eq!((table.report.pages, table.report.series, table.report.points), (2, 3, 6));
    let order: Vec<(Option<String>, i64)> =
        rows(&table).into_iter().map(|(tag, minute, ..)| (tag, minute)).collect();
    let tag = |n: u8| Some(format!("t{n}"));
    let expected = [(None, 0), (tag(1), 0), (tag(1), 1), (tag(1), 2), (tag(2), 0), (tag(2), 1)];
    assert_eq!(order, expected);
    assert_eq!(table.points.batch().unwrap().column(10).as_string::<i32>().value(1), "1");
    assert!(table.points.batch().unwrap().column(10).is_null(0));
}

#[test]
fn p11_the_latest_version_wins_and_revisions_are_counted() {
    let old = page(1, &[(1, 0, Some(0.0), Some(1)), (1, 1, Some(1.0), None), (1, 2, None, None)]);
    let new = page(
        2,
        &[
            (1, 0, Some(-0.0), Some(1)),
            (1, 1, Some(1.0), None),
            (1, 2, None, Some(0)),
            (1, 1, Some(3.0), None),
        ],
    );
    for order in [[&old, &new], [&new, &old]] {
        let table = merged(order);
        let values: Vec<Option<u64>> = rows(&table).into_iter().map(|row| row.2).collect();
        assert_eq!(values, [Some((-0.0_f64).to_bits()), Some(3_f64.to_bits()), None]);
        assert_eq!((table.report.repeated, table.report.revised), (1, 3));
        assert_eq!((table.report.points_read, table.report.quality.repeated), (7, 1));
    }
}

#[test]
fn without_pages_the_table_is_empty_with_all_columns() {
    let table = merged([]);
    assert_eq!((table.points.rows(), table.report), (0, MergeReport::default()));
    assert_eq!(table.points.schema(), schema(&extra()));
    let table = merged([&page(1, &[])]);
    assert_eq!((table.points.rows(), table.report.pages), (0, 1));
}

#[test]
fn a_page_with_other_columns_is_refused() {
    let mut merger = Merger::new(&[]);
    assert_eq!(merger.push(&page(1, &[])).unwrap_err().kind(), Kind::InternalError);
    let table = merged([&page(1, &[])]);
    assert_eq!(merger.push_merged(&table).unwrap_err().kind(), Kind::InternalError);
    assert_eq!((merger.report.pages, merger.next_sequence()), (0, 1));
}

/// Every third value is null.
fn long_page(sequence: u64, series: &[u8], start: i32, minutes: i32) -> Page {
    let mut table = TableBuilder::new(0);
    for tag in series {
        for minute in start..start + minutes {
            let value = (minute % 3 > 0).then(|| f64::from(*tag) + f64::from(minute));
            let (at, count) = (i64::from(minute) * 60_000_000, i64::from(minute));
            table.push(at, [value, None, Some(1.0)], Some(count));
        }
        table.series(&Identity::from(std::array::from_fn(|_| Some(Arc::from(format!("{tag}"))))));
    }
    let (points, report) = (Arc::new(table.finish().unwrap()), PageReport::default());
    Page { points, report, sequence, raw: None, bookmark: None, is_last: false }
}

fn long(pages: &[Page]) -> Arc<PointColumns> {
    let mut merger = Merger::new(&[]);
    for page in pages {
        merger.push(page).unwrap();
    }
    merger.finish().unwrap().points
}

#[test]
fn long_columns_are_equal_in_any_page_order() {
    let by_series: Vec<Page> =
        (1..=3).map(|tag| long_page(u64::from(tag), &[tag], 0, 50_000)).collect();
    let by_time: Vec<Page> =
        (0_u8..5).map(|n| long_page(n.into(), &[3, 1, 2], i32::from(n) * 10_000, 10_000)).collect();
    let expected = long_page(1, &[1, 2, 3], 0, 50_000).points.batch().unwrap();
    assert_eq!(PointColumns::from_batch(&expected).batch().unwrap(), expected);
    for pages in [by_series, by_time] {
        let points = long(&pages);
        assert_eq!(points.batch().unwrap(), expected);
        assert!(points.numbers[1].values().iter().all(|value| value.is_nan()));
        assert_eq!(points.envelopes.len(), 3);
    }
}

#[test]
fn p11_overlapping_pages_before_1970_give_each_point_once() {
    let pages = [long_page(1, &[1], -20, 20), long_page(2, &[1], -25, 10)];
    let whole = long_page(1, &[1], -25, 25).points.batch().unwrap();
    assert_eq!(long(&pages).batch().unwrap(), whole);
}

#[test]
fn a_series_without_points_is_not_in_the_table() {
    let body = r#"{"series":[{"siteId":"S","lineId":null,"machineId":null,"deviceId":null,
        "tagGuid":"t0","points":[]},{"siteId":"S","lineId":null,"machineId":null,"deviceId":null,
        "tagGuid":"t1","points":[{"timestamp":60,"value":1}]}],"nextCursor":null}"#;
    let settings = DecodeSettings { extra_columns: extra(), ..DecodeSettings::default() };
    let points = Arc::new(decode(body.as_bytes(), &settings).unwrap().points);
    assert_eq!(points.envelopes.len(), 2);
    let table = merged([&Page { points, ..page(1, &[]) }]);
    assert_eq!((table.report.series, table.report.points), (1, 1));
    assert_eq!((table.points.series.len(), table.points.envelopes.len()), (1, 1));
}

#[test]
fn a_table_is_newer_than_all_earlier_pages() {
    let value = |sequence, value| page(sequence, &[(1, 0, Some(value), None)]);
    let known = |merger: &Merger| {
        let table = merger.clone().finish().unwrap();
        (f64::from_bits(rows(&table)[0].2.unwrap()), table.report.revised)
    };
    let mut merger = Merger::new(&extra());
    merger.push(&value(5, 5.0)).unwrap();
    merger.push_merged(&merged([&value(1, 6.0)])).unwrap();
    assert_eq!(known(&merger), (6.0, 1));
    merger.push(&value(merger.next_sequence(), 7.0)).unwrap();
    assert_eq!(known(&merger), (7.0, 2));
    // A late page with a lower number is older than all of them.
    merger.push(&value(4, 4.0)).unwrap();
    assert_eq!((known(&merger), merger.report.pages), ((7.0, 3), 4));
}

fn any_points() -> impl Strategy<Value = Vec<Point>> {
    let value =
        prop_oneof![Just(None), (-2_i32..3).prop_map(|small| Some(f64::from(small) / 2.0)),];
    prop::collection::vec((0..3_u8, 0..6_i64, value, prop::option::of(0..2_i64)), 0..12)
}

proptest! {
    #[test]
    fn p11_merging_does_not_depend_on_order(
        points in prop::collection::vec(any_points(), 0..6),
        seed in any::<u64>(),
    ) {
        let pages: Vec<Page> =
            (1..).zip(&points).map(|(sequence, points)| page(sequence, points)).collect();
        let table = merged(&pages);
        let mut model = std::collections::BTreeMap::new();
        for (tag, minute, value, count) in points.iter().flatten() {
            let tag = (*tag > 0).then(|| format!("t{tag}"));
            model.insert((tag, *minute), (value.map(f64::to_bits), *count));
        }
        let expected: Vec<_> = model
            .into_iter()
            .map(|((tag, minute), (value, count))| (tag, minute, value, count))
            .collect();
        prop_assert_eq!(rows(&table), expected);
        let read = points.iter().map(Vec::len).sum::<usize>() as u64;
        let report = &table.report;
        prop_assert_eq!(report.points_read, read);
        prop_assert_eq!(report.points + report.repeated + report.revised, read);

        // Merging tables gives the same result for any division of the pages.
        let mut parts = Merger::new(&extra());
        let cut = usize::try_from(seed % 7).unwrap().min(pages.len());
        for part in [&pages[..cut], &pages[cut..]] {
            parts.push_merged(&merged(part)).unwrap();
        }
        let parts = parts.finish().unwrap();
        prop_assert_eq!(parts.points.batch().unwrap(), table.points.batch().unwrap());
        let sum = |report: &MergeReport| report.repeated + report.revised;
        prop_assert_eq!(sum(&parts.report), sum(report));
        prop_assert_eq!(&parts.report.quality, &report.quality);

        let mut shuffled: Vec<&Page> = pages.iter().chain(&pages).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut shuffled);
        let again = merged(shuffled);
        prop_assert_eq!(again.points.batch().unwrap(), table.points.batch().unwrap());
        prop_assert_eq!(&again.report, &table.report);
    }
}
