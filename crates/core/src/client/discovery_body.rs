//! Reads the ids in a discovery response. A small compressed reply may inflate to a large body, and
//! a tree of its values needs many times the memory.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use crate::error::{Error, Kind, Result};

/// Name in messages, member for one id, member for a list.
pub(super) const KINDS: [(&str, &str, &str); 5] = [
    ("site", "siteId", "sites"),
    ("line", "lineId", "lines"),
    ("machine", "machineId", "machines"),
    ("device", "deviceId", "devices"),
    ("tag", "tagGuid", "tags"),
];
/// Each value becomes a Python object.
const MOST_VALUES: usize = 4_000_000;

#[derive(Debug, Default)]
pub(super) struct DiscoveryBody {
    /// Whether ids of each kind were found in a known form.
    pub(super) recognised: [bool; KINDS.len()],
    /// Hashes of all texts, numbers and member names.
    words: HashSet<u64>,
    hasher: RandomState,
    /// Whether it contains a cursor.
    pub(super) is_partial: bool,
    values: usize,
}

impl DiscoveryBody {
    /// Reads a complete body, which must be a JSON object.
    pub(super) fn read(json: &[u8]) -> Result<Self> {
        let mut body = Self::default();
        let mut source = serde_json::Deserializer::from_slice(json);
        let read = Value(&mut body).deserialize(&mut source);
        let shape = read.and_then(|shape| source.end().map(|()| shape));
        match shape {
            Ok(Shape::Object { .. }) => Ok(body),
            Ok(_) => Err(Error::protocol_at("$", "The discovery reply is not a JSON object")),
            // Some servers end a reply by closing the connection, so only the JSON shows the
            // truncation.
            Err(error) if error.is_eof() => Err(Error::new(
                Kind::TruncatedBody,
                "The JSON of the discovery reply is truncated.",
            )),
            Err(_) if body.values > MOST_VALUES => {
                let message = format!("The discovery reply has more than {MOST_VALUES} values.");
                Err(Error::new(Kind::BodyTooLarge, message))
            }
            Err(_) => {
                Err(Error::new(Kind::ProtocolError, "The discovery reply is not valid JSON."))
            }
        }
    }

    /// Whether this text is a value or member name.
    pub(super) fn has(&self, word: &str) -> bool {
        self.words.contains(&self.hasher.hash_one(word))
    }

    fn keep(&mut self, word: &str) {
        self.words.insert(self.hasher.hash_one(word));
    }

    fn member(&mut self, name: &str, shape: Shape) {
        self.is_partial |= shape != Shape::Null && name.to_lowercase().contains("cursor");
        for (kind, (_, id, list)) in KINDS.iter().enumerate() {
            let is_id = shape == Shape::Scalar && name.eq_ignore_ascii_case(id);
            let is_list = shape == Shape::ListOfIds && name.eq_ignore_ascii_case(list);
            self.recognised[kind] |= is_id || is_list;
        }
    }
}

/// Decides whether a member is an id or a list of ids.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Null,
    /// A text or a number.
    Scalar,
    /// `["S1", "S2"]`, or `[{"id": "S1"}, ...]`.
    ListOfIds,
    Object {
        has_id: bool,
    },
    Other,
}

struct Value<'a>(&'a mut DiscoveryBody);

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Shape;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Shape, D::Error> {
        self.0.values += 1;
        if self.0.values > MOST_VALUES {
            return Err(D::Error::custom("too many values"));
        }
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Null)
    }

    fn visit_bool<E>(self, _value: bool) -> Result<Shape, E> {
        Ok(Shape::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Shape, E> {
        self.0.keep(text);
        Ok(Shape::Scalar)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Shape, E> {
        self.0.keep(&number.to_string());
        Ok(Shape::Scalar)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Shape, E> {
        self.0.keep(&number.to_string());
        Ok(Shape::Scalar)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Shape, E> {
        if let Some(number) = Number::from_f64(number) {
            self.0.keep(&number.to_string());
        }
        Ok(Shape::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Shape, A::Error> {
        let (mut is_empty, mut are_ids) = (true, true);
        while let Some(shape) = items.next_element_seed(Value(self.0))? {
            is_empty = false;
            are_ids &= matches!(shape, Shape::Scalar | Shape::Object { has_id: true });
        }
        Ok(if are_ids && !is_empty { Shape::ListOfIds } else { Shape::Other })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Shape, A::Error> {
        let mut has_id = false;
        while let Some(name) = members.next_key::<String>()? {
            self.0.keep(&name);
            let shape = members.next_value_seed(Value(self.0))?;
            has_id |= name == "id" && shape == Shape::Scalar;
            self.0.member(&name, shape);
        }
        Ok(Shape::Object { has_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_many_values_is_refused_without_a_tree() {
        let body = format!("{{\"a\":[{}0]}}", "[],".repeat(MOST_VALUES));
        let error = DiscoveryBody::read(body.as_bytes()).expect_err("too many");
        assert_eq!(error.kind(), Kind::BodyTooLarge);
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let error = DiscoveryBody::read(deep.as_bytes()).expect_err("too deep");
        assert_eq!(error.kind(), Kind::ProtocolError);
    }

    #[test]
    fn memory_is_bounded_by_the_distinct_words() {
        let body = format!("{{\"a\":[{}0]}}", "\"word\",".repeat(100_000));
        let read = DiscoveryBody::read(body.as_bytes()).expect("a body");
        assert_eq!(read.words.len(), 3);
        assert!(read.has("word") && read.has("a") && read.has("0") && !read.has("b"));
    }
}
