//! A bound of a read as the user wrote it ([`AskedTime`]), and a pair of them ([`AskedRange`]).

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::instant::check_range;
use super::local_time::parse_instant_in;
use super::query::{Query, sha256};
use crate::duration::parse_duration;
use crate::error::{Error, Kind, Result, excerpt};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskedTime {
    At(Timestamp),
    /// The distance before now.
    Before(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AskedRange {
    pub start: Option<AskedTime>,
    pub end: Option<AskedTime>,
}

/// A hash of the query, with the form of each bound that depends on the time (`now`, `-7d`, or an
/// end that was left out) instead of its value. So it does not depend on when the query was written.
/// Without a form, the bounds do not depend on the time.
pub(crate) fn form_fingerprint(form: Option<AskedRange>, query: &Query) -> [u8; 32] {
    let mut input = query.input().clone();
    if let Some(AskedRange { start, end }) = form {
        let is_fixed = |bound: Option<AskedTime>| !matches!(bound, Some(AskedTime::Before(_)));
        input.start = input.start.filter(|_| is_fixed(start));
        input.end = input.end.filter(|_| is_fixed(end) && end.is_some());
    }
    // A Python set may have another order in another process.
    input.site.sort_unstable();
    input.line.sort_unstable();
    sha256("siteline form", format!("{input:?} {form:?}").as_bytes())
}

impl AskedTime {
    /// Parses `now`, `-7d` and `-90m`, and all forms of an instant. Without an offset, the time is
    /// read in `zone`.
    pub fn parse(text: &str, zone: Option<&TimeZone>) -> Result<Self> {
        let trimmed = text.trim();
        if trimmed == "now" {
            return Ok(Self::Before(Duration::ZERO));
        }
        let refused =
            |why: &str| Error::new(Kind::QueryError, format!("{:?} {why}", excerpt(text)));
        if let Some(length) = trimmed.strip_prefix('-') {
            let length = parse_duration(length).map_err(|_| {
                refused("is not a time before now.").with_hint(
                    "Use a form such as \"-90m\", \"-12h\", \"-7d\" or \"-2w\". A day is 24 hours.",
                )
            })?;
            return Ok(Self::Before(length));
        }
        if trimmed.starts_with('+') {
            return Err(refused("is in the future, so nothing has been measured yet.")
                .with_hint("Leave end out, or use a time before now such as \"-1h\"."));
        }
        let instant = parse_instant_in(text, zone).map_err(|error| {
            let length = trimmed.strip_suffix(" ago").unwrap_or(trimmed);
            if parse_duration(length).is_ok() {
                let before = format!("-{length}");
                return error.with_hint(format!("For a time before now use {before:?}."));
            }
            error
        });
        instant.map(Self::At)
    }

    /// A relative time is rounded down to the start of a bucket, or to a whole second. Times that
    /// have no local time in some zone are rejected; `name` is their parameter.
    pub fn resolve(
        self,
        name: &str,
        now: Timestamp,
        interval_seconds: Option<u32>,
    ) -> Result<Timestamp> {
        let at = match self {
            Self::At(at) => at,
            Self::Before(length) => {
                let width = i64::from(interval_seconds.unwrap_or(1).max(1));
                let at = now.as_nanosecond().saturating_sub_unsigned(length.as_nanos());
                let second = i64::try_from(at.div_euclid(1_000_000_000)).unwrap_or(i64::MIN);
                let second = second.saturating_sub(second.rem_euclid(width));
                Timestamp::from_second(second).unwrap_or(Timestamp::MIN)
            }
        };
        check_range(name, at).map(|()| at)
    }
}

impl AskedRange {
    pub(crate) fn is_relative(&self) -> bool {
        let is_relative = |bound| matches!(bound, Some(AskedTime::Before(_)));
        is_relative(self.start) || is_relative(self.end)
    }

    /// `clock` returns the current time and the bucket width. It is called only for relative
    /// bounds.
    pub(crate) fn fixed(
        self,
        clock: impl FnOnce() -> Result<(Timestamp, Option<u32>)>,
    ) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
        let (now, width) =
            if self.is_relative() { clock()? } else { (Timestamp::UNIX_EPOCH, None) };
        let fixed = |bound: Option<AskedTime>, name| {
            bound.map(|bound| bound.resolve(name, now, width)).transpose()
        };
        Ok((fixed(self.start, "start")?, fixed(self.end, "end")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-20T00:07:31.5Z";

    fn at(text: &str, width: Option<u32>) -> String {
        let now = NOW.parse().expect("a time");
        let asked =
            AskedTime::parse(text, None).and_then(|asked| asked.resolve("start", now, width));
        asked.map_or_else(|error| error.to_string().replace('\n', " "), |at| at.to_string())
    }

    #[test]
    fn a_time_before_now_is_rounded_down_to_a_bucket() {
        for (text, width, expected) in [
            ("-90m", None, "2026-11-19T22:37:31Z"),
            ("-90m", Some(60), "2026-11-19T22:37:00Z"),
            (" -7d ", Some(3_600), "2026-11-13T00:00:00Z"),
            ("-7d", Some(86_400), "2026-11-13T00:00:00Z"),
            ("-2w", Some(60), "2026-11-06T00:07:00Z"),
            ("-1h30m", Some(60), "2026-11-19T22:37:00Z"),
            ("-PT1H", Some(60), "2026-11-19T23:07:00Z"),
            ("-0s", Some(60), "2026-11-20T00:07:00Z"),
            ("now", Some(3_600), "2026-11-20T00:00:00Z"),
            ("-600ms", None, "2026-11-20T00:07:30Z"),
            ("-57y", None, "\"-57y\" is not a time before now. Use a form such as"),
            ("-30000d", Some(86_400), "1944-10-01T00:00:00Z"),
        ] {
            assert!(at(text, width).starts_with(expected), "{text}: {}", at(text, width));
        }
    }

    #[test]
    fn a_text_that_is_no_past_time_is_refused_with_a_hint() {
        for (text, expected) in [
            ("+1h", "\"+1h\" is in the future"),
            ("--7d", "is not a time before now. Use a form such as \"-90m\""),
            ("-7", "is not a time before now"),
            ("-1M", "is not a time before now"),
            ("-", "is not a time before now"),
            ("-2026-11-01", "is not a time before now"),
            ("7d", "is not an ISO 8601 time. For a time before now use \"-7d\"."),
            ("7 days ago", "use \"-7 days\"."),
            ("yesterday", "is not an ISO 8601 time. Use a time such as \"2026-11-01T00:00Z\""),
            ("2026-11-01T06:00", "has no time zone. Use \"2026-11-01T06:00Z\" for UTC"),
            ("-99999999999999d", "before"),
            ("-3000000d", "from 0001-01-02"),
        ] {
            assert!(at(text, None).contains(expected), "{text}: {}", at(text, None));
        }
    }

    #[test]
    fn the_clock_is_read_once_and_only_for_relative_times() {
        let instant = AskedTime::parse("2026-11-01", None).ok();
        let range = AskedRange { start: instant, end: None };
        let fixed = range.fixed(|| unreachable!("no relative bound")).expect("a range");
        assert_eq!(fixed, ("2026-11-01T00:00:00Z".parse().ok(), None));
        let before = |text| AskedTime::parse(text, None).ok();
        let range = AskedRange { start: before("-2h"), end: before("-1h") };
        let fixed =
            range.fixed(|| Ok((NOW.parse().expect("a time"), Some(3_600)))).expect("a range");
        let hour = |text: &str| text.parse().ok();
        assert_eq!(fixed, (hour("2026-11-19T22:00:00Z"), hour("2026-11-19T23:00:00Z")));
    }
}
