//! Reads the series envelopes of a page: five ids and the points, in any order.

use std::ops::Range;

use super::identities::IdentityTexts;
use super::json::{Parser, ValueKind, under};
use super::known_series::{Keys, KnownSeries};
use super::names::{Member, MemberNames};
use super::points::PointReader;
use super::quality::count_unusual;
use super::settings::DecodeSettings;
use crate::data::columns::ColumnsBuilder;
use crate::data::point_columns::{Envelope, Identity, PointColumns};
use crate::data::report::{PageReport, shown_name};
use crate::error::{Error, Result};

/// Maximum number of unknown members in an error.
const NAMES_SHOWN: usize = 20;

/// The index of the points among an envelope's members, after the ids and before the extra columns.
const POINTS: usize = 5;

fn member_name(settings: &DecodeSettings, index: usize) -> &str {
    match index {
        0..POINTS => &settings.shape.identity[index],
        POINTS => &settings.shape.points,
        extra => &settings.extra_columns[extra - POINTS - 1],
    }
}

pub(super) struct EnvelopeReader<'a, 's> {
    settings: &'s DecodeSettings,
    names: MemberNames,
    points: PointReader,
    columns: ColumnsBuilder<'a>,
    known: &'s mut KnownSeries,
    envelopes: Vec<Envelope>,
    /// Distinct, in order of arrival.
    series: Vec<Identity>,
    /// Known series by their index on this page.
    indices: Vec<Option<usize>>,
    /// Whether each list of unknown members in [`KnownSeries`] was reported.
    noted: Vec<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Id {
    Missing,
    Null,
    /// The key of its text.
    Key(usize),
}

struct EnvelopeMembers<'a> {
    ids: [Id; 5],
    /// The byte range of the points.
    points: Option<Range<usize>>,
    /// The byte range of points that are already in the columns. The head of a known envelope leads
    /// to the same offset again.
    read_before: Option<Range<usize>>,
    /// The JSON text of each extra column's member.
    extras: Vec<Option<&'a str>>,
    /// The unknown members; `None` if one of them is not stored.
    unknown: Option<Vec<String>>,
}

impl<'a, 's> EnvelopeReader<'a, 's> {
    pub(super) fn new(
        settings: &'s DecodeSettings,
        rows: usize,
        known: &'s mut KnownSeries,
    ) -> Self {
        let members = POINTS + 1 + settings.extra_columns.len();
        known.begin_page();
        Self {
            settings,
            names: MemberNames::new((0..members).map(|index| member_name(settings, index))),
            points: PointReader::new(settings),
            columns: ColumnsBuilder::new(rows, settings.extra_columns.len()),
            envelopes: Vec::new(),
            series: Vec::new(),
            indices: vec![None; known.len()],
            noted: Vec::new(),
            known,
        }
    }

