//! Durations as a person writes them: `90s`, `1h30m`, `2w`, or ISO 8601 `PT1M`.

use std::time::Duration;

use crate::error::{Error, Kind, Result, excerpt};

/// A duration in whole seconds from `"90s"`, `"1m"` (or `"1min"`), `"1h"`, `"1d"`, `"2w"`,
/// `"1h30m"`, or from ISO 8601 `"PT1M"`, `"P1D"`. A day is 86,400 seconds.
///
/// # Errors
/// `Kind::Query` for anything else: no unit, a fraction, a unit twice, years or months. A bare
/// `"1M"` is none either: to pandas it is a month.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let trimmed = text.trim();
    let seconds = match trimmed.strip_prefix(['P', 'p']) {
        Some(rest) => iso_seconds(rest),
        None => seconds(trimmed),
    };
    seconds.map(Duration::from_secs).ok_or_else(|| {
        Error::new(Kind::Query, format!("{:?} is not a duration", excerpt(text)))
            .with_hint("Write it as \"90s\", \"1m\", \"1h30m\", \"1d\", \"2w\" or \"PT1M\".")
    })
}

/// `M` before the `T` means months, which have no fixed length.
fn iso_seconds(rest: &str) -> Option<u64> {
    let (date, time) = match rest.split_once(['T', 't']) {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (rest, ""),
    };
    let date_units = date.chars().all(|c| c.is_ascii_digit() || matches!(c, 'W' | 'w' | 'D' | 'd'));
    let time_units =
        time.chars().all(|c| c.is_ascii_digit() || matches!(c, 'H' | 'h' | 'M' | 'm' | 'S' | 's'));
    if !date_units || !time_units || rest.is_empty() {
        return None;
    }
    let date = if date.is_empty() { 0 } else { seconds(date)? };
    let time = if time.is_empty() { 0 } else { seconds(&time.to_ascii_lowercase())? };
    date.checked_add(time)
}

fn seconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total: u64 = 0;
    // Units go down, each once: "1m1h" is more likely a slip than a duration.
    let mut last_unit = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = unit_seconds(&rest[..letters])?;
        if unit >= last_unit {
            return None;
        }
        last_unit = unit;
        total = total.checked_add(count.checked_mul(unit)?)?;
        rest = &rest[letters..];
    }
    (last_unit != u64::MAX).then_some(total)
}

fn unit_seconds(unit: &str) -> Option<u64> {
    if unit == "M" {
        return None;
    }
    Some(match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("90s", 90),
            ("1m", 60),
            ("5min", 300),
            ("1h", 3_600),
            ("1d", 86_400),
            ("1h30m", 5_400),
            ("2w", 1_209_600),
            (" 15m ", 900),
            ("PT1M", 60),
            ("P1D", 86_400),
            ("P1DT12H", 129_600),
            ("pt90s", 90),
            ("5MIN", 300),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
    }

    #[test]
    fn k14_what_is_no_duration_is_refused() {
        for text in [
            "",
            "60",
            "m",
            "-1m",
            "1.5h",
            "1m1h",
            "1m1m",
            "P1M",
            "P",
            "PT",
            "1y",
            "1 m x",
            "99999999999999999999d",
            "9999999999999999999w",
            "P1H",
            "PT1D",
            "1M",
            "1mo",
            "1h30M",
            "１m",
        ] {
            assert_eq!(parse_duration(text).unwrap_err().kind(), Kind::Query, "{text}");
        }
    }
}
