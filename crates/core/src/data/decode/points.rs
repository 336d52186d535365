//! Reads the points of an envelope, the most time-consuming loop. Values in their most frequent
//! form, and the bytes between them ([`MemberNames`]), are read in place. Everything else is
//! parsed.

use std::borrow::Cow;

use super::double::take_double;
use super::ignored::take_plain_value;
use super::json::{Parser, ValueKind, under};
use super::names::{Member, MemberNames};
use super::number::{Number, take_count};
use super::settings::DecodeSettings;
use super::times::TimeReader;
use crate::data::columns::{ColumnsBuilder, PointRow};
use crate::data::report::{PageReport, shown_name};
use crate::data::shape::TimestampForm;
use crate::error::{Error, Result};

/// The indices of a point's members. Value, minimum and maximum are 1 to 3.
const TIMESTAMP: u8 = 0;
const SAMPLE_COUNT: u8 = 4;
const FIRST_EXTRA: u8 = 5;
/// The bits of the four values.
const VALUES: u64 = 0b1_1110;

/// Reads points, and stores their layout for the next point.
pub(super) struct PointReader {
    names: MemberNames,
    member_names: Vec<String>,
    times: TimeReader,
    /// The bits of the members that any point has.
    seen: u64,
}

struct OpenPoint<'a> {
    row: PointRow,
    /// The bits of the members that were read.
    seen: u64,
    /// The bits of the earlier points in the array.
    seen_before: u64,
    /// Number of points that lack a value.
    incomplete: u64,
    /// The JSON text of each extra column's member.
    extras: Vec<Option<&'a str>>,
    /// False between two points.
    open: bool,
}

