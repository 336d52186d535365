//! The points of an envelope (§2.3), the loop in which the time goes. What most points are like is
//! read in place: the learnt way from one value to the next ([`Names`]), and values in their most
//! frequent form. Whatever is otherwise goes the general way, value by value.

use super::columns::{Columns, Row};
use super::decode::DecodeSettings;
use super::double::take_double;
use super::json::{Parser, Token, under};
use super::names::{Names, Place};
use super::number::take_count;
use super::numeral::{float, sample_count};
use super::oddities::Judge;
use super::report::{PageReport, shown_name};
use super::shape::TimestampForm;
use super::string::take_plain_string;
use super::times::TimeReader;
use crate::error::{Error, Result};

/// The places of a point's members: the extra columns follow.
const TIMESTAMP: u8 = 0;
const SAMPLE_COUNT: u8 = 4;
const FIRST_EXTRA: u8 = 5;

/// Reads points, and keeps what carries over from one to the next.
pub(super) struct PointReader {
    names: Names,
    member_names: Vec<String>,
    times: TimeReader,
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
            times: TimeReader::new(settings),
            judge: Judge::new(settings),
        }
    }

    /// The form of this page's timestamps, if it has any.
    pub(super) fn form(&self) -> Option<TimestampForm> {
        self.times.form()
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
        let (mut place, mut bit);
        if let Some(step) = self.names.follow(bytes, at) {
            (place, bit, at) = (step.place, step.bit, step.end);
            json.deepen()?;
            point.reopen();
        } else {
            let Some(next) = self.step(json, point, columns, report)? else { return Ok(()) };
            (place, bit, at) = (next, next.bit(), json.offset());
        }
        loop {
            if point.seen & bit != 0 {
                return Err(self.seen_twice(place));
            }
            point.seen |= bit;
            if let Some(length) = self.take(place, bytes.get(at..).unwrap_or_default(), point) {
                at += length;
            } else {
                json.seek(at);
                self.value(place, json, point, report)?;
                at = json.offset();
            }
            if let Some(step) = self.names.follow(bytes, at) {
                (place, bit, at) = (step.place, step.bit, step.end);
                if step.opens {
                    self.close(point, columns)?;
                    point.reopen();
                }
            } else {
                json.seek(at);
                let Some(next) = self.step(json, point, columns, report)? else { return Ok(()) };
                (place, bit, at) = (next, next.bit(), json.offset());
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
    #[expect(clippy::inline_always, reason = "measured: once for each point")]
    #[inline(always)]
    fn close<'a>(&self, point: &mut Point<'a>, columns: &mut Columns<'a>) -> Result<()> {
        if point.seen & (1 << TIMESTAMP) == 0 {
            return Err(self.missing_timestamp());
        }
        columns.push(&point.row, &point.extras);
        point.open = false;
        Ok(())
    }

    #[cold]
    fn seen_twice(&self, place: Place) -> Error {
        let error = Error::protocol_at("", "this member comes twice");
        if let Place::Known(place) = place { self.at_member(place, error) } else { error }
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
            Place::Known(TIMESTAMP) => {
                let (timestamp, length) = self.times.take(bytes)?;
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
        self.known(place, json, point, report).map_err(|error| self.at_member(place, error))
    }

    fn known<'a>(
        &mut self,
        place: u8,
        json: &mut Parser<'a>,
        point: &mut Point<'a>,
        report: &mut PageReport,
    ) -> Result<()> {
        match place {
            TIMESTAMP => point.row.timestamp = self.times.read(json, report)?,
            SAMPLE_COUNT => {
                if let Some(count) = sample_count(json, report)? {
                    point.row.set_count(count);
                }
            }
            FIRST_EXTRA.. => {
                let text = json.skip_value()?;
                point.extras[usize::from(place - FIRST_EXTRA)] = (text != "null").then_some(text);
            }
            place => {
                if let Some(number) = float(json, report)? {
                    point.row.set_number(usize::from(place - 1), number);
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn at_member(&self, place: u8, error: Error) -> Error {
        under(error, format_args!(".{}", shown_name(&self.member_names[usize::from(place)])))
    }
}

#[cfg(test)]
mod tests;
