//! Reads the timestamps of a page's points, all in one form (J11-J13).

use super::json::{Parser, ValueKind};
use super::number::Number;
use super::settings::DecodeSettings;
use super::timestamp::{
    DateMemo, Instant, IsoFault, parse_epoch, parse_iso, recognise_epoch, take_iso,
};
use crate::data::report::{PageReport, shown_name};
use crate::data::shape::TimestampForm;
use crate::error::{Error, Result, excerpt};

/// Reads timestamps. Caches the form and the last date for the next one.
pub(super) struct TimeReader {
    /// The form from Shape, or `Detect`.
    configured: TimestampForm,
    /// The form found on this page.
    form: Option<TimestampForm>,
    memo: DateMemo,
    start: Option<i64>,
    end: Option<i64>,
}

impl TimeReader {
    pub(super) fn new(settings: &DecodeSettings) -> Self {
        Self {
            configured: settings.shape.timestamp,
            form: None,
            memo: DateMemo::default(),
            start: settings.start.map(jiff::Timestamp::as_microsecond),
            end: settings.end.map(jiff::Timestamp::as_microsecond),
        }
    }

    pub(super) fn form(&self) -> Option<TimestampForm> {
        self.form
    }

    /// The timestamp at the start of `bytes` and its length, if it and the page's timestamps have
    /// the most frequent form.
    #[inline]
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<(i64, usize)> {
        if self.form == Some(TimestampForm::Iso) { take_iso(bytes, &mut self.memo) } else { None }
    }

    /// Reads the next timestamp in any form.
    pub(super) fn read(&mut self, json: &mut Parser<'_>, report: &mut PageReport) -> Result<i64> {
        let (instant, form) = match json.peek()? {
            ValueKind::Text => {
                let text = json.string()?;
                let instant = parse_iso(text.as_bytes(), &mut self.memo)
                    .map_err(|fault| bad_iso(fault, &text))?;
                (instant, TimestampForm::Iso)
            }
            ValueKind::Number => self.epoch(json.number()?)?,
            token => return Err(token.refused("a timestamp must be text or a number")),
        };
        if self.form != Some(form) {
            self.settle(form)?;
        }
        report.timestamps_truncated += u64::from(instant.truncated);
        report.leap_seconds += u64::from(instant.leap_second);
        Ok(instant.microseconds)
    }

    fn epoch(&self, number: Number<'_>) -> Result<(Instant, TimestampForm)> {
        let form = match self.configured {
            TimestampForm::Detect | TimestampForm::Iso => {
                recognise_epoch(number, (self.start, self.end), self.form)
            }
            configured => configured,
        };
        let instant = parse_epoch(number, form).ok_or_else(|| {
            let shown = excerpt(&shown_name(number.text()));
            Error::protocol_at("", format!("the timestamp {shown} is outside the years 1 to 9999"))
        })?;
        Ok((instant, form))
    }

    /// Checks that all timestamps of a page have one form, which is the configured one if set.
    #[cold]
    fn settle(&mut self, form: TimestampForm) -> Result<()> {
        let expected = match self.configured {
            TimestampForm::Detect => self.form,
            configured => Some(configured),
        };
        match expected {
            Some(expected) if expected != form => Err(Error::protocol_at(
                "",
                format!("a timestamp in the form {}, not {}", form.name(), expected.name()),
            )
            .with_hint("If the form was detected incorrectly, set Shape(timestamp=\"…\").")),
            _ => {
                self.form = Some(form);
                Ok(())
            }
        }
    }
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
