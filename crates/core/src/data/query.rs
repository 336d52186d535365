//! Queries to the data endpoint: validated, canonical, immutable. The wire form is constant within
//! a chain.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use super::cursor::Cursor;
use super::instant::check_bound;
use super::selection::{Ids, Levels, Selection};
use crate::error::{Error, Kind, Result, escaped, excerpt};

/// Percent-encodes all but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Parameters with their own argument.
const RESERVED: [&str; 7] =
    ["siteId", "lineId", "from", "to", "aggregationIntervalSeconds", "pageSize", "cursor"];

/// A query before validation. Empty parts are not sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct QueryInput {
    /// `siteId`; each is read by its own chain.
    pub site: Vec<String>,
    /// `lineId`; each is read by its own chain.
    pub line: Vec<String>,
    /// `from`, in whole seconds.
    pub start: Option<Timestamp>,
    /// `to`, in whole seconds.
    pub end: Option<Timestamp>,
    /// `aggregationIntervalSeconds`: the bucket width.
    pub interval_seconds: Option<u32>,
    /// `pageSize`.
    pub page_size: Option<u32>,
    /// Other parameters by wire name. A parameter is repeated for each of its values.
    pub filters: Vec<(String, Vec<String>)>,
    #[serde(skip_serializing_if = "Selection::is_empty")]
    pub selection: Selection,
}

/// Clones are cheap. `Display` prints its parameters, which are not secret. A query with several
/// sites or lines is sent as [`Query::chains`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Query(Arc<QueryParts>);

#[derive(PartialEq, Eq, Hash)]
struct QueryParts {
    input: QueryInput,
    wire: String,
}

impl Query {
    /// Validates and sorts: site, line, range, interval, page size, then the filters by name. The
    /// values of a filter keep their order. Duplicate ids are removed.
    pub fn new(mut input: QueryInput) -> Result<Self> {
        for (name, ids) in [("site", &mut input.site), ("line", &mut input.line)] {
            if ids.iter().any(String::is_empty) {
                return Err(Error::new(Kind::QueryError, format!("{name}= contains an empty id."))
                    .with_hint("Leave it out to read all."));
            }
            let mut known = HashSet::new();
            ids.retain(|id| known.insert(id.clone()));
        }
        check_range(input.start, input.end)?;
        for (name, number) in [("interval", input.interval_seconds), ("page_size", input.page_size)]
        {
            if number == Some(0) {
                return Err(Error::new(
                    Kind::QueryError,
                    format!("{name}= is 0, but must be 1 or more."),
                ));
            }
        }
        input.filters = canonical_filters(input.filters)?;
        input.selection.check(&input.filters)?;
        if input.selection.is_empty() {
            // The names of parameters do not distinguish queries without a selection.
            input.selection = Selection::default();
        }
        let query = Self::from_valid(input);
        if !query.input().selection.is_empty() {
            Self::check_selected(&query.chains())?;
        }
        Ok(query)
    }

    pub fn over(&self, start: Option<Timestamp>, end: Option<Timestamp>) -> Result<Self> {
        check_range(start, end)?;
        Ok(self.with(QueryInput { start, end, ..self.0.input.clone() }))
    }

    /// One for each site, line and value of a filter that is sent.
    pub fn chains(&self) -> Vec<Self> {
        let chains = self.chains_of(&self.input().selection.levels);
        // Texts of series= that are not ids may be names, which discovery resolves later.
        if chains.is_empty() { self.chains_of(&Levels::default()) } else { chains }
    }

    /// `levels` are sent as the ids of machines, devices and tags.
    pub(crate) fn chains_of(&self, levels: &Levels) -> Vec<Self> {
        let input = self.input();
        let chain = |ids: Ids| {
            let mut filters = input.filters.clone();
            filters.extend(input.selection.filters(&ids));
            filters.sort_by(|(left, _), (right, _)| left.cmp(right));
            let [site, line, ..] = ids.map(|id| id.into_iter().collect());
            self.with(QueryInput { site, line, filters, ..input.clone() })
        };
        input.selection.chains(&input.site, &input.line, levels).into_iter().map(chain).collect()
    }

    pub(crate) fn check_selected(chains: &[Self]) -> Result<()> {
        if !chains.is_empty() {
            return Ok(());
        }
        let message = "No series of series= matches site=, line=, machine=, device= and tag=.";
        Err(Error::new(Kind::QueryError, message).with_hint("Use series= only."))
    }

