//! The arguments of a scan. A pickled scan is rebuilt from them.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::scan::Scan;
use super::send::Client;
use super::settings::ReadSettings;
use super::split::Cut;
use crate::auth::Checked;
use crate::data::{AskedRange, AskedTime, DecodeSettings, Query, QueryInput, Shape};
use crate::error::Result;

const END_HINT: &str = "Without end the range ends at now minus settle_lag, rounded down to a bucket. \
                        Use an earlier start, a smaller interval or settle_lag, or an end.";
const RELATIVE_HINT: &str = "Relative times are rounded down to a bucket. Use an earlier start, a \
                             later end or a smaller interval.";

/// Tolerance before an end is reported as being in the future.
const AHEAD: SignedDuration = SignedDuration::from_secs(1);

/// A scan without its client and bookmark.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ScanInput {
    pub query: QueryInput,
    /// The user's description of the pages.
    pub shape: Shape,
    pub extra_columns: Vec<String>,
    pub settings: ReadSettings,
    #[serde(default)]
    pub split: Option<Cut>,
    /// The bounds as the user wrote them.
    #[serde(default)]
    pub form: Option<AskedRange>,
}

impl ScanInput {
    /// Creates the scan of a range. Relative bounds are fixed at the service's time. The end is at
    /// least `lag` before it, in whole buckets. Without a given end, the default of `lag` is the
    /// settle lag. Returns warnings about an end in the future, a bound inside a
    /// bucket, and days that differ from the days of `zone`.
    pub fn scan_from_now(
        mut self,
        client: &Client,
        range: AskedRange,
        lag: Option<Duration>,
        zone: Option<&TimeZone>,
    ) -> Result<Checked<Scan>> {
        let (now, width) = (client.now(), self.query.interval_seconds);
        let (start, given) = range.fixed(|| Ok((now, width)))?;
        let lag = lag.or(given.is_none().then_some(client.settings().settle_lag));
        let settled = lag.map(|lag| AskedTime::Before(lag).resolve("end", now, width));
        let end = given.into_iter().chain(settled.transpose()?).min();
        (self.query.start, self.query.end) = (start, end);
        self.form = Some(range);
        let value = self.scan(client).map_err(|error| match (given, start) {
            (None, Some(_)) if start >= end => error.with_hint(END_HINT),
            (Some(given), Some(start)) if range.is_relative() && start >= given => {
                error.with_hint(RELATIVE_HINT)
            }
            _ => error,
        })?;
        let is_ahead = |end: &Timestamp| end.duration_since(now) > AHEAD;
        let warning = end.filter(is_ahead).map(|end| {
            format!(
                "end={end} is in the future (now is {now:.0}): the newest buckets are not complete. \
                 Leave end out, or set settle_lag= to move it back."
            )
        });
        let warnings = warning.into_iter().chain(value.query().grid_warning(zone));
        Ok(Checked { warnings: warnings.collect(), value })
    }

    pub fn scan(self, client: &Client) -> Result<Scan> {
        let query = Query::new(self.query)?;
        let decode = DecodeSettings::for_query(&query, self.shape, self.extra_columns)?;
        Scan::new(client.clone(), query, decode, self.settings, (self.form, self.split))
    }
}

impl From<&Scan> for ScanInput {
    fn from(scan: &Scan) -> Self {
        let DecodeSettings { shape, extra_columns, .. } = scan.decode_settings().clone();
        let (query, settings) = (scan.query().input().clone(), scan.read_settings().clone());
        let (split, form) = (scan.cut(), scan.form());
        Self { query, shape, extra_columns, settings, split, form }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::test_idle::idle_client;
    use crate::error::Kind;

    fn range(start: &str, end: Option<&str>) -> AskedRange {
        let time = |text: &str| AskedTime::parse(text, None).expect("a time");
        AskedRange { start: Some(time(start)), end: end.map(time) }
    }

    fn scan(client: &Client, width: u32, start: &str, end: Option<&str>) -> Result<Checked<Scan>> {
        let query = QueryInput { interval_seconds: Some(width), ..QueryInput::default() };
        let input = ScanInput { query, ..ScanInput::default() };
        input.scan_from_now(client, range(start, end), None, None)
    }

    #[test]
    fn the_end_of_a_scan_is_fixed_or_explained() {
        let client = idle_client();
        let now = client.now();
        let scan = |start, end| scan(&client, 60, start, end);

        let Checked { value, warnings } = scan("2020-01-01T00:00:00Z", None).expect("a scan");
        assert!(value.query().end().expect("an end") < now && warnings.is_empty());
        let again = ScanInput::from(&value).scan(&client).expect("a scan");
        assert_eq!(again.query(), value.query());

        let far = scan("2020-01-01T00:00:00Z", Some("2100-01-01T00:00:00Z")).expect("a scan");
        assert!(far.warnings[0].starts_with("end=2100-01-01T00:00:00Z is in the future"));

        let error = scan("2100-01-01T00:00:00Z", None).expect_err("an empty range");
        assert_eq!(error.kind(), Kind::QueryError);
        assert_eq!(error.context().hint.as_deref(), Some(END_HINT));
    }

    #[test]
    fn times_before_now_are_fixed_on_the_grid_without_a_warning() {
        let client = idle_client();
        let asked = |width, start, end| {
            let Checked { value, warnings } = scan(&client, width, start, end).expect("a scan");
            let again = ScanInput::from(&value).scan(&client).expect("a scan");
            assert_eq!((again.query(), warnings.len()), (value.query(), 0));
            let (start, end) = (value.query().start(), value.query().end());
            format!("{} {}", start.expect("a start"), end.expect("an end"))
        };
        // The service's time is noon.
        for (width, start, end, expected) in [
            (3_600, "-7d", None, "2026-10-25T12:00:00Z 2026-11-01T11:00:00Z"),
            (86_400, "-7d", None, "2026-10-25T00:00:00Z 2026-11-01T00:00:00Z"),
            (60, "-90m", Some("-30m"), "2026-11-01T10:30:00Z 2026-11-01T11:30:00Z"),
            (3_600, "2026-11-01", Some("now"), "2026-11-01T00:00:00Z 2026-11-01T12:00:00Z"),
        ] {
            assert_eq!(asked(width, start, end), expected);
        }
        let hint = |start, end| {
            let error = scan(&client, 86_400, start, end).expect_err("no range");
            assert_eq!(error.kind(), Kind::QueryError);
            error.context().hint.clone()
        };
        assert_eq!(hint("-30m", Some("-20m")).as_deref(), Some(RELATIVE_HINT));
        assert_eq!(hint("-1m", None).as_deref(), Some(END_HINT));
        assert_eq!(hint("-3000000d", None), None);
    }
}
