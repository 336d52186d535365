//! Reads the series envelopes of a page (§2.3): five ids and the points, in any order.

use std::collections::HashMap;

use super::identities::IdentityTexts;
use super::json::{Parser, ValueKind, under};
use super::names::{Member, MemberNames};
use super::points::PointReader;
use super::quality::SeriesRows;
use super::settings::DecodeSettings;
use crate::data::columns::ColumnsBuilder;
use crate::data::point_columns::{Envelope, Identity, PointColumns};
use crate::data::report::{PageReport, shown_name};
use crate::error::{Error, Result};

/// Most unknown members that an error names.
const NAMES_SHOWN: usize = 20;

/// The index of the points among an envelope's members: after the ids, before the extra columns.
const POINTS: usize = 5;

fn member_name(settings: &DecodeSettings, index: usize) -> &str {
    match index {
        0..POINTS => &settings.shape.identity[index],
        POINTS => &settings.shape.points,
        extra => &settings.extra_columns[extra - POINTS - 1],
    }
}

/// The keys of a series' five ids in [`IdentityTexts`]; `None` for null.
type Keys = [Option<i32>; 5];

/// Reads envelopes into columns.
pub(super) struct EnvelopeReader<'a, 's> {
    settings: &'s DecodeSettings,
    names: MemberNames,
    points: PointReader,
    columns: ColumnsBuilder<'a>,
    ids: [IdentityTexts; 5],
    envelopes: Vec<Envelope>,
    /// The distinct series, in order of arrival.
    series: Vec<Series>,
    indices: HashMap<Keys, usize>,
    /// The index of the series of the last envelope.
    last: usize,
}

/// One series of this page.
struct Series {
    identity: Identity,
    keys: Keys,
    /// The index of the series that followed it the last time.
    next: usize,
    rows: SeriesRows,
}

/// An id of an envelope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Id {
    Missing,
    Null,
    /// The key of its text.
    Key(i32),
}

/// The members of an envelope read so far.
struct EnvelopeMembers<'a> {
    ids: [Id; 5],
    points: bool,
    /// For each extra column, the member's JSON text.
    extras: Vec<Option<&'a str>>,
}

impl<'a, 's> EnvelopeReader<'a, 's> {
    pub(super) fn new(settings: &'s DecodeSettings, rows: usize) -> Self {
        let members = POINTS + 1 + settings.extra_columns.len();
        Self {
            settings,
            names: MemberNames::new((0..members).map(|index| member_name(settings, index))),
            points: PointReader::new(settings),
            columns: ColumnsBuilder::new(rows, settings.extra_columns.len()),
            ids: std::array::from_fn(|_| IdentityTexts::default()),
            envelopes: Vec::new(),
            series: Vec::new(),
            indices: HashMap::new(),
            last: 0,
        }
    }

    /// Reads the elements of the array `name`, after [`Parser::peek`].
    pub(super) fn read_array(
        &mut self,
        json: &mut Parser<'a>,
        name: &str,
        report: &mut PageReport,
    ) -> Result<()> {
        json.enter()?;
        let mut first = true;
        while json.next_element(&mut first)? {
            let index = self.envelopes.len();
            self.read(json, name, report)
                .map_err(|error| under(error, format_args!("[{index}]")))?;
        }
        Ok(())
    }

    fn read(&mut self, json: &mut Parser<'a>, array: &str, report: &mut PageReport) -> Result<()> {
        let token = json.peek()?;
        if token != ValueKind::Object {
            let message = format!("a series is an object, not {}", token.described());
            return Err(Error::protocol_at("", message));
        }
        let start = self.columns.rows();
        let members = self.read_members(json, array, report)?;
        if !members.points {
            let name = &self.settings.shape.points;
            return Err(Error::protocol_at(format!(".{name}"), "the series has no such member"));
        }
        for (column, text) in members.extras.iter().enumerate() {
            if let Some(text) = text.filter(|text| *text != "null") {
                self.columns.fill_extra(column, start, text);
            }
        }
        let rows = start..self.columns.rows();
        let series = self.series_index(self.keys(&members.ids)?);
        self.series[series].rows.add(self.columns.timestamps(), rows.clone());
        self.envelopes.push(Envelope { series, rows });
        Ok(())
    }

