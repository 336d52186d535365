//! Reads the numbers of a point: a number, null, or a number as text (J5, J9, J10).

use std::borrow::Cow;

use super::json::{Parser, ValueKind};
use super::number::Number;
use crate::data::report::{PageReport, shown_name};
use crate::error::{Error, Result};

/// J5, J9: a number, null, or a number as text.
pub(super) fn float(json: &mut Parser<'_>, report: &mut PageReport) -> Result<Option<f64>> {
    match json.peek()? {
        ValueKind::Number => json.number()?.to_f64().map(Some).ok_or_else(beyond_double),
        token => match number_in_text(json, token, report)? {
            Some(text) => {
                let number = Number::parse(&text).ok_or_else(|| no_number(&text))?;
                number.to_f64().map(Some).ok_or_else(beyond_double)
            }
            None => Ok(None),
        },
    }
}

/// J10: an integer in any notation, or null.
pub(super) fn sample_count(json: &mut Parser<'_>, report: &mut PageReport) -> Result<Option<i64>> {
    match json.peek()? {
        ValueKind::Number => json.number()?.to_i64().map(Some).ok_or_else(no_count),
        token => match number_in_text(json, token, report)? {
            Some(text) => {
                let number = Number::parse(&text).ok_or_else(|| no_number(&text))?;
                number.to_i64().map(Some).ok_or_else(no_count)
            }
            None => Ok(None),
        },
    }
}

/// Reads null or a text in the place of a number.
fn number_in_text<'a>(
    json: &mut Parser<'a>,
    token: ValueKind,
    report: &mut PageReport,
) -> Result<Option<Cow<'a, str>>> {
    match token {
        ValueKind::Null => json.literal().map(|()| None),
        ValueKind::Text => {
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
