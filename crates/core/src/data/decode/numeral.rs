//! Reads the numbers of a point: a number, null, or a number as text (J5, J9, J10).

use super::json::{Parser, ValueKind};
use super::number::Number;
use crate::data::report::{PageReport, shown_name};
use crate::error::{Error, Result};

pub(super) fn float(json: &mut Parser<'_>, report: &mut PageReport) -> Result<Option<f64>> {
    number(
        json,
        report,
        |number| number.to_f64().map(Some),
        "the number is out of the range of a double",
    )
}

/// Reads an integer in any notation, or null.
pub(super) fn sample_count(json: &mut Parser<'_>, report: &mut PageReport) -> Result<Option<i64>> {
    number(
        json,
        report,
        |number| number.to_i64().map(Some),
        "a count must be a whole number of at most 64 bits",
    )
}

/// Reads and converts a number, or null. `refusal` explains a failed conversion.
fn number<T>(
    json: &mut Parser<'_>,
    report: &mut PageReport,
    convert: impl FnOnce(Number<'_>) -> Option<Option<T>>,
    refusal: &str,
) -> Result<Option<T>> {
    let converted = match json.peek()? {
        ValueKind::Number => convert(json.number()?),
        ValueKind::Null => return json.literal().map(|()| None),
        ValueKind::Text => {
            report.numbers_as_text += 1;
            let text = json.string()?;
            convert(Number::parse(&text).ok_or_else(|| no_number(&text))?)
        }
        token => {
            let message = format!("expected a number or null, found {}", token.described());
            return Err(Error::protocol_at("", message));
        }
    };
    converted.ok_or_else(|| Error::protocol_at("", refusal))
}

#[cold]
fn no_number(text: &str) -> Error {
    Error::protocol_at("", format!("the text {:?} is not a number", shown_name(text)))
}