    /// Called after [`Parser::peek`].
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
            return Err(token.refused("a series must be an object"));
        }
        let start = self.columns.rows();
        let (begin, before) = (json.offset(), json.clone());
        let mut read_before = None;
        if let Some((number, length)) = self.known.expected(&json.bytes()[begin..]) {
            let points = begin + length..self.points_after(json, begin + length, report)?;
            if let Some(length) = self.known.tail(number, &json.bytes()[points.end..]) {
                json.leave(points.end + length);
                self.note_unknown(number, array, report);
                self.push(number, start);
                return Ok(());
            }
            // The bytes after the points differ from the stored ones, so the ids are read.
            *json = before;
            read_before = Some(points);
        }
        let members = self.read_members(json, array, report, read_before)?;
        let Some(points) = members.points else {
            let name = &self.settings.shape.points;
            return Err(Error::protocol_at(format!(".{name}"), "the series has no such member"));
        };
        for (column, text) in members.extras.iter().enumerate() {
            if let Some(text) = text.filter(|text| *text != "null") {
                self.columns.fill_extra(column, start, text);
            }
        }
        let number = self.known.number(self.keys(&members.ids)?);
        // The texts of extra columns must be read from the members.
        if let Some(unknown) = members.unknown.filter(|_| members.extras.is_empty()) {
            let (bytes, end) = (json.bytes(), json.offset());
            self.known.learn(
                number,
                &bytes[begin..=points.start],
                &bytes[points.end..end],
                &unknown,
            );
        }
        self.push(number, start);
        Ok(())
    }

    /// Reads the points of a recognised envelope. Returns their end.
    fn points_after(
        &mut self,
        json: &mut Parser<'a>,
        at: usize,
        report: &mut PageReport,
    ) -> Result<usize> {
        json.deepen()?;
        json.seek(at);
        self.points.read(json, &mut self.columns, report).map_err(|error| {
            under(error, format_args!(".{}", shown_name(&self.settings.shape.points)))
        })?;
        Ok(json.offset())
    }

    /// Adds an envelope. Its rows start at `start`.
    fn push(&mut self, number: usize, start: usize) {
        self.known.follow(number);
        if number >= self.indices.len() {
            self.indices.resize(number + 1, None);
        }
        let new = self.series.len();
        let index = *self.indices[number].get_or_insert(new);
        if index == new {
            self.series.push(self.known.identity(number).clone());
        }
        let rows = start..self.columns.rows();
        self.envelopes.push(Envelope { series: index, rows });
    }

    /// Once per page and recognised envelope.
    fn note_unknown(&mut self, number: usize, array: &str, report: &mut PageReport) {
        let Some((index, unknown)) = self.known.unknown(number) else { return };
        if self.noted.get(index) == Some(&true) {
            return;
        }
        for name in unknown {
            note(report, array, name);
        }
        self.noted.resize(self.noted.len().max(index + 1), false);
        self.noted[index] = true;
    }

    fn read_members(
        &mut self,
        json: &mut Parser<'a>,
        array: &str,
        report: &mut PageReport,
        read_before: Option<Range<usize>>,
    ) -> Result<EnvelopeMembers<'a>> {
        json.enter()?;
        self.names.restart();
        let mut members = EnvelopeMembers {
            ids: [Id::Missing; 5],
            points: None,
            read_before,
            extras: vec![None; self.settings.extra_columns.len()],
            unknown: Some(Vec::new()),
        };
        let mut first = true;
        loop {
            match self.names.next(json, &mut first, |name| note(report, array, name))? {
                None => return Ok(members),
                Some(Member::Unknown) => {
                    json.skip_value()?;
                    members.add_unknown(self.names.current());
                }
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
                let id = read_id(&mut self.known.ids[index], json)?;
                std::mem::replace(&mut members.ids[index], id) != Id::Missing
            }
            POINTS if members.points.is_some() => true,
            POINTS => {
                let start = json.value_offset();
                match members.read_before.take_if(|points| points.start == start) {
                    Some(points) => json.seek(points.end),
                    None => self.points.read(json, &mut self.columns, report)?,
                }
                members.points = Some(start..json.offset());
                false
            }
            extra => members.extras[extra - POINTS - 1].replace(json.skip_value()?).is_some(),
        };
        if repeated { Err(Error::protocol_at("", "this member occurs twice")) } else { Ok(()) }
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

    /// Rejects points that have unknown members, but none of the four values (J22).
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
            "Set the names of the members: Shape(value=\"…\", minimum=\"…\"). To read them as text, \
             add them to extra_columns=.",
        ))
    }

    /// Completes the report.
    pub(super) fn finish(self, report: &mut PageReport) -> Result<PointColumns> {
        report.points = self.columns.rows() as u64;
        report.series = self.series.len() as u64;
        report.timestamp_forms.extend(self.points.timestamp_form());
        self.check_values(report)?;
        let extras = &self.settings.extra_columns;
        let points = self.columns.finish(self.series, self.envelopes, extras)?;
        count_unusual(&points, self.settings, report);
        Ok(points)
    }
}

impl EnvelopeMembers<'_> {
    fn add_unknown(&mut self, name: Option<&str>) {
        match (name, &mut self.unknown) {
            (Some(name), Some(unknown)) => unknown.push(name.to_owned()),
            _ => self.unknown = None,
        }
    }
}

fn note(report: &mut PageReport, array: &str, name: &str) {
    report.note_unknown(|| format!("{}[].{}", shown_name(array), shown_name(name)));
}

/// Reads an id: a string, an integer as its text, or null, which is a distinct id (J17).
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
            Err(Error::protocol_at(
                "",
                "an id must be a string, an integer or null, not a fraction",
            ))
        }
        token => Err(token.refused("an id must be a string, an integer or null")),
    }
}
