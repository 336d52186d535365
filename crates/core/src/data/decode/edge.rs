//! Finds the next cursor before a page is decoded, if it is near the start or the end of the body.
//!
//! The first and last members of the outermost object can be read without the rest, if their values
//! are neither objects nor arrays and their strings contain no backslash. This is correct for valid
//! JSON. The decoder later checks that the body is valid.

use crate::data::cursor::Cursor;

/// Maximum number of members to read from the start and from the end.
const MEMBERS: usize = 8;

/// The next cursor of a page, if it is found. For a valid page, the decoder finds the same one.
pub(crate) fn cursor_at_an_edge(body: &[u8], name: &str) -> Option<Cursor> {
    let name = name.as_bytes();
    let text = from_start(body, name).or_else(|| from_end(body, name))?;
    std::str::from_utf8(text).ok().map(Cursor::new)
}

fn from_start<'a>(body: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    let mut rest = body.trim_ascii_start().strip_prefix(b"{")?;
    for _ in 0..MEMBERS {
        let (member, after) = first_text(rest.trim_ascii_start())?;
        let value = after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let (text, after) = match first_text(value) {
            Some((text, after)) => (Some(text), after),
            None => (None, after_plain(value)?),
        };
        if member == name {
            return text;
        }
        rest = after.trim_ascii_start().strip_prefix(b",")?;
    }
    None
}

fn from_end<'a>(body: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut rest = body.trim_ascii_end().strip_suffix(b"}")?;
    for _ in 0..MEMBERS {
        let value = rest.trim_ascii_end();
        let (text, before) = match last_text(value) {
            Some((text, before)) => (Some(text), before),
            None => (None, before_plain(value)?),
        };
        let before = before.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end();
        let (member, before) = last_text(before)?;
        if member == name {
            return text;
        }
        rest = before.trim_ascii_end().strip_suffix(b",")?;
    }
    None
}

/// Splits off a string at the start.
fn first_text(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let json = json.strip_prefix(b"\"")?;
    let end = json.iter().position(|byte| ends_or_escapes(*byte))?;
    (json[end] == b'"').then(|| (&json[..end], &json[end + 1..]))
}

/// Splits off a string at the end. A quotation mark within a string follows a backslash, so the
/// last one without a backslash starts the string.
fn last_text(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let json = json.strip_suffix(b"\"")?;
    let start = json.iter().rposition(|byte| ends_or_escapes(*byte))?;
    let before = &json[..start];
    (json[start] == b'"' && before.last() != Some(&b'\\')).then(|| (&json[start + 1..], before))
}

fn ends_or_escapes(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\')
}

/// Skips a number or literal at the start.
fn after_plain(json: &[u8]) -> Option<&[u8]> {
    let length = json.iter().take_while(|byte| is_plain(**byte)).count();
    (length > 0).then(|| &json[length..])
}

/// Skips a number or literal at the end.
fn before_plain(json: &[u8]) -> Option<&[u8]> {
    let length = json.iter().rev().take_while(|byte| is_plain(**byte)).count();
    (length > 0).then(|| &json[..json.len() - length])
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn found(body: &str) -> Option<String> {
        let cursor = cursor_at_an_edge(body.as_bytes(), "nextCursor")?;
        Some(cursor.secret().to_owned())
    }

    #[test]
    fn text_that_only_resembles_a_cursor_is_ignored() {
        for body in [
            r#"{"series":[],"nextCursor":null}"#,
            r#"{"nextCursor":null,"series":[]}"#,
            r#"{"series":[{"nextCursor":"c"}]}"#,
            r#"{"series":{"nextCursor":"c"}}"#,
            r#"{"note":{"nextCursor":"c"},"series":[],"count":1}"#,
            r#"{"series":[],"note":"\"nextCursor\":\"c"}"#,
            r#"{"series":[],"note":"\\\"nextCursor\":\"c"}"#,
            r#"{"series":[],"x\"nextCursor":"c"}"#,
            r#"{"note":"\",\"nextCursor\":\"c\"","series":[]}"#,
            r#"{"series":[],"nextCursor":"c\\"}"#,
            r#"{"series":[],"nextCursor":"\"c"}"#,
            r#"{"series":[],"next\u0043ursor":"c"}"#,
            r#"{"series":[],"nextCursor":["c"]}"#,
            r#"["nextCursor","c"]"#,
            "{\"nextCursor\"",
            "{}",
            "{",
            "",
        ] {
            assert_eq!(found(body), None, "{body}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text().prop_map(Value::from),
        ];
        plain.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((text(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Texts that look like JSON or like the cursor's member.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            2 => Just("nextCursor".to_owned()),
            1 => Just("\"nextCursor\":\"c\"".to_owned()),
            1 => Just(",\"nextCursor\":\"c".to_owned()),
            2 => r#"["\\{}:, a\n]{0,8}"#,
            1 => any::<String>(),
        ]
    }

    proptest! {
        #[test]
        fn the_cursor_found_is_the_value_of_its_member(
            members in prop::collection::vec((text(), value()), 0..6),
            pretty in any::<bool>(),
        ) {
            let object = Value::Object(members.into_iter().collect());
            let body = if pretty {
                serde_json::to_string_pretty(&object)
            } else {
                serde_json::to_string(&object)
            };
            let body = body.expect("JSON");
            if let Some(cursor) = found(&body) {
                prop_assert_eq!(Some(cursor.as_str()), object["nextCursor"].as_str());
            } else if let Some(Value::String(text)) = object.get("nextCursor") {
                // A cursor in the first or last member is found.
                let members = object.as_object().expect("an object");
                let edge = [members.keys().next(), members.keys().next_back()];
                let is_plain = !text.contains(|c: char| c == '"' || c == '\\' || c.is_control());
                prop_assert!(!is_plain || !edge.contains(&Some(&"nextCursor".to_owned())));
            }
        }
    }
}
