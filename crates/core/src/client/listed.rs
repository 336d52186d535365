//! Ids in discovery responses, for names and to detect queries for unlisted ids. The interface does
//! not document the body. So a kind of id is recognised only in a form that pages of data use.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;

use super::discovery_body::{DiscoveryBody, KINDS};
use super::seen::SeenSeries;
use crate::data::{DiscoveryShape, Query};
use crate::lock::Mutex;

/// Minimum time between two discovery requests for the names of new series.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(3_600);
/// Minimum time before the next request after a failed one.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
const TAG: usize = KINDS.len() - 1;

const MOST_LOGGED: usize = 1_000;

/// The latest discovery response of a client.
#[derive(Debug, Default)]
pub struct ListedIds(Mutex<ListedState>);

#[derive(Debug, Default)]
struct ListedState {
    raw: Option<Bytes>,
    refusal: Option<String>,
    /// By the client's monotonic clock.
    ended: Option<Duration>,
    /// Whether a read has warned that names are missing.
    has_warned: bool,
    body: Option<DiscoveryBody>,
    /// Queries without their range.
    logged: HashSet<Query>,
    /// The user's description of the body.
    shape: Option<DiscoveryShape>,
}

impl ListedIds {
    /// `now` is the time of its receipt.
    pub(crate) fn learn(&self, body: &Bytes, now: Duration) {
        let mut state = self.0.lock();
        state.ended = Some(now);
        let Ok(found) = DiscoveryBody::read(body) else { return };
        state.raw = Some(body.clone());
        (state.refusal, state.has_warned) = (None, false);
        state.body = Some(found);
        state.logged.clear();
    }

    /// The request failed, or a read stopped waiting for it.
    pub(crate) fn give_up(&self, reason: String, now: Duration) {
        let mut state = self.0.lock();
        (state.refusal, state.ended, state.has_warned) = (Some(reason), Some(now), false);
    }

    /// Whether a read should request discovery: for the first time, or after a pause if the client
    /// has read a series since that is not listed.
    pub(super) fn is_due(&self, now: Duration, seen: &SeenSeries) -> bool {
        let state = self.0.lock();
        let Some(ended) = state.ended else { return true };
        let is_unlisted = |body: &DiscoveryBody| {
            seen.has_fresh(|series| series.0[TAG].as_ref().is_none_or(|tag| !body.has(tag)))
        };
        let pause = if state.refusal.is_some() { AFTER_FAILURE } else { BETWEEN_REQUESTS };
        now >= ended.saturating_add(pause) && state.body.as_ref().is_none_or(is_unlisted)
    }

    pub(super) fn is_older(&self, now: Duration, age: Duration) -> bool {
        self.0.lock().ended.is_none_or(|ended| now >= ended.saturating_add(age))
    }

    /// Whether names are missing for a reason that was not reported yet: a failed request, or a
    /// body without series in the expected place.
    pub(super) fn is_new_failure(&self) -> bool {
        let mut state = self.0.lock();
        let body = state.body.as_ref();
        let is_clear = body.is_some_and(|body| body.recognised[TAG]) && state.shape.is_none();
        !is_clear && !std::mem::replace(&mut state.has_warned, true)
    }

    pub fn refusal(&self) -> Option<String> {
        self.0.lock().refusal.clone()
    }

    pub fn set_shape(&self, shape: Option<DiscoveryShape>) {
        self.0.lock().shape = shape;
    }

    /// The response, with the user's description of its form.
    pub fn raw(&self) -> Option<(Bytes, Option<DiscoveryShape>)> {
        let state = self.0.lock();
        Some((state.raw.clone()?, state.shape.clone()))
    }

    /// The ids that discovery does not list, such as `line "L7"`. Empty before the first response.
    /// Kinds of ids in an unknown form are skipped.
    pub fn missing(&self, query: &Query) -> Vec<String> {
        let state = self.0.lock();
        let Some(body) = state.body.as_ref().filter(|body| !body.is_partial) else {
            return Vec::new();
        };
        let asked = ids(query).filter(|(kind, id)| body.recognised[*kind] && !body.has(id));
        asked.map(|(kind, id)| format!("{} {id:?}", KINDS[kind].0)).collect()
    }

    /// Once for all ranges of a query.
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
            "Discovery does not list {}. The service may have no points for it.", missing.join(", ")
        );
    }
}

fn ids(query: &Query) -> impl Iterator<Item = (usize, &str)> {
    let input = query.input();
    let own = [&input.site, &input.line].into_iter().enumerate();
    let own = own.flat_map(|(kind, ids)| ids.iter().map(move |id| (kind, id.as_str())));
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
        let (site, line) =
            (vec![site.to_owned()], line.map(ToOwned::to_owned).into_iter().collect());
        Query::new(QueryInput { site, line, filters, ..QueryInput::default() }).expect("a query")
    }

    fn missing(body: &str, query: &Query) -> Vec<String> {
        let listed = ListedIds::default();
        assert!(listed.missing(query).is_empty(), "no ids before discovery");
        listed.learn(&Bytes::copy_from_slice(body.as_bytes()), Duration::ZERO);
        listed.missing(query)
    }

    #[test]
    fn k19_unlisted_ids_of_a_recognised_body_are_reported() {
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
    fn k19_an_unrecognised_or_partial_body_reports_nothing() {
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
