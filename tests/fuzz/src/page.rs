//! Decodes arbitrary bytes as the body of a page. The result must not depend on the layout, and must
//! agree with `serde_json`: the decoder compares a point's bytes with those of the previous point,
//! and must never confuse the two.
#![no_main]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use siteline_core::Result;
use siteline_core::data::decode::{EarlierPages, decode_after};
use siteline_core::data::{Chain, DecodeSettings, Decoded, Query, QueryInput, decode};

const IDS: [&str; 5] = ["siteId", "lineId", "machineId", "deviceId", "tagGuid"];
const NUMBERS: [&str; 3] = ["value", "minimum", "maximum"];
const SPACES: [&[u8]; 5] = [b" ", b"", b"\r\n\t ", b"\n", b""];

fuzz_target!(|body: &[u8]| {
    let settings = DecodeSettings::default();
    let decoded = decode(body, &settings);
    // The second time most of its envelopes are recognised.
    let mut earlier = EarlierPages::default();
    for _ in 0..2 {
        compare(&decoded, &decode_after(body, &settings, &mut earlier));
    }
    // UTF-16 and UTF-32 are detected by the first bytes, after a byte order mark of UTF-8.
    let json = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    if !json.iter().take(4).any(|byte| *byte == 0) {
        let spaced = spaced(body);
        compare(&decoded, &decode(&spaced, &settings));
        compare(&decoded, &decode_after(&spaced, &settings, &mut earlier));
        compare(&decoded, &decode_after(body, &settings, &mut earlier));
    }
    if let Ok(decoded) = &decoded {
        compare_with_serde_json(body, decoded);
        compare_cursors(body, decoded);
    }
});

/// The same JSON with different spaces at each member, so that no two points have the same bytes.
fn spaced(body: &[u8]) -> Vec<u8> {
    let mut spaced = Vec::with_capacity(2 * body.len());
    let mut spaces = SPACES.into_iter().cycle();
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in body {
        let is_structure = !is_text && b"{}[],:".contains(byte);
        if is_structure {
            spaced.extend(spaces.next().unwrap_or_default());
        }
        spaced.push(*byte);
        if is_structure {
            spaced.extend(spaces.next().unwrap_or_default());
        }
        is_text ^= *byte == b'"' && !is_escaped;
        is_escaped = is_text && *byte == b'\\' && !is_escaped;
    }
    spaced
}

fn compare(one: &Result<Decoded>, other: &Result<Decoded>) {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            assert_eq!(rows(one), rows(other));
            assert!(one.points.identified().eq(other.points.identified()), "the ids differ");
            assert!(one.next_cursor == other.next_cursor, "the cursor depends on the layout");
            assert_eq!(one.report, other.report);
        }
        (Err(one), Err(other)) => assert_eq!(one.kind(), other.kind(), "{one}; {other}"),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => panic!("one layout is refused: {error}"),
    }
}

/// The values of each row, doubles as bits.
fn rows(decoded: &Decoded) -> Vec<(i64, [Option<u64>; 3], Option<i64>)> {
    let batch = batch(decoded);
    let times = batch["timestamp"].as_primitive::<TimestampMicrosecondType>();
    let counts = batch["sample_count"].as_primitive::<Int64Type>();
    let number = |name: &str, row: usize| {
        let column = batch[name].as_primitive::<Float64Type>();
        column.is_valid(row).then(|| column.value(row).to_bits())
    };
    let row = |row| {
        let count = counts.is_valid(row).then(|| counts.value(row));
        (times.value(row), NUMBERS.map(|name| number(name, row)), count)
    };
    (0..batch.num_rows()).map(row).collect()
}

fn batch(decoded: &Decoded) -> RecordBatch {
    decoded.points.batch().expect("what was decoded is a batch")
}

fn compare_with_serde_json(body: &[u8], decoded: &Decoded) {
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
fn compare_cursors(body: &[u8], decoded: &Decoded) {
    let query = Query::new(QueryInput::default()).expect("a query");
    let chain = Chain::new(query, Arc::default(), "an origin", None);
    let seen = chain.decoding().cursor_at_an_edge(body);
    assert!(seen.is_none() || seen == decoded.next_cursor, "another cursor at the edge");
}
