//! The points of an envelope (§2.3), the loop in which the time goes. What most points are like is
//! read in place: the learnt way from one value to the next ([`Names`]), and values in their most
//! frequent form. Whatever is otherwise goes the general way, value by value.

use std::borrow::Cow;

use super::columns::{Columns, Row};
use super::decode::DecodeSettings;
use super::double::take_double;
use super::json::{Parser, Token, under};
use super::names::{Names, Place};
use super::number::{Number, take_count};
use super::oddities::Judge;
use super::report::{PageReport, shown_name};
use super::shape::TimestampForm;
use super::string::take_plain_string;
use super::timestamp::{
    DateMemo, Instant, IsoFault, parse_epoch, parse_iso, recognise_epoch, take_iso,
};
use crate::error::{Error, Result, excerpt};

/// The places of a point's members: the extra columns follow.
const TIMESTAMP: u8 = 0;
const SAMPLE_COUNT: u8 = 4;
const FIRST_EXTRA: u8 = 5;

/// Reads points, and keeps what carries over from one to the next.
pub(super) struct PointReader {
    names: Names,
    member_names: Vec<String>,
    /// The form that Shape states, or `Detect`.
    stated: TimestampForm,
    /// The form seen on this page.
    form: Option<TimestampForm>,
    memo: DateMemo,
    start: Option<i64>,
    end: Option<i64>,
    judge: Judge,
}

/// The point that is being read.
struct Point<'a> {
    row: Row,
    /// A bit for each place whose member was seen.
    seen: u64,
    /// For each extra column the member's JSON text.
    extras: Vec<Option<&'a str>>,
    /// False between two points.
    open: bool,
}

impl Point<'_> {
    #[inline]
    fn reopen(&mut self) {
        self.row = Row::new(0);
        self.seen = 0;
        self.extras.fill(None);
        self.open = true;
    }
}

impl PointReader {
    pub(super) fn new(settings: &DecodeSettings) -> Self {
        let members = settings.shape.point_members().into_iter();
        let all = members.chain(settings.extra_columns.iter().map(String::as_str));
        let member_names: Vec<String> = all.map(ToOwned::to_owned).collect();
        Self {
            names: Names::new(member_names.iter().map(String::as_str)),
            member_names,
            stated: settings.shape.timestamp,
            form: None,
            memo: DateMemo::default(),
            start: settings.start.map(jiff::Timestamp::as_microsecond),
            end: settings.end.map(jiff::Timestamp::as_microsecond),
            judge: Judge::new(settings),
        }
    }

    /// The form of this page's timestamps, if it has any.
    pub(super) fn form(&self) -> Option<TimestampForm> {
        self.form
    }

