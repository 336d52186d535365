//! The JSON bodies of pages and of discovery, in the form that the options choose.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::aggregation::Row;
use super::identity::{Identity, Names};
use super::options::{Options, TimestampForm};
use super::snapshot::{DataSource, Snapshot};

/// A page: its envelopes, each as indices of its rows, and the next cursor.
pub(super) struct Page<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) envelopes: &'a [Vec<usize>],
    pub(super) next_cursor: Option<&'a str>,
}

/// The body of a data reply (§2.3).
pub(super) fn page(page: &Page<'_>, options: &Options) -> String {
    let points: usize = page.envelopes.iter().map(Vec::len).sum();
    let mut json = Json::new(options, 256 + points * 160);
    json.open('{');
    if options.extra_members {
        json.member("generatedBy", "\"sandbox\"");
    }
    json.name(&options.array);
    json.open('[');
    for envelope in page.envelopes {
        if let Some(first) = envelope.first() {
            let rows = envelope.iter().map(|at| &page.snapshot.rows[*at]);
            let series = page.snapshot.rows[*first].series as usize;
            json.envelope(&page.snapshot.series[series], rows);
        }
    }
    json.close(']');
    match page.next_cursor {
        Some(cursor) => json.member("nextCursor", &quoted(cursor)),
        None if options.omit_last_cursor => {}
        None => json.member("nextCursor", "null"),
    }
    json.close('}');
    json.text
}

/// Writes JSON compactly, or with spaces and line breaks.
struct Json<'a> {
    text: String,
    options: &'a Options,
    started: bool,
}

impl<'a> Json<'a> {
    fn new(options: &'a Options, capacity: usize) -> Self {
        Self { text: String::with_capacity(capacity), options, started: false }
    }

    fn comma(&mut self) {
        if self.started {
            self.text.push_str(if self.options.spaced { " ,\n  " } else { "," });
        }
        self.started = true;
    }

    fn open(&mut self, bracket: char) {
        self.comma();
        self.text.push(bracket);
        self.started = false;
    }

    fn close(&mut self, bracket: char) {
        if self.options.spaced {
            self.text.push('\n');
        }
        self.text.push(bracket);
        self.started = true;
    }

    /// Writes `"name":`; no comma follows.
    fn name(&mut self, name: &str) {
        self.comma();
        self.text.push_str(&quoted(name));
        self.text.push_str(if self.options.spaced { " : " } else { ":" });
        self.started = false;
    }

    fn member(&mut self, name: &str, value: &str) {
        self.name(name);
        self.text.push_str(value);
        self.started = true;
    }

    /// Writes a member that may be null, or omits a null if the options require it.
    fn optional(&mut self, name: &str, value: Option<String>) {
        match value {
            Some(value) => self.member(name, &value),
            None if self.options.omit_nulls => {}
            None => self.member(name, "null"),
        }
    }

