//! [`ListedIds`]: what the discovery response listed, for names (§4.2), and to tell a query for ids that are
//! not in it (K19). The
//! interface does not show the body (§4.2), so a kind of id is known only where the body has it in a form
//! that the data have too.

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::Value;

use crate::data::Query;
use crate::lock::Mutex;

/// The kinds of ids: the name in a message, the member of an id, the member of a list of them.
const KINDS: [(&str, &str, &str); 5] = [
    ("site", "siteId", "sites"),
    ("line", "lineId", "lines"),
    ("machine", "machineId", "machines"),
    ("device", "deviceId", "devices"),
    ("tag", "tagGuid", "tags"),
];
/// At most so many queries are remembered as logged.
const MOST_LOGGED: usize = 1_000;

/// The ids in the newest discovery response of a client, if there was one.
#[derive(Debug, Default)]
pub(crate) struct ListedIds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    raw: Option<Bytes>,
    body: Option<Body>,
    /// Queries without their range whose unlisted ids were logged.
    logged: HashSet<Query>,
}

#[derive(Debug, Default)]
struct Body {
    /// Whether ids of the kind were recognised.
    recognised: [bool; KINDS.len()],
    /// Every text, number and name of a member.
    words: HashSet<String>,
    /// The response may be a part of the list.
    is_partial: bool,
}

impl ListedIds {
    /// Replaces what is known by a discovery response.
    pub(crate) fn learn(&self, body: &Bytes) {
        let Ok(value) = serde_json::from_slice::<Value>(body) else { return };
        let mut found = Body::default();
        found.read(&value);
        let raw = Some(body.clone());
        *self.0.lock() = State { raw, body: Some(found), logged: HashSet::new() };
    }

    /// The newest discovery response, as it came.
    pub(crate) fn raw(&self) -> Option<Bytes> {
        self.0.lock().raw.clone()
    }

    /// The ids of a query that the discovery response does not have, such as `line "L7"`. None before
    /// the first response, and of a kind that was not recognised in it.
    pub(crate) fn missing(&self, query: &Query) -> Vec<String> {
        let state = self.0.lock();
        let Some(body) = state.body.as_ref().filter(|body| !body.is_partial) else {
            return Vec::new();
        };
        let asked = ids(query).filter(|(kind, id)| body.recognised[*kind] && !body.has(id));
        asked.map(|(kind, id)| format!("{} {id:?}", KINDS[kind].0)).collect()
    }

    /// Logs the missing ids of a query, once for all its ranges.
    pub(crate) fn log_missing(&self, query: &Query) {
        let missing = self.missing(query);
        if missing.is_empty() {
            return;
        }
        let Ok(unbounded) = query.over(None, None) else { return };
        let mut state = self.0.lock();
        if state.logged.len() >= MOST_LOGGED || !state.logged.insert(unbounded) {
            return;
        }
        drop(state);
        log::warn!(
            target: "siteline::data",
            "discovery does not list {}: the service may have no points for it", missing.join(", ")
        );
    }
}

impl Body {
    fn has(&self, id: &str) -> bool {
        self.words.contains(id)
    }

    fn read(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    self.member(name, value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.read(item)),
            Value::String(text) => self.keep(text),
            Value::Number(number) => self.keep(&number.to_string()),
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn member(&mut self, name: &str, value: &Value) {
        self.keep(name);
        self.is_partial |= name.to_lowercase().contains("cursor") && !value.is_null();
        for (kind, (_, id, list)) in KINDS.iter().enumerate() {
            let is_id = name.eq_ignore_ascii_case(id) && is_scalar(value);
            let is_list = name.eq_ignore_ascii_case(list) && is_list_of_ids(value);
            self.recognised[kind] |= is_id || is_list;
        }
        self.read(value);
    }

    fn keep(&mut self, word: &str) {
        if !self.words.contains(word) {
            self.words.insert(word.to_owned());
        }
    }
}

fn is_scalar(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

/// `["S1", "S2"]`, or `[{"id": "S1"}, ...]`.
fn is_list_of_ids(value: &Value) -> bool {
    let is_id = |item: &Value| is_scalar(item) || item.get("id").is_some_and(is_scalar);
    value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(is_id))
}

/// The ids that a query names, each with its kind.
fn ids(query: &Query) -> impl Iterator<Item = (usize, &str)> {
    let input = query.input();
    let own = [input.site.as_deref(), input.line.as_deref()];
    let own = own.into_iter().enumerate().filter_map(|(kind, id)| Some((kind, id?)));
    let filters = input.filters.iter().filter_map(|(name, values)| {
        let kind = KINDS.iter().position(|(_, id, _)| name.eq_ignore_ascii_case(id))?;
        Some(values.iter().map(move |value| (kind, value.as_str())))
    });
    own.chain(filters.flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::QueryInput;

    fn query(site: &str, line: Option<&str>, tags: &[&str]) -> Query {
        let tags: Vec<String> = tags.iter().map(|&tag| tag.to_owned()).collect();
        let filters = if tags.is_empty() { vec![] } else { vec![("tagGuid".to_owned(), tags)] };
        let (site, line) = (Some(site.to_owned()), line.map(ToOwned::to_owned));
        Query::new(QueryInput { site, line, filters, ..QueryInput::default() }).expect("a query")
    }

    fn missing(body: &str, query: &Query) -> Vec<String> {
        let listed = ListedIds::default();
        assert!(listed.missing(query).is_empty(), "nothing is known before discovery");
        listed.learn(&Bytes::copy_from_slice(body.as_bytes()));
        listed.missing(query)
    }

    #[test]
    fn k19_ids_that_a_recognised_body_does_not_have_are_told() {
        let tree = r#"{"sites": [{"siteId": "S1", "lines": [{"lineId": 7, "tags":
            [{"tagGuid": "t1"}]}]}]}"#;
        assert_eq!(
            missing(tree, &query("S9", Some("8"), &["t1", "t2"])),
            ["site \"S9\"", "line \"8\"", "tag \"t2\""]
        );
        assert!(missing(tree, &query("S1", Some("7"), &["t1"])).is_empty());
        let lists = r#"{"sites": ["S1"], "lines": [{"id": "L1"}]}"#;
        assert_eq!(missing(lists, &query("S1", Some("L2"), &["t2"])), ["line \"L2\""]);
    }

    #[test]
    fn k19_nothing_is_told_of_a_body_that_is_not_recognised_or_only_a_part() {
        for body in [
            r#"{"sites": {"S1": {}}}"#,
            r#"{"resources": [{"site": "S1"}]}"#,
            r#"{"sites": []}"#,
            r#"{"sites": ["S1"], "nextCursor": "more"}"#,
            r#"{"sites": ["S1"], "others": {"S9": 1}}"#,
            "no JSON",
        ] {
            assert!(missing(body, &query("S9", None, &[])).is_empty(), "{body}");
        }
        let last = r#"{"sites": ["S1"], "nextCursor": null}"#;
        assert_eq!(missing(last, &query("S9", None, &[])), ["site \"S9\""]);
    }
}