impl OpenPoint<'_> {
    #[inline]
    fn reopen(&mut self) {
        self.row = PointRow::new(0);
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
            names: MemberNames::new(member_names.iter().map(String::as_str)),
            member_names,
            times: TimeReader::new(settings),
            seen: 0,
        }
    }

    /// The names of the four values, if no point has any of them.
    pub(super) fn missing_values(&self) -> Option<&[String]> {
        let values = usize::from(TIMESTAMP) + 1..usize::from(FIRST_EXTRA);
        (self.seen & VALUES == 0).then(|| &self.member_names[values])
    }

    pub(super) fn timestamp_form(&self) -> Option<TimestampForm> {
        self.times.form()
    }

    pub(super) fn read<'a>(
        &mut self,
        json: &mut Parser<'a>,
        columns: &mut ColumnsBuilder<'a>,
        report: &mut PageReport,
    ) -> Result<()> {
        let token = json.peek()?;
        if token != ValueKind::Array {
            return Err(token.refused("points must be an array"));
        }
        json.enter()?;
        self.names.restart();
        let start = columns.rows();
        let extras = vec![None; self.member_names.len() - usize::from(FIRST_EXTRA)];
        let row = PointRow::new(0);
        let mut point =
            OpenPoint { row, seen: 0, seen_before: 0, incomplete: 0, extras, open: false };
        self.points(json, &mut point, columns, report).map_err(|error| {
            let index = columns.rows() - start;
            if point.open { under(error, format_args!("[{index}]")) } else { error }
        })?;
        self.seen |= point.seen_before;
        report.values_missing += point.incomplete;
        Ok(())
    }

    fn points<'a>(
        &mut self,
        json: &mut Parser<'a>,
        point: &mut OpenPoint<'a>,
        columns: &mut ColumnsBuilder<'a>,
        report: &mut PageReport,
    ) -> Result<()> {
        let bytes = json.bytes();
        let mut at = json.offset();
        let (mut member, mut bit);
        if let Some(step) = self.names.follow(bytes, at) {
            (member, bit, at) = (step.member, step.bit, step.end);
            json.deepen()?;
            point.reopen();
        } else {
            let Some(next) = self.step(json, point, columns, report)? else { return Ok(()) };
            (member, bit, at) = (next, next.bit(), json.offset());
        }
        loop {
            if point.seen & bit != 0 {
                return Err(self.seen_twice(member));
            }
            point.seen |= bit;
            if let Some(length) = self.take(member, bytes.get(at..).unwrap_or_default(), point) {
                at += length;
            } else {
                json.seek(at);
                self.value(member, json, point, report)?;
                at = json.offset();
            }
            if let Some(step) = self.names.follow(bytes, at) {
                (member, bit, at) = (step.member, step.bit, step.end);
                if step.opens {
                    self.close(point, columns)?;
                    point.reopen();
                }
            } else {
                json.seek(at);
                let Some(next) = self.step(json, point, columns, report)? else { return Ok(()) };
                (member, bit, at) = (next, next.bit(), json.offset());
            }
        }
    }

    /// Parses up to the next value, possibly in the next point. `None` at the array's end.
    fn step<'a>(
        &mut self,
        json: &mut Parser<'a>,
        point: &mut OpenPoint<'a>,
        columns: &mut ColumnsBuilder<'a>,
        report: &mut PageReport,
    ) -> Result<Option<Member>> {
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
            if token != ValueKind::Object {
                return Err(token.refused("a point must be an object"));
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

    /// Ends a point, and adds its row to the columns.
    #[expect(clippy::inline_always, reason = "measured: once for each point")]
    #[inline(always)]
    fn close<'a>(&self, point: &mut OpenPoint<'a>, columns: &mut ColumnsBuilder<'a>) -> Result<()> {
        if point.seen & (1 << TIMESTAMP) == 0 {
            return Err(self.missing_timestamp());
        }
        columns.push(&point.row, &point.extras);
        point.seen_before |= point.seen;
        point.incomplete += u64::from(point.seen & VALUES != VALUES);
        point.open = false;
        Ok(())
    }

    #[cold]
    fn seen_twice(&self, member: Member) -> Error {
        let error = Error::protocol_at("", "this member occurs twice");
        if let Member::Known(index) = member { self.at_member(index, error) } else { error }
    }

    #[cold]
    fn missing_timestamp(&self) -> Error {
        self.at_member(TIMESTAMP, Error::protocol_at("", "the point has no such member"))
    }

    /// Reads a value in its most frequent form at the start of `bytes`, and returns its length.
    /// `None` for any other form, valid or not.
    #[inline]
    fn take(&mut self, member: Member, bytes: &[u8], point: &mut OpenPoint<'_>) -> Option<usize> {
        match member {
            Member::Known(TIMESTAMP) => {
                let (timestamp, length) = self.times.take(bytes)?;
                point.row.timestamp = timestamp;
                Some(length)
            }
            Member::Known(index @ 1..=3) => {
                if let Some((number, length)) = take_double(bytes) {
                    point.row.set_number(usize::from(index - 1), number);
                    return Some(length);
                }
                bytes.starts_with(b"null").then_some(4)
            }
            Member::Known(SAMPLE_COUNT) => {
                let (count, length) = take_count(bytes)?;
                point.row.set_count(count);
                Some(length)
            }
            Member::Known(_) => None,
            Member::Unknown => take_plain_value(bytes),
        }
    }

    fn value<'a>(
        &mut self,
        member: Member,
        json: &mut Parser<'a>,
        point: &mut OpenPoint<'a>,
        report: &mut PageReport,
    ) -> Result<()> {
        let Member::Known(index) = member else { return json.skip_value().map(drop) };
        self.known(index, json, point, report).map_err(|error| self.at_member(index, error))
    }

    fn known<'a>(
        &mut self,
        index: u8,
        json: &mut Parser<'a>,
        point: &mut OpenPoint<'a>,
        report: &mut PageReport,
    ) -> Result<()> {
        match index {
            TIMESTAMP => point.row.timestamp = self.times.read(json, report)?,
            SAMPLE_COUNT => {
                if let Some(number) = number(json, report)? {
                    let refused = "a count must be a whole number of at most 64 bits";
                    let count = number.to_i64();
                    point.row.set_count(count.ok_or_else(|| Error::protocol_at("", refused))?);
                }
            }
            FIRST_EXTRA.. => {
                let text = json.skip_value()?;
                point.extras[usize::from(index - FIRST_EXTRA)] = (text != "null").then_some(text);
            }
            index => {
                if let Some(number) = number(json, report)? {
                    let refused = "the number is out of the range of a double";
                    let number = number.to_f64();
                    let number = number.ok_or_else(|| Error::protocol_at("", refused))?;
                    point.row.set_number(usize::from(index - 1), number);
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn at_member(&self, index: u8, error: Error) -> Error {
        under(error, format_args!(".{}", shown_name(&self.member_names[usize::from(index)])))
    }
}

/// Reads a number, or null.
fn number<'a>(json: &mut Parser<'a>, report: &mut PageReport) -> Result<Option<Number<'a>>> {
    match json.peek()? {
        ValueKind::Number => json.number().map(Some),
        ValueKind::Null => json.literal().map(|()| None),
        ValueKind::Text => {
            report.numbers_as_text += 1;
            let text = json.string()?;
            let Cow::Borrowed(plain) = text else { return Err(no_number(&text)) };
            Number::parse(plain).map(Some).ok_or_else(|| no_number(plain))
        }
        token => Err(token.refused("expected a number or null")),
    }
}

#[cold]
fn no_number(text: &str) -> Error {
    Error::protocol_at("", format!("the text {:?} is not a number", shown_name(text)))
}

#[cfg(test)]
mod tests;
