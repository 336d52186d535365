//! Durations as users write them: `90s`, `1h30m`, `0.5s`, or ISO 8601 `PT1M`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

use crate::error::{Error, Kind, Result, excerpt};

/// Parses `"90s"`, `"200ms"`, `"1m"` (or `"1min"`), `"1.5h"`, `"1h30m"`, `"1d"`, `"2w"`, or ISO
/// 8601 `"PT1M"`, `"P1D"`. A day is 86,400 seconds. `"1M"` is rejected: pandas reads it as a month.
pub fn parse_duration(text: &str) -> Result<Duration> {
    parse(text.trim()).ok_or_else(|| {
        Error::new(Kind::QueryError, format!("{:?} is not a duration.", excerpt(text)))
            .with_hint(hint(text.trim()))
    })
}

/// Also for pandas offsets such as `15T` or `D`.
fn hint(text: &str) -> String {
    let unit = text.trim_start_matches(|one: char| one.is_ascii_digit()).trim();
    let count = text.strip_suffix(unit).map(str::trim).filter(|count| !count.is_empty());
    let meant = match unit {
        "T" | "min" | "m" => "m",
        "S" | "s" | "second" => "s",
        "L" | "ms" => "ms",
        "H" | "h" | "hour" | "hourly" => "h",
        "D" | "d" | "day" | "daily" => "d",
        "w" | "week" | "weekly" => "w",
        "M" if count.is_some() => {
            let minutes = text.to_ascii_lowercase();
            return format!("For minutes use {minutes:?}. A month has no fixed length: use days.");
        }
        "M" | "ME" | "MS" | "mo" | "month" | "months" | "monthly" | "Y" | "y" | "year" => {
            return "A month or a year has no fixed length. Use days, such as \"30d\".".to_owned();
        }
        _ if unit.starts_with('W') => "w",
        _ => {
            return "Use a number and a unit, such as \"90s\", \"15m\", \"1h30m\", \"1d\", \"2w\" or \
                    \"PT1M\"."
                .to_owned();
        }
    };
    format!("Use {:?}.", format!("{}{meant}", count.unwrap_or("1")))
}

fn parse(text: &str) -> Option<Duration> {
    let is_iso = text.starts_with(['P', 'p']);
    let is_bare =
        |(at, unit): (usize, &str)| !text[at + unit.len()..].starts_with(char::is_alphabetic);
    if !is_iso && text.match_indices('M').any(is_bare) {
        return None;
    }
    let span: Span = text.to_ascii_lowercase().parse().ok()?;
    span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_documented_forms_of_a_duration_are_parsed() {
        for (text, seconds) in [
            ("90s", 90.0),
            ("1m", 60.0),
            ("5min", 300.0),
            ("5 min", 300.0),
            ("1h", 3_600.0),
            ("1.5h", 5_400.0),
            ("1d", 86_400.0),
            ("1h30m", 5_400.0),
            ("1h 30m", 5_400.0),
            ("2 weeks", 1_209_600.0),
            ("2w", 1_209_600.0),
            ("200ms", 0.2),
            ("0.2s", 0.2),
            (" 15m ", 900.0),
            ("PT1M", 60.0),
            ("PT0.5S", 0.5),
            ("P1D", 86_400.0),
            ("P1DT12H", 129_600.0),
            ("pt90s", 90.0),
            ("5MIN", 300.0),
            ("0s", 0.0),
        ] {
            assert_eq!(parse_duration(text).unwrap(), Duration::from_secs_f64(seconds), "{text}");
        }
    }

    #[test]
    fn offsets_of_pandas_have_a_hint() {
        for (text, meant) in [
            ("15T", "Use \"15m\"."),
            ("D", "Use \"1d\"."),
            ("W-MON", "Use \"1w\"."),
            ("hourly", "Use \"1h\"."),
            ("1M", "no fixed length"),
            ("soon", "a number and a unit"),
        ] {
            let error = parse_duration(text).unwrap_err().to_string();
            assert!(error.contains(meant), "{error}");
        }
    }

    #[test]
    fn k14_an_invalid_duration_is_refused() {
        let short = [
            "", "60", "m", "-1m", "-PT1M", "1m ago", "1.5d", "1m1h", "1m1m", "P1M", "P", "PT",
            "1y", "1 m x", "P1H", "PT1D", "1M", "1mo", "1h30M", "1M30s", "１m",
        ];
        for text in short.into_iter().chain(["99999999999999999999d", "9999999999999999999w"]) {
            assert_eq!(parse_duration(text).unwrap_err().kind(), Kind::QueryError, "{text}");
        }
    }
}
