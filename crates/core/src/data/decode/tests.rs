use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{Array, Float64Array};

use super::settings::MOST_EXTRA_COLUMNS;
use super::*;
use crate::data::{Cursor, MissingCursor, Shape};
use crate::test_kit::trials;

const LAYOUT_A: &str = include_str!("../../../../../tests/pages/layout_a.json");
const LAYOUT_B: &str = include_str!("../../../../../tests/pages/layout_b.json");
/// The number of bodies with changed bytes for J21.
const FLIPPED_BODIES: u32 = 100_000;

const IDS: &str = r#""siteId":"S","lineId":"L","machineId":"M","deviceId":"D","tagGuid":"T""#;

pub(crate) fn settings() -> DecodeSettings {
    DecodeSettings {
        start: Some("2026-11-01T00:00:00Z".parse().unwrap()),
        end: Some("2026-11-08T00:00:00Z".parse().unwrap()),
        interval_seconds: Some(60),
        ..DecodeSettings::default()
    }
}

pub(crate) fn read(body: &str) -> Result<Decoded> {
    decode(body.as_bytes(), &settings())
}

/// A page of one series with these points.
pub(crate) fn page(points: &str) -> String {
    format!(r#"{{"series":[{{{IDS},"points":[{points}]}}],"nextCursor":null}}"#)
}

/// A page of one point with its timestamp and these members.
pub(crate) fn point(members: &str) -> String {
    page(&format!(r#"{{"timestamp":"2026-11-01T00:00:00Z",{members}}}"#))
}

/// Decodes a page of points with these timestamps (JSON).
pub(crate) fn times(timestamps: &[&str]) -> Result<Decoded> {
    let points: Vec<String> =
        timestamps.iter().map(|time| format!(r#"{{"timestamp":{time},"value":1}}"#)).collect();
    read(&page(&points.join(",")))
}

/// The path and text of the `ProtocolError` for this body.
pub(crate) fn refused(body: &str) -> (String, String) {
    refused_by(body, &settings())
}

pub(crate) fn refused_by(body: &str, settings: &DecodeSettings) -> (String, String) {
    let error = decode(body.as_bytes(), settings).expect_err(body);
    assert_eq!(error.kind(), Kind::ProtocolError, "{error}");
    (error.context().path.clone().unwrap_or_default(), error.to_string())
}

pub(crate) fn floats(decoded: &Decoded, column: &str) -> Float64Array {
    let batch = decoded.points.batch().unwrap();
    batch.column_by_name(column).unwrap().as_primitive::<Float64Type>().clone()
}

pub(crate) fn counts(decoded: &Decoded) -> Vec<Option<i64>> {
    decoded.points.sample_counts.iter().collect()
}

pub(crate) fn microseconds(decoded: &Decoded) -> Vec<i64> {
    decoded.points.timestamps.values().to_vec()
}

#[test]
fn j19_two_layouts_of_one_page_are_equal() {
    let (a, b) = (read(LAYOUT_A).unwrap(), read(LAYOUT_B).unwrap());
    assert_eq!(a.points.batch().unwrap(), b.points.batch().unwrap());
    assert_eq!(a.points.envelopes, b.points.envelopes);
    assert_eq!(a.next_cursor, b.next_cursor);
    assert_eq!(a.points.rows(), 4);
    assert_eq!(a.report.series, 2);
    assert!(a.report.arrays.contains("series") && b.report.arrays.contains("items"));
    assert_eq!(floats(&a, "maximum").value(1).to_bits(), 17.123_456_789_012_345_f64.to_bits());
    assert_eq!(counts(&a), [Some(60), Some(59), Some(0), Some(60)]);
    let batch = a.points.batch().unwrap();
    let tags = batch.column(4).as_dictionary::<Int32Type>();
    assert_eq!(tags.keys().values(), &[0, 0, 0, 1]);
    assert_eq!(a.points.batch().unwrap().column(3).null_count(), 4);
}

#[test]
fn e5_a_body_that_is_not_a_page_is_refused() {
    for body in ["", " ", "null", "[]", "[[],null]", "3", "\"x\"", "<html></html>"] {
        refused(body);
    }
    let good = page("");
    refused(&format!("{good}{good}"));
    refused(&format!("{good}}}"));
    assert!(read(&format!("\u{feff}{good} \n")).is_ok());
}

#[test]
fn j1_a_duplicate_known_member_is_refused_at_every_level() {
    let good = point(r#""value":1"#);
    for (once, twice, path) in [
        (r#""nextCursor":null"#, r#""nextCursor":"a","nextCursor":null"#, "$.nextCursor"),
        (r#"{"series""#, r#"{"series":[{"a":1}],"series""#, "$.series"),
        (r#""next"#, r#""series":null,"next"#, "$.series"),
        (r#""points":["#, r#""points":[],"points":["#, "$.series[0].points"),
        (r#""siteId":"S""#, r#""siteId":"S","siteId":"S""#, "$.series[0].siteId"),
        (r#""value":1"#, r#""value":1,"v\u0061lue":1"#, "$.series[0].points[0].value"),
        (
            r#""value":1"#,
            r#""sampleCount":1,"sampleCount":null"#,
            "$.series[0].points[0].sampleCount",
        ),
    ] {
        assert_eq!(refused(&good.replace(once, twice)).0, path);
    }
}

#[test]
fn j22_points_with_only_unknown_members_are_refused() {
    let (_, text) = refused(&point(r#""data":{"value":1,"minimum":0}"#));
    assert!(text.contains("points[].data") && text.contains("sampleCount"), "{text}");
    assert!(text.contains("Shape(value="), "{text}");
    let (_, text) = refused(&point(r#""v":1,"lo":0,"hi":2,"n":60"#));
    assert!(text.contains("points[].hi, points[].lo, points[].n, points[].v"), "{text}");
    // One of the four in any point, or an explicit null, shows that the names are correct.
    let one =
        r#"{"timestamp":"2026-11-01T00:00:00Z","v":1},{"timestamp":"2026-11-01T00:01:00Z",NULL}"#;
    for known in ["\"value\":null", "\"sampleCount\":0"] {
        assert_eq!(read(&page(&one.replace("NULL", known))).unwrap().points.rows(), 2);
    }
    let bare = read(&page(r#"{"timestamp":"2026-11-01T00:00:00Z"}"#)).unwrap();
    assert_eq!(bare.points.rows(), 1, "no unknown members");
    let named = DecodeSettings { extra_columns: vec!["v".to_owned()], ..settings() };
    assert!(decode(point(r#""v":1"#).as_bytes(), &named).is_ok(), "an extra column");
}

#[test]
fn j2_a_page_without_a_cursor_is_an_error() {
    let body = page("").replace(r#","nextCursor":null"#, "");
    let (path, text) = refused(&body);
    assert_eq!(path, "$.nextCursor");
    assert!(text.contains("missing_cursor"), "{text}");
    let shape = Shape { missing_cursor: MissingCursor::End, ..Shape::default() };
    let decoded = decode(body.as_bytes(), &DecodeSettings { shape, ..settings() }).unwrap();
    assert_eq!((decoded.next_cursor, decoded.report.cursors_missing), (None, 1));
}

#[test]
fn j3_j4_only_strings_are_cursors() {
    for (cursor, text) in [(r#""""#, ""), (r#""~/+=%&# \u00e9\n""#, "~/+=%&# é\n")] {
        let decoded = read(&page("").replace("null", cursor)).unwrap();
        assert_eq!(decoded.next_cursor, Some(Cursor::new(text)));
    }
    for cursor in ["1", "{}", "[]", "true", "false"] {
        assert_eq!(refused(&page("").replace("null", cursor)).0, "$.nextCursor");
    }
}

#[test]
fn j17_ids_are_strings_integers_or_null() {
    let good = point(r#""value":1"#);
    let with = |ids: &str| good.replace(r#""lineId":"L""#, ids);
    let identity = |ids: &str| read(&with(ids)).unwrap().points.series[0].0[1].clone();
    assert_eq!(identity(r#""lineId":17"#).as_deref(), Some("17"));
    assert_eq!(identity(r#""lineId":null"#), None);
    assert_eq!(identity(r#""lineId":"null""#).as_deref(), Some("null"));
    assert_eq!(identity(r#""lineId":"""#).as_deref(), Some(""));
    for ids in [r#""lineId":1.5"#, r#""lineId":true"#, r#""lineId":[]"#, r#""other":1"#] {
        assert_eq!(refused(&with(ids)).0, "$.series[0].lineId", "{ids}");
    }
    let two = good.replace(r#"}],"next"#, r#"},{"siteId":1,"points":[]}],"next"#);
    assert_eq!(refused(&two).0, "$.series[1].lineId");
}

#[test]
fn j18_unknown_members_are_listed_and_optionally_kept() {
    let body = r#"{"meta":{"a":[1]},"nextCursor":null,"series":[
        {"unit":"mm","siteId":"S","lineId":"L","machineId":"M","deviceId":"D","tagGuid":"T","points":[
            {"timestamp":"2026-11-01T00:00:00Z","quality" : {"ok": true},"unit":null},
            {"timestamp":"2026-11-01T00:01:00Z","unit":"kg","value":1},
            {"timestamp":"2026-11-01T00:02:00Z","note":1}]}]}"#;
    let plain = read(body).unwrap();
    let listed: Vec<&str> = plain.report.unknown_members.iter().map(String::as_str).collect();
    assert_eq!(
        listed,
        ["meta", "points[].note", "points[].quality", "points[].unit", "series[].unit"]
    );
    let extra_columns = vec!["unit".to_owned(), "quality".to_owned()];
    let kept = decode(body.as_bytes(), &DecodeSettings { extra_columns, ..settings() }).unwrap();
    let column = |name: &str| -> Vec<Option<String>> {
        let batch = kept.points.batch().unwrap();
        let array = batch.column_by_name(name).unwrap();
        array.as_string::<i32>().iter().map(|text| text.map(ToOwned::to_owned)).collect()
    };
    assert_eq!(column("unit"), ["\"mm\"", "\"kg\"", "\"mm\""].map(|text| Some(text.to_owned())));
    assert_eq!(column("quality"), [Some(r#"{"ok": true}"#.to_owned()), None, None]);
    assert!(!kept.report.unknown_members.contains("points[].unit"));
}

#[test]
fn j18_invalid_extra_columns_are_refused() {
    for names in
        [vec![""], vec!["a", "a"], vec!["value"], vec!["site_id"], vec!["points"], vec!["siteId"]]
    {
        let extra_columns = names.into_iter().map(ToOwned::to_owned).collect();
        let settings = DecodeSettings { extra_columns, ..settings() };
        assert_eq!(settings.check().unwrap_err().kind(), Kind::ConfigError);
    }
    let extra_columns = (0..=MOST_EXTRA_COLUMNS).map(|n| n.to_string()).collect();
    assert!(DecodeSettings { extra_columns, ..settings() }.check().is_err());
}

#[test]
fn j18_a_long_envelope_member_cannot_exhaust_memory() {
    let points = vec![r#"{"timestamp":"2026-11-01T00:00:00Z"}"#; 1_000].join(",");
    let unit = "x".repeat(1 << 20);
    let body = page(&points).replace("{\"siteId\"", &format!("{{\"unit\":\"{unit}\",\"siteId\""));
    let settings = DecodeSettings { extra_columns: vec!["unit".to_owned()], ..settings() };
    let error = decode(body.as_bytes(), &settings).unwrap_err();
    assert_eq!(error.kind(), Kind::BodyTooLarge);
}

#[test]
fn j19_the_array_is_detected_or_configured() {
    let series = format!(r#"[{{{IDS},"points":[]}}]"#);
    let two = format!(r#"{{"a":{series},"b":[1],"c":{series},"nextCursor":null}}"#);
    let (_, text) = refused(&two);
    assert!(text.contains("a, c") && text.contains("Shape(array="), "{text}");
    let with_array = |name: &str| {
        let shape = Shape { array: Some(name.to_owned()), ..Shape::default() };
        DecodeSettings { shape, ..settings() }
    };
    let decoded = decode(two.as_bytes(), &with_array("c")).unwrap();
    assert_eq!(decoded.points.envelopes.len(), 1);
    assert!(decoded.report.unknown_members.contains("a"));
    refused_by(&two, &with_array("d"));
    refused_by(r#"{"d":3,"nextCursor":null}"#, &with_array("d"));
    let (_, text) = refused(r#"{"rows":[{"x":1}],"names":["y"],"total":3,"nextCursor":null}"#);
    assert!(
        text.contains("rows") && text.contains("total") && text.contains("Shape(array="),
        "{text}"
    );
    refused(r#"{"nextCursor":null}"#);
    refused(r#"{"names":["y"],"nextCursor":null}"#);
    let (path, _) =
        refused(&format!(r#"{{"a":[{{{IDS},"points":[]}},{{{IDS}}}],"nextCursor":null}}"#));
    assert_eq!(path, "$.a[1].points");
    let (path, _) = refused(&format!(r#"{{"a":[null,{{{IDS},"points":[]}}],"nextCursor":null}}"#));
    assert_eq!(path, "$.a[0]");
}

#[test]
fn j19_p5_empty_arrays_are_an_empty_page() {
    let one = read(r#"{"series":[],"nextCursor":"c"}"#).unwrap();
    assert_eq!(one.points.rows(), 0);
    assert_eq!(one.points.batch().unwrap().schema(), crate::data::schema(&[]));
    assert!(one.report.arrays.contains("series") && one.next_cursor.is_some());
    let several = read(r#"{"series":[],"warnings":[],"notes":["x"],"nextCursor":null}"#).unwrap();
    assert!(several.report.arrays.is_empty());
    refused(r#"{"warnings":[],"data":[{"timestamp":1}],"nextCursor":null}"#);
}

#[test]
fn e5_a_list_of_errors_is_an_error_unless_empty() {
    let good = point(r#""value":1"#);
    let with = |errors: &str| good.replacen(r#""next"#, &format!(r#""errors":{errors},"next"#), 1);
    for errors in ["null", "[]", "[ ]", "{}"] {
        assert!(read(&with(errors)).is_ok(), "{errors}");
    }
    for errors in [r#"["line L2 is missing"]"#, r#"[{"code":7}]"#, "true"] {
        let (path, text) = refused(&with(errors));
        assert_eq!(path, "$.errors");
        assert!(text.contains("the page reports an error"), "{text}");
    }
    let (path, text) = refused(&good.replacen(r#""next"#, r#""error":"quota \"x\"","next"#, 1));
    assert!(path == "$.error" && text.contains("quota"), "{path} {text}");
    assert!(read(&good.replacen(r#""next"#, r#""error":null,"next"#, 1)).is_ok());
}

#[test]
fn j20_many_points_and_long_names_work() {
    let points: Vec<String> = (0..200_000_i64)
        .map(|index| (index, 1_793_491_200 + index * 60))
        .map(|(index, second)| format!(r#"{{"timestamp":{second},"value":{index}.5}}"#))
        .collect();
    let points = points.join(",");
    let tag = "t".repeat(1 << 20);
    let decoded = read(&page(&points).replace("\"T\"", &format!("\"{tag}\""))).unwrap();
    assert_eq!(decoded.points.rows(), 200_000);
    assert_eq!(floats(&decoded, "value").value(199_999).to_bits(), 199_999.5_f64.to_bits());
    assert_eq!(decoded.points.series[0].0[4].as_deref().map(str::len), Some(1 << 20));
}

#[test]
fn j21_a_changed_byte_never_causes_a_panic() {
    let extra_columns = vec!["quality".to_owned()];
    let settings = DecodeSettings { extra_columns, ..settings() };
    for seed in 0..u64::from(trials(FLIPPED_BODIES)) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut body = Vec::from(if seed % 2 == 0 { LAYOUT_A } else { LAYOUT_B });
        for _ in 0..random.usize(1..4) {
            let index = random.usize(..body.len());
            body[index] = random.u8(..);
        }
        if let Err(error) = decode(&body, &settings) {
            let kind = error.kind();
            assert!(
                matches!(kind, Kind::ProtocolError | Kind::TruncatedBody),
                "seed {seed}: {error}"
            );
        }
    }
}

#[test]
fn the_number_of_stored_series_and_texts_is_bounded() {
    let mut earlier = EarlierPages::default();
    let mut read = |first: u32, count: u32, site: &str| {
        let envelopes: Vec<String> = (first..first + count)
            .map(|tag| {
                format!(
                    r#"{{"siteId":"{site}","lineId":"L","machineId":"M","deviceId":"D","tagGuid":{tag},"points":[]}}"#
                )
            })
            .collect();
        let body = format!(r#"{{"series":[{}],"nextCursor":null}}"#, envelopes.join(","));
        decode_after(body.as_bytes(), &settings(), &mut earlier).unwrap();
        earlier.series.len()
    };
    assert_eq!(read(0, 66_000, "S"), 66_000);
    assert_eq!(read(70_000, 3, "S"), 3, "cleared");
    let long = "s".repeat(17 << 20);
    assert_eq!(read(70_000, 1, &long), 4);
    assert_eq!(read(70_000, 2, &long), 5);
    assert_eq!(read(70_000, 3, "S"), 3, "cleared");
}
