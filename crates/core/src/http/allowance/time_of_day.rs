//! When the service's day begins, as a time of day in UTC. The interface does not specify it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result, excerpt};

const DAY: i64 = 86_400;
/// The largest offset from UTC.
const FARTHEST: i64 = 18 * 3_600;

/// A time of day in whole seconds, in UTC. Midnight by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimeOfDay(i64);

impl TimeOfDay {
    /// The time `seconds` after midnight in a zone that is `ahead_of_utc` seconds ahead of UTC.
    pub fn new(seconds: i64, ahead_of_utc: i64) -> Result<Self> {
        if !(0..DAY).contains(&seconds) || ahead_of_utc.abs() > FARTHEST {
            return Err(refused("it is not a time of day"));
        }
        Ok(Self((seconds - ahead_of_utc).rem_euclid(DAY)))
    }

    /// The time of day of an instant, truncated to seconds.
    pub(crate) fn from_timestamp(at: Timestamp) -> Self {
        Self(at.as_second().rem_euclid(DAY))
    }

    /// Parses `06:00Z`, `06:00:30Z`, `08:00+02:00`.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        // Any date completes the time to an instant. A fraction or the name of a zone would be
        // ignored.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b":+-Zz".contains(&byte));
        let instant = is_plain.then(|| format!("2000-01-02T{text}").parse().ok()).flatten();
        instant.map(Self::from_timestamp).ok_or_else(|| {
            refused(&format!("{:?} is not a time of day with a zone", excerpt(text)))
        })
    }

    /// The start of the day that contains this instant.
    pub(crate) fn start_of_day(self, now: Timestamp) -> Timestamp {
        let into = (now.as_second() - self.0).rem_euclid(DAY);
        Timestamp::from_second(now.as_second() - into).unwrap_or(Timestamp::MIN)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0;
        write!(f, "{:02}:{:02}:{:02}Z", seconds / 3_600, seconds / 60 % 60, seconds % 60)
    }
}

fn refused(what: &str) -> Error {
    Error::new(Kind::ConfigError, what).with_hint(
        "Write the start of the service's day as 06:00Z, or with an offset as 08:00+02:00.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_requires_a_zone_and_is_stored_in_utc() {
        for (text, shown) in [
            ("06:00Z", "06:00:00Z"),
            (" 06:00:30z\n", "06:00:30Z"),
            ("08:00+02:00", "06:00:00Z"),
            ("01:00+02:00", "23:00:00Z"),
            ("23:30-05:30", "05:00:00Z"),
        ] {
            let time = TimeOfDay::parse(text).expect(text);
            assert_eq!(time.to_string(), shown, "{text}");
            assert_eq!(TimeOfDay::parse(shown).expect(shown), time);
        }
        for text in ["23:59:59Z", "06:00-18:00"] {
            assert!(TimeOfDay::parse(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "06:00",
            "Z",
            "6:00Z",
            "06:00ZZ",
            "24:00Z",
            "06:00:00:00Z",
            "06:00+99:00",
            "T06:00Z",
            "06:00:00.5Z",
            "06:00Z[Europe/Berlin]",
        ] {
            let error = TimeOfDay::parse(text).expect_err(text).to_string();
            assert!(error.contains("is not a time of day with a zone"), "{error}");
        }
        for (seconds, ahead) in [(-1, 0), (86_400, 0), (0, -18 * 3_600 - 1), (0, 18 * 3_600 + 1)] {
            let error = TimeOfDay::new(seconds, ahead).expect_err("refused");
            assert_eq!(error.kind(), Kind::ConfigError, "{seconds} {ahead}");
        }
    }
}