    fn read_members(
        &mut self,
        json: &mut Parser<'a>,
        array: &str,
        report: &mut PageReport,
    ) -> Result<EnvelopeMembers<'a>> {
        json.enter()?;
        self.names.restart();
        let extras = vec![None; self.settings.extra_columns.len()];
        let mut members = EnvelopeMembers { ids: [Id::Missing; 5], points: false, extras };
        let mut first = true;
        loop {
            let note = |name: &str| {
                report.note_unknown(|| format!("{}[].{}", shown_name(array), shown_name(name)));
            };
            match self.names.next(json, &mut first, note)? {
                None => return Ok(members),
                Some(Member::Unknown) => drop(json.skip_value()?),
                Some(Member::Known(index)) => {
                    let index = usize::from(index);
                    self.read_member(index, json, &mut members, report).map_err(|error| {
                        let name = shown_name(member_name(self.settings, index));
                        under(error, format_args!(".{name}"))
                    })?;
                }
            }
        }
    }

    fn read_member(
        &mut self,
        index: usize,
        json: &mut Parser<'a>,
        members: &mut EnvelopeMembers<'a>,
        report: &mut PageReport,
    ) -> Result<()> {
        let repeated = match index {
            0..POINTS => {
                let id = read_id(&mut self.ids[index], json)?;
                std::mem::replace(&mut members.ids[index], id) != Id::Missing
            }
            POINTS if members.points => true,
            POINTS => {
                members.points = true;
                self.points.read(json, &mut self.columns, report)?;
                false
            }
            extra => members.extras[extra - POINTS - 1].replace(json.skip_value()?).is_some(),
        };
        if repeated { Err(Error::protocol_at("", "this member comes twice")) } else { Ok(()) }
    }

    fn keys(&self, ids: &[Id; 5]) -> Result<Keys> {
        let mut keys = [None; 5];
        for (index, (key, id)) in keys.iter_mut().zip(ids).enumerate() {
            *key = match id {
                Id::Missing => {
                    let name = shown_name(&self.settings.shape.identity[index]);
                    let message = "the series has no such member";
                    return Err(Error::protocol_at(format!(".{name}"), message));
                }
                Id::Null => None,
                Id::Key(key) => Some(*key),
            };
        }
        Ok(keys)
    }

    /// The index of the series with these keys, which is added if it is new. The order of series
    /// mostly repeats, so the series that followed the last time is compared first.
    fn series_index(&mut self, keys: Keys) -> usize {
        let predicted = self.series.get(self.last).map_or(0, |last| last.next);
        let index = if self.series.get(predicted).is_some_and(|series| series.keys == keys) {
            predicted
        } else {
            *self.indices.entry(keys).or_insert(self.series.len())
        };
        if index == self.series.len() {
            let text = |column: usize| keys[column].map(|key| self.ids[column].text(key).clone());
            let identity = Identity(std::array::from_fn(text));
            self.series.push(Series { identity, keys, next: index, rows: SeriesRows::default() });
        }
        self.series[self.last].next = index;
        self.last = index;
        index
    }

    /// J22: refuses points that have none of the four values where unknown members stand.
    fn check_values(&self, report: &PageReport) -> Result<()> {
        let unknown = report.unknown_members.iter().filter(|name| name.starts_with("points[]."));
        let unknown: Vec<&str> = unknown.map(String::as_str).take(NAMES_SHOWN).collect();
        let Some(missing) = self.points.missing_values() else { return Ok(()) };
        if report.points == 0 || unknown.is_empty() {
            return Ok(());
        }
        let message = format!(
            "no point of the page has any of {}; the points have {}",
            missing.join(", "),
            unknown.join(", ")
        );
        Err(Error::protocol_at("", message).with_hint(
            "Name the members that hold them: Shape(value=\"…\", minimum=\"…\"). To read them as text, \
             name them in extra_columns=.",
        ))
    }

    /// The points of all envelopes. Completes the report with the counts over the page.
    pub(super) fn finish(self, report: &mut PageReport) -> Result<PointColumns> {
        let timestamps = self.columns.timestamps();
        report.points = timestamps.len() as u64;
        report.series = self.series.len() as u64;
        report.repeated = self.series.iter().map(|series| series.rows.repeated(timestamps)).sum();
        report.timestamp_forms.extend(self.points.timestamp_form());
        self.check_values(report)?;
        let series = self.series.into_iter().map(|series| series.identity).collect();
        self.columns.finish(series, self.envelopes, &self.settings.extra_columns)
    }
}

/// J17: a string is kept unchanged, an integer becomes its text, null is a distinct id.
fn read_id(texts: &mut IdentityTexts, json: &mut Parser<'_>) -> Result<Id> {
    let at = json.offset();
    if let Some((key, length)) = texts.take(json.bytes().get(at..).unwrap_or_default()) {
        json.seek(at + length);
        return Ok(Id::Key(key));
    }
    match json.peek()? {
        ValueKind::Text => Ok(Id::Key(texts.key(&json.string()?))),
        ValueKind::Null => json.literal().map(|()| Id::Null),
        ValueKind::Number => {
            let number = json.number()?;
            if number.is_integer() {
                return Ok(Id::Key(texts.key(number.text())));
            }
            Err(Error::protocol_at("", "an id is a string, an integer or null, not a fraction"))
        }
        token => {
            let kind = token.described();
            let message = format!("an id is a string, an integer or null, not {kind}");
            Err(Error::protocol_at("", message))
        }
    }
}
