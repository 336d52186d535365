//! Reads the ids in a discovery response. A small compressed reply may inflate to a large body, and
//! a tree of its values needs many times the memory.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use crate::data::decode::json::{Parser, ValueKind};
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
        let mut source = Parser::open(json)?;
        if !matches!(body.value(&mut source)?, Shape::Object { .. }) {
            return Err(Error::protocol_at("$", "The discovery reply is not a JSON object"));
        }
        source.finish().map(|()| body)
    }

    fn value(&mut self, json: &mut Parser<'_>) -> Result<Shape> {
        self.values += 1;
        if self.values > MOST_VALUES {
            let message = format!("The discovery reply has more than {MOST_VALUES} values.");
            return Err(Error::new(Kind::BodyTooLarge, message));
        }
        match json.peek()? {
            ValueKind::Object => self.object(json),
            ValueKind::Array => self.array(json),
            ValueKind::Text => {
                self.keep(&json.string()?);
                Ok(Shape::Scalar)
            }
            ValueKind::Number => {
                self.keep(json.number()?.text());
                Ok(Shape::Scalar)
            }
            ValueKind::Null => json.literal().map(|()| Shape::Null),
            ValueKind::True | ValueKind::False => json.literal().map(|()| Shape::Other),
        }
    }

    fn array(&mut self, json: &mut Parser<'_>) -> Result<Shape> {
        json.enter()?;
        let (mut first, mut is_empty, mut are_ids) = (true, true, true);
        while json.next_element(&mut first)? {
            let shape = self.value(json)?;
            is_empty = false;
            are_ids &= matches!(shape, Shape::Scalar | Shape::Object { has_id: true });
        }
        Ok(if are_ids && !is_empty { Shape::ListOfIds } else { Shape::Other })
    }

    fn object(&mut self, json: &mut Parser<'_>) -> Result<Shape> {
        json.enter()?;
        let (mut first, mut has_id) = (true, false);
        while json.next_member(&mut first)? {
            let name = json.name()?;
            self.keep(&name);
            let shape = self.value(json)?;
            has_id |= name == "id" && shape == Shape::Scalar;
            self.member(&name, shape);
        }
        Ok(Shape::Object { has_id })
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
