//! Compares pages in random layouts, which may change between points, with `serde_json`. A layout
//! that the decoder has learned must not change the values of other points, nor may earlier pages.

#[path = "../../../../../tests/fuzz/src/page_checks.rs"]
mod page_checks;

use std::collections::HashSet;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::Value;

use self::page_checks::{IDS, NUMBERS, compare_cursors, compare_with_serde_json};
use super::tests::{read, settings};
use super::{DecodeSettings, Decoded, EarlierPages, decode, decode_after};
use crate::data::cursor::Cursor;
use crate::data::{Chain, Query, QueryInput};
use crate::error::{Kind, Result};

const FIRST_SECOND: i64 = 1_793_491_200;

#[derive(Debug, Clone)]
struct Layout {
    /// The sort keys of the members.
    order: Vec<u8>,
    /// White space before a name, after it, before a value, after it.
    spaces: [String; 4],
    escaped: bool,
    /// Whether null members are omitted.
    sparse: bool,
    unknown: Option<(String, String)>,
}

impl Layout {
    fn object(&self, members: Vec<(&str, String)>) -> String {
        let known = members.into_iter().filter(|(_, value)| !self.sparse || value != "null");
        let mut members: Vec<(String, String)> =
            known.map(|(name, value)| (self.name(name), value)).collect();
        if let Some((name, value)) = &self.unknown {
            members.push((serde_json::to_string(&format!("x{name}")).unwrap(), value.clone()));
        }
        let mut ordered: Vec<(u8, String)> = Vec::new();
        let [before_name, after_name, before_value, after_value] = &self.spaces;
        for (index, (name, value)) in members.into_iter().enumerate() {
            let written =
                format!("{before_name}{name}{after_name}:{before_value}{value}{after_value}");
            ordered.push((self.order[index % self.order.len()], written));
        }
        ordered.sort_by_key(|(key, _)| *key);
        let texts: Vec<String> = ordered.into_iter().map(|(_, text)| text).collect();
        format!("{{{}}}", texts.join(","))
    }

    fn name(&self, name: &str) -> String {
        if !self.escaped {
            return format!("\"{name}\"");
        }
        let (first, rest) = name.split_at(1);
        format!("\"\\u{:04x}{rest}\"", first.as_bytes()[0])
    }
}

#[derive(Debug, Clone)]
struct Point {
    second: i64,
    numbers: [String; 3],
    count: String,
}

fn layout() -> impl Strategy<Value = Layout> {
    let space =
        prop_oneof![4 => Just(String::new()), 2 => Just(" ".to_owned()), 1 => "[ \n\r\t]{1,40}"];
    let name = prop_oneof![Just("unit".to_owned()), any::<String>()];
    let unknown = (name, unknown_value());
    (
        prop::collection::vec(any::<u8>(), 7),
        [space.clone(), space.clone(), space.clone(), space],
        prop::bool::weighted(0.1),
        any::<bool>(),
        prop::option::of(unknown),
    )
        .prop_map(|(order, spaces, escaped, sparse, unknown)| Layout {
            order,
            spaces,
            escaped,
            sparse,
            unknown,
        })
}

fn unknown_value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just("\"good\"".to_owned()),
        Just("192".to_owned()),
        Just("-0.5e-3".to_owned()),
        Just("null".to_owned()),
        Just("[ true,{\"value\":[1,{}]},\"\\\"}\"]".to_owned()),
        Just("{\"timestamp\" : 3, \"points\":[]}".to_owned()),
    ]
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (-1_000.0..1_000.0).prop_map(|number: f64| number.to_string()),
        2 => "-?(0|[1-9][0-9]{0,12})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
        1 => Just("null".to_owned()),
    ]
}

fn point() -> impl Strategy<Value = Point> {
    let count = prop_oneof![3 => "[1-9][0-9]{0,9}", 1 => Just("0".to_owned()), 1 => Just("null".to_owned())];
    (0..600_000_i64, [number(), number(), number()], count)
        .prop_map(|(second, numbers, count)| Point { second, numbers, count })
}

/// An id as JSON.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c\"é]{0,2}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        1 => Just("null".to_owned()),
        1 => Just("7".to_owned()),
    ]
}

fn page() -> impl Strategy<Value = String> {
    let ids = prop::collection::vec(id(), 5);
    let envelope = (ids, prop::collection::vec((point(), any::<prop::sample::Index>()), 0..12));
    (
        prop::collection::vec(envelope, 0..5),
        prop::collection::vec(layout(), 1..5),
        // One layout for the page, the layouts in turn, or a random one for each point.
        0..3_usize,
        prop::option::weighted(0.8, "[a-z\"\\\\:,é]{0,4}"),
    )
        .prop_map(|(envelopes, layouts, change, cursor)| {
            written(&envelopes, &layouts, change, cursor.as_deref())
        })
}

type Envelope = (Vec<String>, Vec<(Point, prop::sample::Index)>);

