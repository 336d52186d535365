//! [`ScanInput`]: the arguments of a scan, from which it is made now or, from its pickle, again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::scan::Scan;
use super::send::Client;
use super::settings::ReadSettings;
use crate::auth::Checked;
use crate::data::{DecodeSettings, Query, QueryInput, Shape};
use crate::error::{Error, Kind, Result};

const END_HINT: &str = "end was left out, so it is now less the settle lag, floored to the bucket \
                        (§4.5.1). Give an earlier start, a smaller interval or lag, or an end.";

/// The arguments of a scan, without its client and its bookmark.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ScanInput {
    /// What to read.
    pub query: QueryInput,
    /// What the user knows about the pages.
    pub shape: Shape,
    /// The members to keep as columns.
    pub extra_columns: Vec<String>,
    /// The settings of the read.
    pub settings: ReadSettings,
}

impl ScanInput {
    /// The scan, with its end fixed now as [`Client::end`] says; and warnings if the end is in the
    /// future, or a bound is off the grid.
    ///
    /// # Errors
    /// As [`Client::end`] and [`ScanInput::scan`].
    pub(crate) fn scan_from_now(
        mut self,
        client: &Client,
        lag: Option<Duration>,
    ) -> Result<Checked<Scan>> {
        let (start, given) = (self.query.start, self.query.end);
        let end = client.end(given, lag, self.query.interval_seconds)?;
        self.query.end = Some(end.at);
        let value = self.scan(client).map_err(|error| {
            let too_late = given.is_none() && start.is_some_and(|start| start >= end.at);
            if too_late { error.with_hint(END_HINT) } else { error }
        })?;
        let warnings = end.warning().into_iter().chain(value.query().grid_warning());
        Ok(Checked { warnings: warnings.collect(), value })
    }

    /// The scan, with the end as it is.
    ///
    /// # Errors
    /// As [`Query::new`] and [`DecodeSettings::for_query`].
    pub(crate) fn scan(self, client: &Client) -> Result<Scan> {
        let query = Query::new(self.query)?;
        let decode = DecodeSettings::for_query(&query, self.shape, self.extra_columns)?;
        Ok(Scan::new(client.clone(), query, decode, self.settings))
    }
}

/// The error of a scan whose start was left out (K16): `None` must be written on purpose.
pub(crate) fn start_left_out() -> Error {
    let message = "start= is left out: without it the service decides where the points begin.";
    Error::new(Kind::QueryError, message).with_hint(
        "That may be years ago, and each page costs a request of the daily allowance. Write \
         start=\"2026-11-01\" (a day in UTC) or a time, or start=None to let the service decide.",
    )
}

impl From<&Scan> for ScanInput {
    fn from(scan: &Scan) -> Self {
        let DecodeSettings { shape, extra_columns, .. } = scan.decode_settings().clone();
        let (query, settings) = (scan.query().input().clone(), scan.read_settings().clone());
        Self { query, shape, extra_columns, settings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::test_harness::{credential, noon};
    use crate::client::ClientSettings;
    use crate::http::BaseUrl;

    fn input(start: &str, end: Option<&str>) -> ScanInput {
        let time = |text: &str| text.parse().expect("a time");
        let query = QueryInput {
            start: Some(time(start)),
            end: end.map(time),
            interval_seconds: Some(60),
            ..QueryInput::default()
        };
        ScanInput { query, ..ScanInput::default() }
    }

    #[test]
    fn the_end_of_a_scan_is_fixed_or_explained() {
        let base = BaseUrl::parse("http://127.0.0.1:9", false).expect("an address");
        let mut settings = ClientSettings::new(base, credential());
        settings.clock = noon();
        let now = settings.clock.wall();
        let client = Client::new(settings).expect("settings");
        let scan = |start, end| input(start, end).scan_from_now(&client, None);

        let Checked { value, warnings } = scan("2020-01-01T00:00:00Z", None).expect("a scan");
        assert!(value.query().end().expect("an end") < now && warnings.is_empty());
        let again = ScanInput::from(&value).scan(&client).expect("a scan");
        assert_eq!(again.query(), value.query());

        let far = scan("2020-01-01T00:00:00Z", Some("2100-01-01T00:00:00Z")).expect("a scan");
        assert!(far.warnings[0].starts_with("end=2100-01-01T00:00:00Z lies ahead of now"));

        let error = scan("2100-01-01T00:00:00Z", None).expect_err("an empty range");
        assert_eq!(error.kind(), Kind::QueryError);
        assert_eq!(error.context().hint.as_deref(), Some(END_HINT));
    }
}