    /// Reads an array of points into the columns.
    pub(super) fn read<'a>(
        &mut self,
        json: &mut Parser<'a>,
        columns: &mut Columns<'a>,
        report: &mut PageReport,
    ) -> Result<()> {
        let token = json.peek()?;
        if token != Token::Array {
            let message = format!("points are an array, not {}", token.described());
            return Err(Error::protocol_at("", message));
        }
        json.enter()?;
        self.names.restart();
        let start = columns.rows();
        let extras = vec![None; self.member_names.len() - usize::from(FIRST_EXTRA)];
        let mut point = Point { row: Row::new(0), seen: 0, extras, open: false };
        self.points(json, &mut point, columns, report).map_err(|error| {
            let index = columns.rows() - start;
            if point.open { under(error, format_args!("[{index}]")) } else { error }
        })?;
        self.judge.count(&columns.rows_from(start), report);
        Ok(())
    }

    /// Reads points from the array's start to its end.
    fn points<'a>(
        &mut self,
        json: &mut Parser<'a>,
        point: &mut Point<'a>,
        columns: &mut Columns<'a>,
        report: &mut PageReport,
    ) -> Result<()> {
        let bytes = json.bytes();
        let mut at = json.offset();
        let mut place = if let Some(step) = self.names.follow(bytes, at) {
            json.deepen()?;
            at = step.end;
            point.reopen();
            step.place
        } else {
            let Some(place) = self.step(json, point, columns, report)? else { return Ok(()) };
            at = json.offset();
            place
        };
        loop {
            if let Place::Known(place) = place {
                if point.seen & (1 << place) != 0 {
                    let twice = Error::protocol_at("", "this member comes twice");
                    return Err(self.at_member(place, twice));
                }
                point.seen |= 1 << place;
            }
            if let Some(length) = self.take(place, bytes.get(at..).unwrap_or_default(), point) {
                at += length;
            } else {
                json.seek(at);
                self.value(place, json, point, report)?;
                at = json.offset();
            }
            if let Some(step) = self.names.follow(bytes, at) {
                at = step.end;
                place = step.place;
                if step.opens {
                    self.close(point, columns)?;
                    point.reopen();
                }
            } else {
                json.seek(at);
                match self.step(json, point, columns, report)? {
                    Some(next) => place = next,
                    None => return Ok(()),
                }
                at = json.offset();
            }
        }
    }

    /// Steps to the next value the general way, into the next point if this one has ended; `None`
    /// at the array's end.
    fn step<'a>(
        &mut self,
        json: &mut Parser<'a>,
        point: &mut Point<'a>,
        columns: &mut Columns<'a>,
        report: &mut PageReport,
    ) -> Result<Option<Place>> {
        let from = json.offset();
        let mut opens = false;
        if !point.open || !json.next_member(&mut false)? {
            let mut first = !point.open;
            if point.open {
                self.close(point, columns)?;
            }
            if !json.next_element(&mut first)? {
                return Ok(None);
            }
            point.reopen();
            let token = json.peek()?;
            if token != Token::Object {
                let message = format!("a point is an object, not {}", token.described());
                return Err(Error::protocol_at("", message));
            }
            json.enter()?;
            if !json.next_member(&mut true)? {
                return Err(self.missing_timestamp());
            }
            opens = true;
        }
        let note = |name: &str| report.note_unknown(|| format!("points[].{}", shown_name(name)));
        self.names.read(json, from, opens, note).map(Some)
    }

    /// Ends a point, whose row is whole then.
    #[inline]
    fn close<'a>(&self, point: &mut Point<'a>, columns: &mut Columns<'a>) -> Result<()> {
        if point.seen & (1 << TIMESTAMP) == 0 {
            return Err(self.missing_timestamp());
        }
        columns.push(&point.row, &point.extras);
        point.open = false;
        Ok(())
    }

    #[cold]
    fn missing_timestamp(&self) -> Error {
        self.at_member(TIMESTAMP, Error::protocol_at("", "the point has no such member"))
    }

    /// Reads a value in its most frequent form at the start of `bytes`, and gives its length; `None`
    /// for any other, right or wrong.
    #[inline]
    fn take(&mut self, place: Place, bytes: &[u8], point: &mut Point<'_>) -> Option<usize> {
        match place {
            Place::Known(TIMESTAMP) if self.form == Some(TimestampForm::Iso) => {
                let (timestamp, length) = take_iso(bytes, &mut self.memo)?;
                point.row.timestamp = timestamp;
                Some(length)
            }
            Place::Known(place @ 1..=3) => {
                if let Some((number, length)) = take_double(bytes) {
                    point.row.set_number(usize::from(place - 1), number);
                    return Some(length);
                }
                bytes.starts_with(b"null").then_some(4)
            }
            Place::Known(SAMPLE_COUNT) => {
                let (count, length) = take_count(bytes)?;
                point.row.set_count(count);
                Some(length)
            }
            Place::Known(_) => None,
            Place::Unknown => take_plain_string(bytes),
        }
    }

    /// Reads a value the general way.
    fn value<'a>(
        &mut self,
        place: Place,
        json: &mut Parser<'a>,
        point: &mut Point<'a>,
        report: &mut PageReport,
    ) -> Result<()> {
        let Place::Known(place) = place else { return json.skip_value().map(drop) };
        let outcome = match place {
            TIMESTAMP => self.timestamp(json, report).map(|read| point.row.timestamp = read),
            SAMPLE_COUNT => sample_count(json, report)
                .map(|read| read.into_iter().for_each(|count| point.row.set_count(count))),
            FIRST_EXTRA.. => json.skip_value().map(|text| {
                point.extras[usize::from(place - FIRST_EXTRA)] = (text != "null").then_some(text)
            }),
            number => float(json, report).map(|read| {
                read.into_iter()
                    .for_each(|value| point.row.set_number(usize::from(number - 1), value))
            }),
        };
        outcome.map_err(|error| self.at_member(place, error))
    }

    #[cold]
    fn at_member(&self, place: u8, error: Error) -> Error {
        under(error, format_args!(".{}", shown_name(&self.member_names[usize::from(place)])))
    }

    #[inline]
    fn timestamp(&mut self, json: &mut Parser<'_>, report: &mut PageReport) -> Result<i64> {
        let (instant, form) = match json.peek()? {
            Token::Text => {
                let text = json.string()?;
                let instant = parse_iso(text.as_bytes(), &mut self.memo)
                    .map_err(|fault| bad_iso(fault, &text))?;
                (instant, TimestampForm::Iso)
            }
            Token::Number => self.epoch(json.number()?)?,
            token => {
                let message = format!("a timestamp is text or a number, not {}", token.described());
                return Err(Error::protocol_at("", message));
            }
        };
        if self.form != Some(form) {
            self.settle(form)?;
        }
        report.timestamps_truncated += u64::from(instant.truncated);
        report.leap_seconds += u64::from(instant.leap_second);
        Ok(instant.microseconds)
    }

    fn epoch(&self, number: Number<'_>) -> Result<(Instant, TimestampForm)> {
        let form = match self.stated {
            TimestampForm::Detect | TimestampForm::Iso => {
                recognise_epoch(number, (self.start, self.end), self.form)
            }
            stated => stated,
        };
        let instant = parse_epoch(number, form).ok_or_else(|| {
            let shown = excerpt(&shown_name(number.text()));
            Error::protocol_at("", format!("the timestamp {shown} is outside the years 1 to 9999"))
        })?;
        Ok((instant, form))
    }

    /// J12: all timestamps of a page have one form, and the stated one if one was stated.
    #[cold]
    fn settle(&mut self, form: TimestampForm) -> Result<()> {
        let expected = match self.stated {
            TimestampForm::Detect => self.form,
            stated => Some(stated),
        };
        match expected {
            Some(expected) if expected != form => Err(Error::protocol_at(
                "",
                format!("a timestamp in the form {}, not {}", form.name(), expected.name()),
            )
            .with_hint("State the form if it was mistaken: Shape(timestamp=\"…\").")),
            _ => {
                self.form = Some(form);
                Ok(())
            }
        }
    }
}

