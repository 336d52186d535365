use arrow_array::Array;
use jiff::Timestamp;

use crate::data::decode::tests::{
    counts, floats, microseconds, page, point, read, refused, refused_by, settings, times,
};
use crate::data::{DecodeSettings, Shape, TimestampForm, decode};
use crate::error::Kind;

fn value(members: &str) -> f64 {
    let decoded = read(&point(members)).unwrap();
    let column = floats(&decoded, "value");
    assert!(column.is_valid(0));
    column.value(0)
}

fn micros(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_microsecond()
}

#[test]
fn j5_j6_numbers_out_of_range_of_a_double_are_refused_with_their_path() {
    for number in ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "\"1e999\"", "\"NaN\""] {
        let (path, _) = refused(&point(&format!(r#""value":{number}"#)));
        assert_eq!(path, "$.series[0].points[0].value", "{number}");
    }
    refused(&point(&format!(r#""value":{}"#, "7".repeat(1_000_000))));
    assert_eq!(value(r#""value":1180591620717411303424"#).to_bits(), 2_f64.powi(70).to_bits());
    let (path, _) = refused(&point(r#""sampleCount":1180591620717411303424"#));
    assert_eq!(path, "$.series[0].points[0].sampleCount");
}

#[test]
fn j9_null_and_missing_are_null_and_numbers_as_text_are_exact_and_counted() {
    let decoded = read(&point(r#""value":null,"minimum":"12.5","sampleCount":"3""#)).unwrap();
    assert!(floats(&decoded, "value").is_null(0) && floats(&decoded, "maximum").is_null(0));
    assert_eq!(floats(&decoded, "minimum").value(0).to_bits(), 12.5_f64.to_bits());
    assert_eq!((counts(&decoded), decoded.report.numbers_as_text), (vec![Some(3)], 2));
    for text in ["\"\"", "\" 1\"", "\"0x1\"", "\"1,5\"", "true", "[]", "{}"] {
        refused(&point(&format!(r#""value":{text}"#)));
    }
}

#[test]
fn j22_points_without_one_of_the_four_values_are_counted() {
    let complete = r#""value":1,"minimum":null,"maximum":2,"sampleCount":3"#;
    for (members, missing) in [
        (complete, 0),
        (r#""value":1"#, 1),
        (r#""value":1,"minimum":0,"maximum":2"#, 1),
        (r#""sampleCount":3,"quality":"good""#, 1),
    ] {
        assert_eq!(read(&point(members)).unwrap().report.values_missing, missing, "{members}");
    }
    let both = format!(r#"{{"timestamp":1,{complete}}},{{"timestamp":2,"value":1}}"#);
    assert_eq!(read(&page(&both)).unwrap().report.values_missing, 1);
}

#[test]
fn j10_sample_counts_are_integers() {
    for (text, count) in [("3", Some(3)), ("3.0", Some(3)), ("null", None), ("-1", Some(-1))] {
        let decoded = read(&point(&format!(r#""sampleCount":{text}"#))).unwrap();
        assert_eq!(counts(&decoded), [count]);
        assert_eq!(decoded.report.negative_counts, u64::from(text == "-1"));
    }
    refused(&point(r#""sampleCount":3.5"#));
    refused(&point(r#""sampleCount":true"#));
}

#[test]
fn j11_iso_timestamps_are_parsed_and_truncated_ones_and_leap_seconds_counted() {
    let decoded = times(&[
        "\"2026-11-01T00:00:00Z\"",
        "\"2026-11-01T02:01:00+02:00\"",
        "\"2026-11-01t00:02:00z\"",
        "\"2026-11-01T00:03:00.123456789Z\"",
        "\"2026-11-01T00:04:60Z\"",
        "\"2026-11-01T00:05:00,5Z\"",
    ])
    .unwrap();
    let expected = ["00:00", "01:00", "02:00", "03:00.123456", "04:59.999999", "05:00.5"]
        .map(|time| micros(&format!("2026-11-01T00:{time}Z")));
    assert_eq!(microseconds(&decoded), expected);
    let report = &decoded.report;
    assert_eq!((report.timestamps_truncated, report.leap_seconds, report.off_grid), (1, 1, 3));
    let (path, text) = refused(&page(r#"{"timestamp":"2026-11-01T00:00:00"}"#));
    assert_eq!(path, "$.series[0].points[0].timestamp");
    assert!(text.contains("zone"), "{text}");
    for timestamp in ["null", "true", "{}", "\"\"", "\"1793491200\""] {
        refused(&page(&format!(r#"{{"timestamp":{timestamp}}}"#)));
    }
    assert_eq!(refused(&page(r#"{"value":1}"#)).0, "$.series[0].points[0].timestamp");
}

#[test]
fn j12_epochs_are_detected_and_mixed_forms_are_refused() {
    let instant = micros("2026-11-01T00:00:00Z");
    let second = instant / 1_000_000;
    let (seconds, milliseconds) = (second.to_string(), format!("{second}000"));
    for (text, form) in [
        (&seconds, TimestampForm::EpochSeconds),
        (&milliseconds, TimestampForm::EpochMilliseconds),
        (&format!("{second}.0"), TimestampForm::EpochSeconds),
    ] {
        let decoded = times(&[text]).unwrap();
        assert_eq!(microseconds(&decoded), [instant]);
        assert!(decoded.report.timestamp_forms.contains(&form));
    }
    let iso = "\"2026-11-01T00:00:00Z\"".to_owned();
    for (one, two) in [(&seconds, &milliseconds), (&iso, &seconds), (&milliseconds, &iso)] {
        assert_eq!(times(&[one, two]).unwrap_err().kind(), Kind::ProtocolError);
    }
    let shape = Shape { timestamp: TimestampForm::EpochMilliseconds, ..Shape::default() };
    let configured = DecodeSettings { shape, ..settings() };
    let body = page(&format!(r#"{{"timestamp":{seconds}}}"#));
    let decoded = decode(body.as_bytes(), &configured).unwrap();
    assert_eq!(microseconds(&decoded), [second * 1_000]);
    refused_by(&page(&format!(r#"{{"timestamp":{iso}}}"#)), &configured);
}

#[test]
fn j14_j15_unusual_points_are_kept_and_counted() {
    let decoded = read(&page(
        r#"{"timestamp":"2026-10-31T23:59:00Z","value":1,"minimum":2,"maximum":3},
           {"timestamp":"2026-11-01T00:00:30Z","value":2,"minimum":3,"maximum":1},
           {"timestamp":"2026-11-08T00:00:00Z","value":9,"maximum":3},
           {"timestamp":"2026-11-02T00:00:00Z","value":null,"minimum":3,"maximum":3}"#,
    ))
    .unwrap();
    assert_eq!(decoded.points.rows(), 4);
    let report = &decoded.report;
    assert_eq!((report.outside_range, report.off_grid), (2, 1));
    assert_eq!((report.minimum_above_maximum, report.value_outside_bounds), (1, 3));
}

#[test]
fn j16_a_repeated_point_on_a_page_is_kept_and_counted() {
    let at = |minute: u32| format!("\"2026-11-01T00:{minute:02}:00Z\"");
    let all = [at(0), at(1), at(0), at(5), at(4), at(1), at(1)];
    let decoded = times(&all.each_ref().map(String::as_str)).unwrap();
    assert_eq!((decoded.points.rows(), decoded.report.repeated), (7, 3));
    let descending = times(&[&at(3), &at(2), &at(1)]).unwrap();
    assert_eq!(descending.report.repeated, 0);
}
