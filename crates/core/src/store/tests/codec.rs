//! The encoding of blocks.

use proptest::prelude::*;

use crate::store::block::{PointVersion, Values, decode, encode};
use crate::store::bytes::{Sink, Source};
use crate::store::recent;
use crate::store::seen::{SeenPoints, encode as encode_seen};

fn double() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        Just(None),
        Just(Some(-0.0)),
        Just(Some(0.0)),
        Just(Some(f64::from_bits(1))),
        Just(Some(-f64::MIN_POSITIVE / 2.0)),
        Just(Some(f64::INFINITY)),
        any::<u64>().prop_map(|bits| Some(f64::from_bits(bits))),
    ]
}

fn values() -> impl Strategy<Value = Values> {
    let count = prop_oneof![Just(Some(60)), any::<Option<i64>>()];
    ([double(), double(), double()], count).prop_map(|(numbers, count)| Values::new(numbers, count))
}

fn timestamp() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), (-5..5_i64).prop_map(|n| n * 60)]
}

fn row() -> impl Strategy<Value = PointVersion> {
    (timestamp(), any::<u64>(), any::<bool>(), values()).prop_map(
        |(timestamp, version, absent, values)| PointVersion { timestamp, version, absent, values },
    )
}

/// A version of a point that is not absent.
fn point(timestamp: i64, version: u64, values: Values) -> PointVersion {
    PointVersion { timestamp, version, absent: false, values }
}

proptest! {
    #[test]
    fn a_block_is_decoded_bit_for_bit(mut rows in prop::collection::vec(row(), 0..200)) {
        rows.sort_by_key(|row| (row.timestamp, row.version));
        rows.dedup_by_key(|row| (row.timestamp, row.version));
        prop_assert_eq!(decode(&encode(&rows)), Some(rows));
    }
}

proptest! {
    // Each case decodes up to 200 prefixes of its bytes.
    #![proptest_config(crate::test_kit::cases(256))]

    #[test]
    fn recent_points_are_decoded_bit_for_bit(
        points in prop::collection::vec((1..9_i64, row()), 0..200), first in 0..50_usize,
    ) {
        let mut points = points;
        points.sort_by_key(|(series, row)| (row.timestamp, *series, row.version));
        points.dedup_by_key(|(series, row)| (row.timestamp, *series, row.version));
        let bytes = recent::encode(points.clone());
        let mut lengths = (0..bytes.len()).skip(first).step_by(bytes.len() / 200 + 1);
        prop_assert!(lengths.all(|length| recent::decode(&bytes[..length]).is_none()));
        prop_assert_eq!(recent::decode(&bytes), Some(points));
    }
}

#[test]
fn a_block_on_the_grid_is_small() {
    let values = Values::new([Some(1.5), Some(1.0), Some(2.0)], Some(60));
    let rows: Vec<PointVersion> = (0..512).map(|n| point(n * 60_000_000, 7, values)).collect();
    assert!(encode(&rows).len() < 512 * 24 + 40, "{}", encode(&rows).len());
}

#[test]
fn bytes_that_are_no_block_are_refused() {
    let bytes = encode(&[]);
    assert_eq!(decode(&bytes), Some(Vec::new()));
    assert_eq!(decode(&[]), None);
    assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
    assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
}

/// A block of null rows on a grid, which take no bytes.
fn forged_block(rows: u64) -> Vec<u8> {
    let mut sink = Sink(vec![1]);
    sink.number(rows);
    for step in [60, 0, 0b1111] {
        sink.signed(step);
        sink.number(rows);
    }
    sink.0.push(0);
    sink.0
}

#[test]
fn s7_a_forged_block_has_limited_rows() {
    assert_eq!(decode(&forged_block(0)), None);
    for rows in [1 << 21, 1 << 40, 1 << 60, u64::MAX] {
        assert_eq!(decode(&forged_block(rows)), None, "{rows}");
    }
}

#[test]
fn s7_a_number_of_more_than_64_bits_is_refused() {
    for (last, number) in [(0, Some(0)), (1, Some(1 << 63)), (2, None), (3, None), (0x7F, None)] {
        let bytes = [&[0x80; 9][..], &[last]].concat();
        assert_eq!(Source(&bytes).number(), number, "{last}");
    }
    let most = [&[0xFF; 9][..], &[1]].concat();
    assert_eq!(Source(&most).number(), Some(u64::MAX));
    assert_eq!(Source(&[0xFF; 11]).number(), None);
}

#[test]
fn s7_a_forged_mark_of_a_row_is_refused() {
    let absent = |mark: i64| {
        let mut sink = Sink(vec![1]);
        sink.number(1);
        for number in [60, 7, mark] {
            sink.signed(number);
            sink.number(1);
        }
        // One count, three numbers.
        sink.0.push(1);
        sink.signed(5);
        sink.0.extend([0; 24]);
        Some(decode(&sink.0)?[0].absent)
    };
    for (mark, expected) in [
        (0, Some(false)),
        (0b1_0000, Some(true)),
        (0b10_0000, None),
        (0b11_0000, None),
        (-1, None),
        (256, None),
    ] {
        assert_eq!(absent(mark), expected, "{mark}");
    }
}

#[test]
fn s7_a_forged_block_out_of_order_is_refused() {
    let row = |timestamp, version| point(timestamp, version, Values::default());
    let rows = [row(60, 1), row(60, 2), row(120, 1)];
    assert_eq!(decode(&encode(&rows)).map(|rows| rows.len()), Some(3));
    for rows in [[row(120, 1), row(60, 1)], [row(60, 2), row(60, 1)], [row(60, 1), row(60, 1)]] {
        assert_eq!(decode(&encode(&rows)), None);
    }
}

#[test]
fn seen_points_of_thousands_of_series_take_some_bytes() {
    let times = [[60, 120, 180], [60, 180, 300]];
    let series = (1..=4_000).map(|series| (series, times[usize::from(series == 70)].as_slice()));
    let bytes = encode_seen(series.collect::<Vec<_>>().into_iter());
    assert!(bytes.len() < 60, "{}", bytes.len());
    assert!((2..bytes.len()).all(|n| SeenPoints::default().add(&bytes[..n]).is_none()));
    let later = [600, 660];
    let more = encode_seen([(9, later.as_slice()), (5_000, &later)].into_iter());
    let mut seen = SeenPoints::default();
    for bytes in [&bytes, &more, &encode_seen([].into_iter())] {
        seen.add(bytes).unwrap();
    }
    let seen = seen.sorted();
    for (series, timestamp, expected) in [
        (1, 120, true),
        (70, 120, false),
        (70, 300, true),
        (4_000, 180, true),
        (4_001, 180, false),
        (9, 180, true),
        (9, 660, true),
        (5_000, 600, true),
        (5_000, 180, false),
    ] {
        assert_eq!(seen.finder(series).holds(timestamp), expected, "{series} {timestamp}");
    }
}

#[test]
fn s7_a_forged_group_has_limited_series() {
    let group = |series: u64| {
        let mut sink = Sink::default();
        for number in [1, series] {
            sink.number(number);
        }
        sink.signed(1);
        sink.number(series);
        sink.number(1);
        sink.steps([60].into_iter());
        SeenPoints::default().add(&sink.0)
    };
    assert_eq!(group(7), Some(()));
    assert_eq!(group((1 << 20) + 1), None);
    assert_eq!(group(u64::MAX), None);
}