    fn with(&self, input: QueryInput) -> Self {
        if input == *self.input() { self.clone() } else { Self::from_valid(input) }
    }

    fn from_valid(input: QueryInput) -> Self {
        let mut wire = String::new();
        for (name, value) in parameters(&input) {
            push_parameter(&mut wire, name, &value);
        }
        Self(Arc::new(QueryParts { input, wire }))
    }

    /// Validated, with filters sorted by name.
    pub fn input(&self) -> &QueryInput {
        &self.0.input
    }

    /// The title of a progress bar: sites and lines, otherwise `siteline`.
    pub fn title(&self) -> String {
        let ids: Vec<&str> =
            self.0.input.site.iter().chain(&self.0.input.line).map(String::as_str).collect();
        if ids.is_empty() { "siteline".to_owned() } else { ids.join(" ") }
    }

    pub fn start(&self) -> Option<Timestamp> {
        self.0.input.start
    }

    pub fn end(&self) -> Option<Timestamp> {
        self.0.input.end
    }

    /// A missing bound is the smallest or largest integer.
    pub fn microseconds(&self) -> Range<i64> {
        let [start, end] = [self.start(), self.end()].map(|at| at.map(Timestamp::as_microsecond));
        start.unwrap_or(i64::MIN)..end.unwrap_or(i64::MAX)
    }

    pub fn interval_seconds(&self) -> Option<u32> {
        self.0.input.interval_seconds
    }

    /// Percent-encoded, without `?`.
    pub fn wire(&self) -> &str {
        &self.0.wire
    }

    /// `size` is used if the query has no page size.
    pub(crate) fn wire_sized(&self, size: Option<u32>) -> String {
        let mut wire = self.0.wire.clone();
        if let Some(size) = size.filter(|_| self.0.input.page_size.is_none()) {
            push_parameter(&mut wire, "pageSize", &size.to_string());
        }
        wire
    }

    /// The bytes of the first page, then the unchanged cursor, which makes it secret.
    pub(crate) fn wire_with(&self, size: Option<u32>, cursor: &Cursor) -> String {
        let mut wire = self.wire_sized(size);
        push_parameter(&mut wire, "cursor", cursor.secret());
        wire
    }

    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        let selection = &self.0.input.selection;
        if selection.is_empty() {
            return sha256("siteline query", self.0.wire.as_bytes());
        }
        sha256("siteline query", format!("{} {}", self.0.wire, selection.identity()).as_bytes())
    }
}

/// `name` is the argument and `shown` its value as the user wrote it.
pub fn bucket_width(name: &str, width: Duration, shown: impl FnOnce() -> String) -> Result<u32> {
    let refused = |message: String| Error::new(Kind::QueryError, message);
    if width.subsec_nanos() != 0 || width.is_zero() {
        let message = "is not a bucket width. Use a whole number of seconds, 1 or more.";
        return Err(refused(format!("{name}={} {message}", shown())));
    }
    u32::try_from(width.as_secs())
        .map_err(|_| refused(format!("{name}= is longer than 136 years.")))
}

pub(crate) fn origin_fingerprint(origin: &str) -> [u8; 32] {
    sha256("siteline origin", origin.as_bytes())
}

/// A hash of the queries in any order. A single query has its own hash.
pub(crate) fn chains_fingerprint(chains: &[Query]) -> [u8; 32] {
    let mut prints: Vec<_> = chains.iter().map(Query::fingerprint).collect();
    prints.sort_unstable();
    match prints.as_slice() {
        [one] => *one,
        all => sha256("siteline chains", all.as_flattened()),
    }
}

/// The label keeps hashes for different purposes apart.
pub(super) fn sha256(label: &str, bytes: &[u8]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(label.as_bytes());
    context.update(&[0]);
    context.update(bytes);
    context.finish().as_ref().first_chunk().copied().unwrap_or_default()
}

fn check_range(start: Option<Timestamp>, end: Option<Timestamp>) -> Result<()> {
    for (name, bound) in [("start", start), ("end", end)] {
        if let Some(bound) = bound {
            check_bound(name, bound)?;
        }
    }
    match (start, end) {
        (Some(start), Some(end)) if start >= end => {
            let message = format!("The range is empty: start {start} is not before end {end}.");
            let hint = if start == end {
                "To read one bucket, set end to start plus the interval."
            } else {
                "Are start and end swapped?"
            };
            Err(Error::new(Kind::QueryError, message).with_hint(hint))
        }
        _ => Ok(()),
    }
}

