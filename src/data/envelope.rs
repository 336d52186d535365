//! One series envelope of a page (§2.3): five ids and the points, in any order.

use std::collections::HashSet;
use std::ops::Range;

use super::cursor::Cursor;
use super::decode::{DecodeSettings, Decoded};
use super::json::{Token, under};
use super::names::{Names, Place};
use super::point_columns::{Envelope, Identity};
use super::reader::PageReader;
use super::report::shown_name;
use crate::error::{Error, Result};

/// The place of the points among an envelope's members: the identities come before them, the extra
/// columns after them.
const POINTS: usize = 5;

/// The names of an envelope's members, in the order of their places.
pub(super) fn member_names(settings: &DecodeSettings) -> Names {
    let places = POINTS + 1 + settings.extra_columns.len();
    Names::new((0..places).map(|place| member_name(settings, place)))
}

fn member_name(settings: &DecodeSettings, place: usize) -> &str {
    match place {
        0..POINTS => &settings.shape.identity[place],
        POINTS => &settings.shape.points,
        extra => &settings.extra_columns[extra - POINTS - 1],
    }
}

/// The rows of one series on this page.
pub(super) struct Series {
    identity: Identity,
    keys: [Option<i32>; 5],
    /// The place of the series that followed it last.
    next: usize,
    latest: Option<i64>,
    /// Its timestamps were not always ascending, so repeats must be looked for.
    disordered: bool,
    rows: Vec<Range<usize>>,
}

