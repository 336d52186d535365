//! Compares decoded pages with `serde_json`: for the fuzz target, and for the core's tests of layouts.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use jiff::Timestamp;
use serde_json::Value;

use super::{Chain, Decoded, Query, QueryInput};

pub(super) const IDS: [&str; 5] = ["siteId", "lineId", "machineId", "deviceId", "tagGuid"];
pub(super) const NUMBERS: [&str; 3] = ["value", "minimum", "maximum"];

/// The values of each row, doubles as bits.
pub(super) fn rows(decoded: &Decoded) -> Vec<(i64, [Option<u64>; 3], Option<i64>)> {
    let batch = decoded.points.batch().expect("what was decoded is a batch");
    let times = batch["timestamp"].as_primitive::<TimestampMicrosecondType>();
    let counts = batch["sample_count"].as_primitive::<Int64Type>();
    let number = |name: &str, row: usize| {
        let column = batch[name].as_primitive::<Float64Type>();
        assert_eq!(column.is_null(row), column.value(row).is_nan(), "null is NaN");
        column.is_valid(row).then(|| column.value(row).to_bits())
    };
    let row = |row| {
        let count = counts.is_valid(row).then(|| counts.value(row));
        (times.value(row), NUMBERS.map(|name| number(name, row)), count)
    };
    (0..batch.num_rows()).map(row).collect()
}

pub(super) fn compare_with_serde_json(body: &[u8], decoded: &Decoded) {
    let json = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    let tree: Value = match serde_json::from_slice(json) {
        Ok(tree) => tree,
        // serde_json refuses ignored numbers beyond a double, and nesting beyond its limit.
        Err(error) if error.to_string().contains("out of range") => return,
        Err(error) if error.to_string().contains("recursion limit") => return,
        Err(error) => panic!("the decoder accepted invalid JSON: {error}"),
    };
    if tree["nextCursor"].as_str().is_some_and(|cursor| !cursor.is_empty()) {
        assert!(decoded.next_cursor.is_some(), "the chain is cut short");
    }
    // Another array may be the one of the series, by its shape (J19).
    if !decoded.report.arrays.contains("series") {
        return;
    }
    let Some(series) = tree["series"].as_array() else { return };
    compare_ids(series, decoded);
    let points: Vec<&Value> =
        series.iter().filter_map(|series| series["points"].as_array()).flatten().collect();
    let rows = rows(decoded);
    assert_eq!(rows.len(), points.len());
    for ((time, numbers, count), point) in rows.into_iter().zip(points) {
        let text = point["timestamp"].as_str().unwrap_or_default();
        // A leap second is the last microsecond before it (J11); jiff takes it for the 59th.
        if let Some(at) = text.parse::<Timestamp>().ok().filter(|_| !text.contains(":60")) {
            assert_eq!(time, at.as_microsecond());
        }
        for (name, number) in NUMBERS.into_iter().zip(numbers) {
            match &point[name] {
                Value::Null => assert_eq!(number, None),
                Value::Number(expected) => {
                    let expected = expected.as_f64();
                    // `serde_json` reads `-0` as `-0.0`, not as an integer.
                    let is_zero = expected == Some(0.0) && number.map(f64::from_bits) == Some(0.0);
                    assert!(number == expected.map(f64::to_bits) || is_zero, "{name}");
                }
                _ => {}
            }
        }
        match &point["sampleCount"] {
            Value::Null => assert_eq!(count, None),
            Value::Number(expected) if expected.is_i64() => assert_eq!(count, expected.as_i64()),
            _ => {}
        }
    }
}

fn compare_ids(series: &[Value], decoded: &Decoded) {
    for ((identity, _), one) in decoded.points.identified().zip(series) {
        for (name, id) in IDS.iter().zip(identity.0.iter()) {
            if let Some(expected) = one[*name].as_str() {
                assert_eq!(id.as_deref(), Some(expected), "{name}");
            }
        }
    }
}

/// A cursor found at the edge of the body must be the page's cursor.
pub(super) fn compare_cursors(body: &[u8], decoded: &Decoded) {
    let query = Query::new(QueryInput::default()).expect("a query");
    let chain = Chain::new(query, Arc::default(), "an origin", None);
    let seen = chain.decoding().cursor_at_an_edge(body);
    assert!(seen.is_none() || seen == decoded.next_cursor, "another cursor at the edge");
}
