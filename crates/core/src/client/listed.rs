//! [`ListedIds`]: what the discovery response listed, for names (§4.2), and to tell a query for ids that are
//! not in it (K19). The
//! interface does not show the body (§4.2), so a kind of id is known only where the body has it in a form
//! that the data have too.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;

use super::discovery_body::{DiscoveryBody, KINDS};
use super::seen::SeenSeries;
use crate::data::{DiscoveryShape, Query};
use crate::lock::Mutex;

/// The least time between two discovery requests for the names of new series.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(3_600);
/// The pause after a request that did not answer in time.
const AFTER_SILENCE: Duration = Duration::from_secs(60);
/// The place of tags among the kinds of ids.
const TAG: usize = KINDS.len() - 1;

/// At most so many queries are remembered as logged.
const MOST_LOGGED: usize = 1_000;

/// The ids in the newest discovery response of a client, if there was one.
#[derive(Debug, Default)]
pub struct ListedIds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    raw: Option<Bytes>,
    /// Why the newest discovery request failed.
    refusal: Option<String>,
    /// When it ended, by the client's monotonic clock.
    ended: Option<Duration>,
    /// Whether it did not answer in time.
    was_silent: bool,
    /// Whether a read has warned that there are no names.
    has_warned: bool,
    body: Option<DiscoveryBody>,
    /// Queries without their range whose unlisted ids were logged.
    logged: HashSet<Query>,
    /// Where the user says that the body has its series.
    shape: Option<DiscoveryShape>,
}

impl ListedIds {
    /// Replaces what is known by a discovery response, which came now.
    pub(crate) fn learn(&self, body: &Bytes, now: Duration) {
        let mut state = self.0.lock();
        (state.ended, state.was_silent) = (Some(now), false);
        let Ok(found) = DiscoveryBody::read(body) else { return };
        state.raw = Some(body.clone());
        (state.refusal, state.has_warned) = (None, false);
        state.body = Some(found);
        state.logged.clear();
    }

    /// Keeps the reason why a discovery request failed, for the reports of reads without names.
    pub(crate) fn refuse(&self, reason: String, now: Duration) {
        let mut state = self.0.lock();
        (state.refusal, state.ended, state.has_warned) = (Some(reason), Some(now), false);
        state.was_silent = false;
    }

    /// Keeps the reason why a read did not wait longer for a discovery request.
    pub(crate) fn give_up(&self, reason: String, now: Duration) {
        self.refuse(reason, now);
        self.0.lock().was_silent = true;
    }

    /// Whether discovery is to be requested: it never was, or more than an hour ago, and failed or did not
    /// list a series that the client has read since.
    pub(super) fn is_due(&self, now: Duration, seen: &SeenSeries) -> bool {
        let state = self.0.lock();
        let Some(ended) = state.ended else { return true };
        let is_unlisted = |body: &DiscoveryBody| {
            seen.has_fresh(|series| series.0[TAG].as_ref().is_none_or(|tag| !body.has(tag)))
        };
        let pause = if state.was_silent { AFTER_SILENCE } else { BETWEEN_REQUESTS };
        now >= ended.saturating_add(pause) && state.body.as_ref().is_none_or(is_unlisted)
    }

    pub(super) fn is_older(&self, now: Duration, age: Duration) -> bool {
        self.0.lock().ended.is_none_or(|ended| now >= ended.saturating_add(age))
    }

    /// Whether labels may lack names for a reason that this did not return true for before: a refusal, or
    /// a body in which the series are not where the client expects them.
    pub(super) fn is_new_failure(&self) -> bool {
        let mut state = self.0.lock();
        let body = state.body.as_ref();
        let is_clear = body.is_some_and(|body| body.recognised[TAG]) && state.shape.is_none();
        !is_clear && !std::mem::replace(&mut state.has_warned, true)
    }

    /// The reason why the newest discovery request failed.
    pub fn refusal(&self) -> Option<String> {
        self.0.lock().refusal.clone()
    }

    /// States where discovery responses have their series.
    pub fn set_shape(&self, shape: Option<DiscoveryShape>) {
        self.0.lock().shape = shape;
    }

    /// The newest discovery response as it came, and where it has its series if the user stated that.
    pub fn raw(&self) -> Option<(Bytes, Option<DiscoveryShape>)> {
        let state = self.0.lock();
        Some((state.raw.clone()?, state.shape.clone()))
    }

    /// The ids of a query that the discovery response does not have, such as `line "L7"`. None before
    /// the first response, and of a kind that was not recognised in it.
    pub fn missing(&self, query: &Query) -> Vec<String> {
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

/// The ids that a query names, each with its kind.
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
        assert!(listed.missing(query).is_empty(), "nothing is known before discovery");
        listed.learn(&Bytes::copy_from_slice(body.as_bytes()), Duration::ZERO);
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
