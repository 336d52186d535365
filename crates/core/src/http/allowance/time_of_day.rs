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
        let trimmed = text.trim();
        let (time, zone) = match trimmed.find(['Z', 'z', '+', '-']) {
            Some(at) => trimmed.split_at(at),
            None => (trimmed, ""),
        };
        let what = format!("{:?}", excerpt(trimmed));
        let Some(seconds) = clock_time(time) else {
            return Err(refused(&format!("{what} is not a time of day")));
        };
        match zone {
            "" => Err(refused(&format!("{what} has no time zone"))),
            "Z" | "z" => Self::new(seconds, 0),
            offset => match clock_time(&offset[1..]) {
                Some(ahead) if ahead <= FARTHEST => {
                    Self::new(seconds, if offset.starts_with('-') { -ahead } else { ahead })
                }
                _ => Err(refused(&format!("{what} has an invalid offset"))),
            },
        }
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

/// `HH:MM` or `HH:MM:SS`, in seconds.
fn clock_time(text: &str) -> Option<i64> {
    let mut parts = text.split(':').map(|part| {
        let is_pair = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_pair.then(|| part.parse::<i64>().ok()).flatten()
    });
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0))?;
    let fits = parts.next().is_none() && hours < 24 && minutes < 60 && seconds < 60;
    fits.then_some(hours * 3_600 + minutes * 60 + seconds)
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
        for (text, fault) in [
            ("23:59:59Z", None),
            ("06:00-18:00", None),
            ("", Some("is not a time of day")),
            ("06:00", Some("has no time zone")),
            ("Z", Some("is not a time of day")),
            ("6:00Z", Some("is not a time of day")),
            ("06Z", Some("is not a time of day")),
            ("06:00ZZ", Some("has an invalid offset")),
            ("23:59:60Z", Some("is not a time of day")),
            ("24:00Z", Some("is not a time of day")),
            ("06:00:00:00Z", Some("is not a time of day")),
            ("06:00+18:01", Some("has an invalid offset")),
        ] {
            let message = TimeOfDay::parse(text).err().map(|error| error.to_string());
            let (message, fault) = (message.unwrap_or_default(), fault.unwrap_or_default());
            assert!(message.contains(fault) && message.is_empty() == fault.is_empty(), "{message}");
        }
        for (seconds, ahead) in [(-1, 0), (86_400, 0), (0, -18 * 3_600 - 1), (0, 18 * 3_600 + 1)] {
            let error = TimeOfDay::new(seconds, ahead).expect_err("refused");
            assert_eq!(error.kind(), Kind::ConfigError, "{seconds} {ahead}");
        }
    }
}