fn canonical_filters(filters: Vec<(String, Vec<String>)>) -> Result<Vec<(String, Vec<String>)>> {
    let mut canonical: Vec<(String, Vec<String>)> = Vec::with_capacity(filters.len());
    for (name, values) in filters {
        if name.is_empty() {
            return Err(Error::new(Kind::QueryError, "The name of a filter is empty."));
        }
        if let Some(reserved) = RESERVED.iter().find(|known| known.eq_ignore_ascii_case(&name)) {
            return Err(Error::new(
                Kind::QueryError,
                format!("The filter {:?} is the parameter {reserved}.", excerpt(&name)),
            )
            .with_hint("Use its own argument, or leave it to siteline."));
        }
        if values.is_empty() || values.iter().any(String::is_empty) {
            let message = format!("The filter {:?} has an empty value.", excerpt(&name));
            return Err(Error::new(Kind::QueryError, message));
        }
        match canonical.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.extend(values),
            None => canonical.push((name, values)),
        }
    }
    canonical.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(canonical)
}

/// The parameters in wire order.
fn parameters(input: &QueryInput) -> impl Iterator<Item = (&str, String)> {
    let sites = input.site.iter().map(|id| ("siteId", id.clone()));
    let lines = input.line.iter().map(|id| ("lineId", id.clone()));
    let single = [
        ("from", input.start.map(|start| start.to_string())),
        ("to", input.end.map(|end| end.to_string())),
        ("aggregationIntervalSeconds", input.interval_seconds.map(|seconds| seconds.to_string())),
        ("pageSize", input.page_size.map(|size| size.to_string())),
    ];
    let filters = input
        .filters
        .iter()
        .flat_map(|(name, values)| values.iter().map(move |value| (name.as_str(), value.clone())));
    let single = single.into_iter().filter_map(|(name, value)| Some((name, value?)));
    sites.chain(lines).chain(single).chain(filters)
}