fn written(
    envelopes: &[Envelope],
    layouts: &[Layout],
    change: usize,
    cursor: Option<&str>,
) -> String {
    let mut read = 0;
    let mut texts = Vec::new();
    for (ids, points) in envelopes {
        let mut rows = Vec::new();
        let mut layout = &layouts[0];
        for (point, index) in points {
            layout = match change {
                0 => &layouts[0],
                1 => &layouts[read / 7 % layouts.len()],
                _ => index.get(layouts),
            };
            read += 1;
            let at = Timestamp::from_second(FIRST_SECOND + point.second).unwrap();
            let mut members = vec![("timestamp", format!("\"{at}\""))];
            members.extend(NUMBERS.into_iter().zip(point.numbers.clone()));
            members.push(("sampleCount", point.count.clone()));
            rows.push(layout.object(members));
        }
        let space = &layout.spaces[0];
        let mut members: Vec<(&str, String)> = IDS.into_iter().zip(ids.iter().cloned()).collect();
        members.push(("points", format!("[{space}{}]", rows.join(&format!(",{space}")))));
        // An id may be null, but not missing.
        texts.push(Layout { sparse: false, ..layout.clone() }.object(members));
    }
    let cursor = serde_json::to_string(&cursor).unwrap();
    let members = vec![("series", format!("[{}]", texts.join(","))), ("nextCursor", cursor)];
    // Other tests cover other members of the page.
    Layout { sparse: false, unknown: None, ..layouts[0].clone() }.object(members)
}

fn same(one: &Result<Decoded>, other: &Result<Decoded>) -> std::result::Result<(), TestCaseError> {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            prop_assert_eq!(one.points.batch().unwrap(), other.points.batch().unwrap());
            prop_assert_eq!(&one.points.series, &other.points.series);
            prop_assert_eq!(&one.points.envelopes, &other.points.envelopes);
            prop_assert_eq!(&one.report, &other.report);
        }
        (Err(one), Err(other)) => {
            prop_assert_eq!(one.to_string(), other.to_string());
            prop_assert_eq!(&one.context().path, &other.context().path);
        }
        (one, other) => prop_assert!(false, "{one:?}\n{other:?}"),
    }
    Ok(())
}

/// Whether no point has any of the four values, and some have unknown members (J22).
fn lacks_values(tree: &Value) -> bool {
    let series = tree["series"].as_array().into_iter().flatten();
    let points = series.flat_map(|series| series["points"].as_array().into_iter().flatten());
    let names: HashSet<&str> =
        points.filter_map(Value::as_object).flatten().map(|(name, _)| name.as_str()).collect();
    let is_value = |name: &str| NUMBERS.contains(&name) || name == "sampleCount";
    !names.iter().any(|name| is_value(name)) && names.len() > 1
}

proptest! {
    #![proptest_config(crate::test_kit::cases(256))]

    #[test]
    fn j18_any_layout_is_read_as_by_serde_json(body in page()) {
        let tree: Value = serde_json::from_str(&body).unwrap();
        let decoded = match read(&body) {
            Ok(decoded) => decoded,
            Err(error) => {
                prop_assert!(lacks_values(&tree), "{error}\n{body}");
                return Ok(());
            }
        };
        prop_assert!(!lacks_values(&tree));
        compare_with_serde_json(body.as_bytes(), &decoded);
        compare_cursors(body.as_bytes(), &decoded);
        let cursor = decoded.next_cursor.as_ref().map(Cursor::secret);
        prop_assert_eq!(cursor, tree["nextCursor"].as_str());
    }

    #[test]
    fn j18_earlier_pages_do_not_change_the_result(
        pages in prop::collection::vec(page(), 1..6),
        repeats in prop::collection::vec(any::<prop::sample::Index>(), 6),
        damage in prop::option::weighted(0.5, (any::<prop::sample::Index>(), any::<prop::sample::Index>())),
        has_extra_column in prop::bool::weighted(0.2),
    ) {
        let extra_columns = if has_extra_column { vec!["xunit".to_owned()] } else { Vec::new() };
        let settings = DecodeSettings { extra_columns, ..settings() };
        let mut earlier = EarlierPages::default();
        // Each page is followed by a repeated one, which is usually recognised.
        for (page_after, again) in pages.iter().zip(&repeats) {
            for body in [page_after, again.get(&pages)] {
                let mut body = body.clone().into_bytes();
                if let Some((at, byte)) = &damage {
                    let at = at.index(body.len());
                    body[at] = *byte.get(br#"{}[]",:3a "#.as_slice());
                }
                same(&decode(&body, &settings), &decode_after(&body, &settings, &mut earlier))?;
            }
        }
    }

    #[test]
    fn j21_a_damaged_page_is_refused_or_read_as_by_serde_json(
        body in page(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..64_usize), 64),
    ) {
        // Bytes with a meaning in JSON, or frequent in pages.
        let bytes = b"{}[]\",:\\e.-+0 \n\t195nultx";
        for (index, byte) in damage {
            let mut damaged = body.clone().into_bytes();
            let index = index.index(damaged.len());
            match bytes.get(byte) {
                Some(byte) => damaged[index] = *byte,
                None if byte % 2 == 0 => drop(damaged.remove(index)),
                None => damaged.insert(index, bytes[byte % bytes.len()]),
            }
            let Ok(decoded) = decode(&damaged, &settings()) else { continue };
            compare_cursors(&damaged, &decoded);
            compare_with_serde_json(&damaged, &decoded);
        }
    }
}

proptest! {
    // Few cases, because each page is cut at every byte.
    #![proptest_config(crate::test_kit::cases(48))]

    #[test]
    fn h8_a_cut_page_is_truncated_in_any_layout(body in page()) {
        for length in 1..body.len() {
            let error = decode(&body.as_bytes()[..length], &settings()).unwrap_err();
            prop_assert_eq!(error.kind(), Kind::TruncatedBody, "{} of {}", length, body);
        }
    }
}