impl<'a> PageReader<'a, '_> {
    /// Reads the envelope that comes next in `array`.
    pub(super) fn envelope(&mut self, array: &str) -> Result<()> {
        let token = self.json.peek()?;
        if token != Token::Object {
            let message = format!("a series is an object, not {}", token.described());
            return Err(Error::protocol_at("", message));
        }
        self.json.enter()?;
        self.members.restart();
        let start = self.columns.rows();
        let mut found = Found::new(self.settings.extra_columns.len());
        let mut first = true;
        loop {
            let report = &mut self.report;
            let note = |name: &str| {
                report.note_unknown(|| format!("{}[].{}", shown_name(array), shown_name(name)));
            };
            let Some(place) = self.members.next(&mut self.json, &mut first, note)? else { break };
            match place {
                Place::Known(place) => {
                    let place = usize::from(place);
                    self.member(place, &mut found).map_err(|error| {
                        let name = shown_name(member_name(self.settings, place));
                        under(error, format_args!(".{name}"))
                    })?;
                }
                Place::Unknown => drop(self.json.skip_value()?),
            }
        }
        if !found.points {
            let name = &self.settings.shape.points;
            return Err(Error::protocol_at(format!(".{name}"), "the series has no such member"));
        }
        for (column, text) in found.extras.iter().enumerate() {
            if let Some(text) = text.filter(|text| *text != "null") {
                self.columns.fill_extra(column, start, text);
            }
        }
        self.close_envelope(&found.keys, start)
    }

    fn member(&mut self, place: usize, found: &mut Found<'a>) -> Result<()> {
        let repeated = match place {
            0..POINTS => {
                std::mem::replace(&mut found.keys[place], self.identity(place)?) != Id::Missing
            }
            POINTS if found.points => true,
            POINTS => {
                found.points = true;
                self.points.read(&mut self.json, &mut self.columns, &mut self.report)?;
                false
            }
            extra => found.extras[extra - POINTS - 1].replace(self.json.skip_value()?).is_some(),
        };
        if repeated { Err(Error::protocol_at("", "this member comes twice")) } else { Ok(()) }
    }

    /// J17: text as it is, an integer as its text, null as an id of its own.
    fn identity(&mut self, place: usize) -> Result<Id> {
        let column = &mut self.columns.identities[place];
        let at = self.json.offset();
        if let Some((key, length)) = column.take(self.json.bytes().get(at..).unwrap_or_default()) {
            self.json.seek(at + length);
            return Ok(Id::Key(key));
        }
        match self.json.peek()? {
            Token::Text => Ok(Id::Key(column.key(&self.json.string()?))),
            Token::Null => self.json.literal().map(|()| Id::Null),
            Token::Number => {
                let number = self.json.number()?;
                if number.is_integer() {
                    return Ok(Id::Key(column.key(number.text())));
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

    fn close_envelope(&mut self, found: &[Id; 5], start: usize) -> Result<()> {
        let rows = start..self.columns.rows();
        let mut keys = [None; 5];
        for (place, (key, found)) in keys.iter_mut().zip(found).enumerate() {
            *key = match found {
                Id::Missing => {
                    let name = shown_name(&self.settings.shape.identity[place]);
                    let message = "the series has no such member";
                    return Err(Error::protocol_at(format!(".{name}"), message));
                }
                Id::Null => None,
                Id::Key(key) => Some(*key),
            };
        }
        let index = self.series_of(keys);
        let series = &mut self.series[index];
        series.add(self.columns.timestamps(), rows.clone());
        self.envelopes.push(Envelope { series: index, rows });
        Ok(())
    }

    /// The place of the series with these keys. Each mostly has the same one after it.
    fn series_of(&mut self, keys: [Option<i32>; 5]) -> usize {
        let foretold = self.series.get(self.latest).map_or(0, |latest| latest.next);
        let index = if self.series.get(foretold).is_some_and(|series| series.keys == keys) {
            foretold
        } else {
            *self.places.entry(keys).or_insert(self.series.len())
        };
        if index == self.series.len() {
            let columns = &self.columns.identities;
            let text = |place: usize| keys[place].map(|key| columns[place].text(key));
            let identity = Identity(std::array::from_fn(|place| text(place).cloned()));
            self.series.push(Series::new(identity, keys, index));
        }
        self.series[self.latest].next = index;
        self.latest = index;
        index
    }

    /// Counts what needs the whole page, and makes the columns.
    pub(super) fn finish(mut self, next_cursor: Option<Cursor>) -> Result<Decoded> {
        let timestamps = self.columns.timestamps();
        self.report.points = timestamps.len() as u64;
        self.report.series = self.series.len() as u64;
        self.report.repeated = self.series.iter().map(|series| series.repeated(timestamps)).sum();
        self.report.timestamp_forms.extend(self.points.form());
        let series = self.series.into_iter().map(|series| series.identity).collect();
        let points = self.columns.finish(series, self.envelopes, &self.settings.extra_columns)?;
        Ok(Decoded { points, next_cursor, report: self.report })
    }
}

/// One of an envelope's ids.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Id {
    Missing,
    Null,
    /// The key of its text in the column.
    Key(i32),
}

/// What an envelope has shown so far.
struct Found<'a> {
    keys: [Id; 5],
    points: bool,
    extras: Vec<Option<&'a str>>,
}

impl Found<'_> {
    fn new(extras: usize) -> Self {
        Self { keys: [Id::Missing; 5], points: false, extras: vec![None; extras] }
    }
}

impl Series {
    fn new(identity: Identity, keys: [Option<i32>; 5], next: usize) -> Self {
        Self { identity, keys, next, latest: None, disordered: false, rows: Vec::new() }
    }

    fn add(&mut self, timestamps: &[i64], rows: Range<usize>) {
        let added = &timestamps[rows.clone()];
        let (Some(first), Some(last)) = (added.first(), added.last()) else { return };
        let follows = self.latest.is_none_or(|latest| latest < *first);
        self.disordered |= !follows || !added.is_sorted_by(|earlier, later| earlier < later);
        self.latest = Some(*last);
        self.rows.push(rows);
    }

    /// J16: how many points came again.
    fn repeated(&self, timestamps: &[i64]) -> u64 {
        if !self.disordered {
            return 0;
        }
        let mut seen = HashSet::new();
        let all = self.rows.iter().flat_map(|rows| &timestamps[rows.clone()]);
        all.filter(|timestamp| !seen.insert(**timestamp)).count() as u64
    }
}