/// J5, J9: a number, null, or a number as text.
#[inline]
fn float(json: &mut Parser<'_>, report: &mut PageReport) -> Result<Option<f64>> {
    match json.peek()? {
        Token::Number => json.number()?.to_f64().map(Some).ok_or_else(beyond_double),
        token => match number_in_text(json, token, report)? {
            Some(text) => {
                let number = Number::parse(&text).ok_or_else(|| no_number(&text))?;
                number.to_f64().map(Some).ok_or_else(beyond_double)
            }
            None => Ok(None),
        },
    }
}

/// J10: a whole number in any notation, or null.
#[inline]
fn sample_count(json: &mut Parser<'_>, report: &mut PageReport) -> Result<Option<i64>> {
    match json.peek()? {
        Token::Number => json.number()?.to_i64().map(Some).ok_or_else(no_count),
        token => match number_in_text(json, token, report)? {
            Some(text) => {
                let number = Number::parse(&text).ok_or_else(|| no_number(&text))?;
                number.to_i64().map(Some).ok_or_else(no_count)
            }
            None => Ok(None),
        },
    }
}

/// What stands where a number is expected and is none: null, or a text that may be one.
#[cold]
fn number_in_text<'a>(
    json: &mut Parser<'a>,
    token: Token,
    report: &mut PageReport,
) -> Result<Option<Cow<'a, str>>> {
    match token {
        Token::Null => json.literal().map(|()| None),
        Token::Text => {
            report.numbers_as_text += 1;
            json.string().map(Some)
        }
        token => {
            let message = format!("expected a number or null, found {}", token.described());
            Err(Error::protocol_at("", message))
        }
    }
}

#[cold]
fn beyond_double() -> Error {
    Error::protocol_at("", "the number is beyond the range of a double")
}

#[cold]
fn no_count() -> Error {
    Error::protocol_at("", "a count is a whole number of at most 64 bits")
}

#[cold]
fn no_number(text: &str) -> Error {
    Error::protocol_at("", format!("the text {:?} is not a number", shown_name(text)))
}

#[cold]
fn bad_iso(fault: IsoFault, text: &str) -> Error {
    let why = match fault {
        IsoFault::Form => "is not ISO 8601",
        IsoFault::NoZone | IsoFault::DateOnly => "has no time zone",
        IsoFault::OutOfRange => "is outside the years 1 to 9999",
    };
    Error::protocol_at("", format!("the timestamp {:?} {why}", shown_name(text)))
}

#[cfg(test)]
mod tests;