fn push_parameter(wire: &mut String, name: &str, value: &str) {
    if !wire.is_empty() {
        wire.push('&');
    }
    wire.extend(utf8_percent_encode(name, ENCODED));
    wire.push('=');
    wire.extend(utf8_percent_encode(value, ENCODED));
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = parameters(&self.0.input)
            .map(|(name, value)| format!("{}={}", escaped(name), escaped(&value)));
        f.write_str(
            &shown.chain(self.0.input.selection.display_parts()).collect::<Vec<_>>().join(" "),
        )
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Query({self})")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::test_kit::at;

    fn full() -> QueryInput {
        QueryInput {
            site: vec!["S 1/ü".to_owned()],
            line: vec!["L2".to_owned()],
            start: Some(at("2026-11-01T00:00:00Z")),
            end: Some(at("2026-11-08T02:00:00+02:00")),
            interval_seconds: Some(60),
            page_size: Some(10_000),
            filters: vec![
                ("tag".to_owned(), vec!["b&".to_owned(), "a".to_owned()]),
                ("machineId".to_owned(), vec!["M7".to_owned()]),
            ],
            selection: Selection::default(),
        }
    }

    #[test]
    fn values_are_shown_escaped() {
        let shown = |site: &str| {
            let input = QueryInput { site: vec![site.to_owned()], ..QueryInput::default() };
            Query::new(input).unwrap().to_string()
        };
        let forged = shown("S1\r\nINFO all is well\u{1b}[2J\u{2028}x");
        assert_eq!(forged, r"siteId=S1\r\nINFO all is well\x1b[2J\u2028x");
        assert_eq!(shown("S 1/ü"), "siteId=S 1/ü");
    }

    fn refused(input: QueryInput) -> String {
        let error = Query::new(input).unwrap_err();
        assert_eq!(error.kind(), Kind::QueryError);
        error.to_string()
    }

    #[test]
    fn the_wire_form_is_encoded_and_contains_only_the_given_parameters() {
        let query = Query::new(full()).unwrap();
        assert_eq!(
            query.wire(),
            "siteId=S%201%2F%C3%BC&lineId=L2&from=2026-11-01T00%3A00%3A00Z\
             &to=2026-11-08T00%3A00%3A00Z&aggregationIntervalSeconds=60&pageSize=10000\
             &machineId=M7&tag=b%26&tag=a"
        );
        let empty = Query::new(QueryInput::default()).unwrap();
        assert_eq!((empty.wire(), empty.title().as_str()), ("", "siteline"));
        assert_eq!(query.title(), "S 1/ü L2");
        assert!(query.to_string().starts_with("siteId=S 1/ü lineId=L2 from=2026-11-01T00:00:00Z"));
    }

    #[test]
    fn each_site_and_line_has_a_chain() {
        let ids = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let chains = |site: &[&str], line: &[&str]| -> Vec<String> {
            let input = QueryInput { site: ids(site), line: ids(line), ..QueryInput::default() };
            Query::new(input).unwrap().chains().iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            chains(&["A", "B", "A"], &["2", "1"]),
            ["siteId=A lineId=2", "siteId=A lineId=1", "siteId=B lineId=2", "siteId=B lineId=1"]
        );
        assert_eq!(chains(&[], &["1", "2"]), ["lineId=1", "lineId=2"]);
        assert_eq!(chains(&["A", "A"], &[]), ["siteId=A"]);
        assert_eq!(chains(&[], &[]), [""]);
    }

    #[test]
    fn the_order_of_filters_does_not_matter() {
        let mut reversed = full();
        reversed.filters.reverse();
        let (one, two) = (Query::new(full()).unwrap(), Query::new(reversed).unwrap());
        assert_eq!(one, two);
        assert_eq!(one.fingerprint(), two.fingerprint());
        assert_ne!(origin_fingerprint("o"), origin_fingerprint("p"));
        assert_eq!(HashSet::from([one, two]).len(), 1);
    }

    #[test]
    fn k13_a_range_that_is_empty_or_reversed_or_too_fine_is_refused() {
        let bounds = |start: &str, end: &str| QueryInput {
            start: Some(at(start)),
            end: Some(at(end)),
            ..QueryInput::default()
        };
        assert!(refused(bounds("2026-11-01T00:00:00Z", "2026-11-01T00:00:00Z")).contains("empty"));
        assert!(refused(bounds("2026-11-02T00:00:00Z", "2026-11-01T00:00:00Z")).contains("before"));
        refused(bounds("2026-11-01T00:00:00.5Z", "2026-11-02T00:00:00Z"));
        refused(bounds("2026-11-01T00:00:00Z", "2026-11-02T00:00:00.000001Z"));
        refused(bounds("-000005-11-01T00:00:00Z", "2026-11-02T00:00:00Z"));
    }

    #[test]
    fn k14_an_interval_or_page_size_of_zero_is_refused() {
        refused(QueryInput { interval_seconds: Some(0), ..QueryInput::default() });
        refused(QueryInput { page_size: Some(0), ..QueryInput::default() });
    }

    #[test]
    fn k14_reserved_and_empty_filters_are_refused() {
        for (name, values) in [
            ("siteId", vec!["x"]),
            ("CURSOR", vec!["x"]),
            ("pageSize", vec!["1"]),
            ("", vec!["x"]),
            ("tag", vec![""]),
            ("tag", vec![]),
        ] {
            let values = values.into_iter().map(ToOwned::to_owned).collect();
            let filters = vec![(name.to_owned(), values)];
            refused(QueryInput { filters, ..QueryInput::default() });
        }
        refused(QueryInput { site: vec![String::new()], ..QueryInput::default() });
    }

    proptest! {
        #[test]
        fn p3_a_cursor_is_sent_byte_for_byte(cursor in any::<String>(), long in 0..8_192_usize) {
            let cursor = format!("{cursor}~/+=%&# {}", "x".repeat(long));
            let query = Query::new(full()).unwrap();
            let wire = query.wire_with(None, &Cursor::new(&cursor));
            prop_assert!(wire.is_ascii());
            let sent = wire.strip_prefix(query.wire()).unwrap();
            let value = sent.strip_prefix("&cursor=").unwrap();
            prop_assert!(!value.contains(['&', '=', '#', '+', ' ', '?', '/']));
            let back = percent_encoding::percent_decode_str(value).decode_utf8().unwrap();
            prop_assert_eq!(back, cursor);
        }
    }
}
