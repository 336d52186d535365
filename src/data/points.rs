//! The points of an envelope (§2.3), the loop in which the time goes.

use std::borrow::Cow;

use super::columns::{Columns, Row};
use super::decode::DecodeSettings;
use super::json::{Parser, Token, under};
use super::names::{Names, Place};
use super::number::Number;
use super::report::{PageReport, shown_name};
use super::shape::TimestampForm;
use super::timestamp::{DateMemo, Instant, IsoFault, parse_epoch, parse_iso, recognise_epoch};
use crate::error::{Error, Result, excerpt};

/// The places of a point's members: the extra columns follow.
const TIMESTAMP: usize = 0;
const SAMPLE_COUNT: usize = 4;
const FIRST_EXTRA: usize = 5;

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
    grid: Option<Grid>,
}

impl PointReader {
    pub(super) fn new(settings: &DecodeSettings) -> Self {
        let members = settings.shape.point_members().into_iter();
        let all = members.chain(settings.extra_columns.iter().map(String::as_str));
        let member_names: Vec<String> = all.map(ToOwned::to_owned).collect();
        let start = settings.start.map(jiff::Timestamp::as_microsecond);
        Self {
            names: Names::new(member_names.iter().map(String::as_str)),
            member_names,
            stated: settings.shape.timestamp,
            form: None,
            memo: DateMemo::default(),
            start,
            end: settings.end.map(jiff::Timestamp::as_microsecond),
            grid: settings.interval_seconds.map(|seconds| Grid::new(seconds, start)),
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
        let start = columns.rows();
        let mut extras = vec![None; self.member_names.len() - FIRST_EXTRA];
        let mut first = true;
        while json.next_element(&mut first)? {
            match self.point(json, &mut extras, report) {
                Ok(row) => {
                    self.judge(&row, report);
                    columns.push(row, &extras);
                }
                Err(error) => {
                    let index = columns.rows() - start;
                    return Err(under(error, format_args!("[{index}]")));
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn point<'a>(
        &mut self,
        json: &mut Parser<'a>,
        extras: &mut [Option<&'a str>],
        report: &mut PageReport,
    ) -> Result<Row> {
        let token = json.peek()?;
        if token != Token::Object {
            let message = format!("a point is an object, not {}", token.described());
            return Err(Error::protocol_at("", message));
        }
        json.enter()?;
        self.names.restart();
        extras.fill(None);
        let mut row = Row { timestamp: 0, numbers: [None; 3], sample_count: None };
        let mut seen: u64 = 0;
        let mut first = true;
        while json.next_member(&mut first)? {
            let note =
                |name: &str| report.note_unknown(|| format!("points[].{}", shown_name(name)));
            let place = match self.names.read(json, note)? {
                Place::Known(place) => place,
                Place::Unknown => {
                    json.skip_value()?;
                    continue;
                }
            };
            if seen & (1 << place) != 0 {
                return Err(
                    self.at_member(place, Error::protocol_at("", "this member comes twice"))
                );
            }
            seen |= 1 << place;
            let outcome = match place {
                TIMESTAMP => self.timestamp(json, report).map(|read| row.timestamp = read),
                SAMPLE_COUNT => sample_count(json, report).map(|read| row.sample_count = read),
                FIRST_EXTRA.. => json
                    .skip_value()
                    .map(|text| extras[place - FIRST_EXTRA] = (text != "null").then_some(text)),
                number => float(json, report).map(|read| row.numbers[number - 1] = read),
            };
            outcome.map_err(|error| self.at_member(place, error))?;
        }
        if seen & (1 << TIMESTAMP) == 0 {
            let missing = Error::protocol_at("", "the point has no such member");
            return Err(self.at_member(TIMESTAMP, missing));
        }
        Ok(row)
    }

    #[cold]
    fn at_member(&self, place: usize, error: Error) -> Error {
        under(error, format_args!(".{}", shown_name(&self.member_names[place])))
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
            let shown = excerpt(&shown_name(number.text));
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

    /// Counts oddities (J10, J14, J15); the point is kept as it is.
    #[inline]
    fn judge(&mut self, row: &Row, report: &mut PageReport) {
        let early = self.start.is_some_and(|start| row.timestamp < start);
        let late = self.end.is_some_and(|end| row.timestamp >= end);
        report.outside_range += u64::from(early || late);
        if let Some(grid) = &mut self.grid {
            report.off_grid += u64::from(!grid.holds(row.timestamp));
        }
        let [value, minimum, maximum] = row.numbers;
        // A comparison with NaN is false: what is missing is not odd.
        let value = value.unwrap_or(f64::NAN);
        let (minimum, maximum) = (minimum.unwrap_or(f64::NAN), maximum.unwrap_or(f64::NAN));
        report.minimum_above_maximum += u64::from(minimum > maximum);
        report.value_outside_bounds += u64::from(value < minimum || value > maximum);
        report.negative_counts += u64::from(row.sample_count.is_some_and(|count| count < 0));
    }
}

/// The buckets' grid. Its origin is not shown in the document: multiples of the width count from
/// the epoch or from the query's start, and a point on either is on the grid.
struct Grid {
    width: i64,
    start: i64,
    last_held: i64,
}

impl Grid {
    fn new(seconds: u32, start: Option<i64>) -> Self {
        Self { width: i64::from(seconds) * 1_000_000, start: start.unwrap_or(0), last_held: 0 }
    }

    #[inline]
    fn holds(&mut self, timestamp: i64) -> bool {
        // The next bucket after one that is on the grid is so too: mostly no division.
        let held = timestamp.wrapping_sub(self.last_held) == self.width
            || timestamp % self.width == 0
            || (timestamp - self.start) % self.width == 0;
        if held {
            self.last_held = timestamp;
        }
        held
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