    fn envelope<'r>(&mut self, identity: &Identity, rows: impl Iterator<Item = &'r Row>) {
        let options = self.options;
        self.open('{');
        for (name, id) in identity.members() {
            self.member(name, &id.map_or_else(|| "null".to_owned(), |id| id_json(id, options)));
        }
        if options.extra_members {
            self.member("unit", r#"{"symbol":"?","points":[]}"#);
        }
        self.name("points");
        self.open('[');
        for row in rows {
            self.open('{');
            self.member("timestamp", &timestamp(row.timestamp, options.timestamps));
            self.optional("value", row.value.and_then(number));
            self.optional("minimum", row.minimum.and_then(number));
            self.optional("maximum", row.maximum.and_then(number));
            self.optional("sampleCount", row.sample_count.map(|count| count.to_string()));
            if options.extra_members {
                self.member("quality", "\"good\"");
            }
            self.close('}');
        }
        self.close(']');
        self.close('}');
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// An id as JSON: text, or with `integer_ids` a number if it is a plain integer.
fn id_json(id: &str, options: &Options) -> String {
    let plain = options.integer_ids && id.parse::<i64>().is_ok_and(|n| n.to_string() == id);
    if plain { id.to_owned() } else { quoted(id) }
}

/// The shortest text that parses to the same double; `None` for one that JSON cannot express.
fn number(value: f64) -> Option<String> {
    value.is_finite().then(|| format!("{value:?}"))
}

fn timestamp(microseconds: i64, form: TimestampForm) -> String {
    let (seconds, fraction) =
        (microseconds.div_euclid(1_000_000), microseconds.rem_euclid(1_000_000));
    match form {
        TimestampForm::EpochSeconds if fraction == 0 => return seconds.to_string(),
        TimestampForm::EpochSeconds => return format!("{seconds}.{fraction:06}"),
        TimestampForm::EpochMilliseconds => return microseconds.div_euclid(1_000).to_string(),
        _ => {}
    }
    let to_second = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH).to_string();
    let mut text = format!("\"{}", to_second.trim_end_matches('Z'));
    if fraction != 0 {
        // Writing to a String cannot fail.
        let _ = write!(text, ".{fraction:06}");
    } else if form == TimestampForm::IsoFraction {
        text.push_str(".000");
    }
    text.push_str(if form == TimestampForm::IsoOffset { "+00:00\"" } else { "Z\"" });
    text
}

/// The levels of the hierarchy: the member with the list, and the member with the id.
const LEVELS: [(&str, &str); 5] = [
    ("sites", "siteId"),
    ("lines", "lineId"),
    ("machines", "machineId"),
    ("devices", "deviceId"),
    ("tags", "tagGuid"),
];

/// The body of the discovery reply (§4.2): the hierarchy as a tree.
pub(super) fn discovery(source: &DataSource, subject: &str, options: &Options) -> String {
    let mut tree = TreeNode::default();
    match source {
        DataSource::Generated(plant) => {
            for tag in plant.tags() {
                let (name, unit) = tag.measure.name_and_unit();
                let names = [None, None, None, None, Some(name.into()), Some(unit.into())];
                tree.add(&tag.identity, &names);
            }
        }
        DataSource::Loaded(dataset) => {
            dataset.series().for_each(|(identity, _)| tree.add(identity, dataset.names(identity)));
        }
    }
    let mut body = Map::new();
    body.insert("subject".to_owned(), subject.into());
    body.insert("sites".to_owned(), tree.to_json(0, options));
    let body = Value::Object(body);
    if options.spaced { format!("{body:#}") } else { body.to_string() }
}

#[derive(Default)]
struct TreeNode {
    below: BTreeMap<Option<String>, TreeNode>,
    name: Option<Arc<str>>,
    unit: Option<Arc<str>>,
}

impl TreeNode {
    fn add(&mut self, identity: &Identity, names: &Names) {
        let mut branch = self;
        for ((_, id), name) in identity.members().into_iter().zip(names) {
            branch = branch.below.entry(id.map(str::to_owned)).or_default();
            if name.is_some() {
                branch.name.clone_from(name);
            }
        }
        branch.unit.clone_from(&names[5]);
    }

    fn to_json(&self, level: usize, options: &Options) -> Value {
        let one = |(id, branch): (&Option<String>, &TreeNode)| {
            let mut members = Map::new();
            for (name, text) in [("name", &branch.name), ("unit", &branch.unit)] {
                members.extend(text.as_deref().map(|text| (name.to_owned(), text.into())));
            }
            let id = id.as_ref().map_or(Value::Null, |id| {
                serde_json::from_str(&id_json(id, options)).unwrap_or(Value::Null)
            });
            members.insert(LEVELS[level].1.to_owned(), id);
            if let Some((name, _)) = LEVELS.get(level + 1) {
                members.insert((*name).to_owned(), branch.to_json(level + 1, options));
            }
            Value::Object(members)
        };
        Value::Array(self.below.iter().map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_written_in_each_form() {
        let at = 1_793_491_200_000_000;
        for (form, text) in [
            (TimestampForm::IsoZ, "\"2026-11-01T00:00:00Z\""),
            (TimestampForm::IsoOffset, "\"2026-11-01T00:00:00+00:00\""),
            (TimestampForm::IsoFraction, "\"2026-11-01T00:00:00.000Z\""),
            (TimestampForm::EpochSeconds, "1793491200"),
            (TimestampForm::EpochMilliseconds, "1793491200000"),
        ] {
            assert_eq!(timestamp(at, form), text);
        }
        assert_eq!(timestamp(at + 5, TimestampForm::IsoZ), "\"2026-11-01T00:00:00.000005Z\"");
    }

    #[test]
    fn numbers_parse_to_the_same_bits() {
        for value in [-0.0, 5e-324, f64::MAX, 0.1, 1e16, 1e-7, 3.0] {
            let text = number(value).expect("finite");
            let parsed: f64 = serde_json::from_str(&text).expect("JSON");
            assert_eq!(parsed.to_bits(), value.to_bits(), "{text}");
        }
        assert_eq!(number(f64::NAN), None);
    }
}
