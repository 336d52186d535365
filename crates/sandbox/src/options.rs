//! The options of a sandbox: limits of the service, and a switch for each thing that the interface
//! document leaves open.

use serde::Deserialize;

use super::error::SandboxError;

/// How a sandbox behaves. `Options::default()` is a service that follows every rule of the document
/// and has generous limits if the document gives no number.
///
/// It can be deserialized from the keywords of Python's `Sandbox(...)` and `Variant(...)`.
/// [`Sandbox::start`](super::Sandbox::start) checks the values.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub struct Options {
    /// `None` or 0: any free port.
    pub port: Option<u16>,
    /// Seed of the generated plant: the same seed gives the same series, values and delays.
    pub seed: u64,
    /// Whether an enrolled integration is approved at once. Otherwise it must wait for
    /// [`Sandbox::approve`](super::Sandbox::approve), as real ones do (§1).
    pub approved: bool,
    /// Token requests allowed to one integration in any 60 seconds (§5.4).
    #[serde(rename = "token_rate")]
    pub token_requests_per_minute: u32,
    /// Data requests allowed to one integration in one UTC day (§8); `None`: no limit.
    pub daily_allowance: Option<u64>,
    /// How far the caller's clock may run ahead in `iat` and `nbf`, in seconds.
    #[serde(skip)]
    pub leeway_seconds: i64,
    /// The page size of requests without `pageSize`, at most [`Options::maximum_page_size`].
    #[serde(rename = "page_size")]
    pub default_page_size: u32,
    /// Largest `pageSize`.
    #[serde(rename = "max_page_size")]
    pub maximum_page_size: u32,
    /// The default bucket width of queries, in seconds; loaded data set another.
    #[serde(rename = "interval")]
    pub default_interval_seconds: u32,
    /// Largest `aggregationIntervalSeconds`.
    #[serde(rename = "max_interval")]
    pub maximum_interval_seconds: u32,
    /// Longest time range of one query, in seconds.
    #[serde(rename = "max_range")]
    pub maximum_range_seconds: u32,
    /// Whether generated data arrive late and are revised. Otherwise all points are final and
    /// available two minutes after their bucket.
    #[serde(rename = "late")]
    pub lateness: bool,
    /// Records every byte that clients send. The bytes contain assertions and tokens.
    pub record_wire: bool,
    /// Whether the service speaks TLS, with a certificate of an authority of its own; or the only
    /// version that it offers. [`Options::mutual_tls`] implies it.
    pub tls: TlsOption,
    /// Whether the service is platform-managed (§5.6), and the purpose of client certificates.
    pub mutual_tls: Option<MutualMode>,
    /// How it refuses a client certificate.
    pub certificate_refusal: CertificateRefusal,
    /// Runs each poll of the service's tasks; a poll never waits. A caller can use it to pause the
    /// service between two polls, for example before a fork.
    #[serde(skip)]
    pub take_step: fn(&mut dyn FnMut()),

    /// Name of the top-level array of series envelopes (§2.3).
    pub array: String,
    /// How a bucket timestamp is written.
    pub timestamps: TimestampForm,
    /// The order of the points, in which a cursor is a position (§4.4.6).
    pub order: PointOrder,
    /// The unit of `pageSize`.
    pub page_counts: PageCounts,
    /// The most buckets in one envelope, if pages count envelopes.
    pub envelope_points: u32,
    /// Whether a bucket that begins at `to` belongs to the range.
    #[serde(rename = "end_inclusive")]
    pub to_inclusive: bool,
    /// Status of `invalid_client`: 401 or 400.
    pub invalid_client_status: u16,
    /// Status of `temporarily_unavailable`: 503, 400 or 500.
    pub unavailable_status: u16,
    /// Body of errors on discovery and data.
    pub error_body: ErrorBody,
    /// Adds members that the document does not name, at every level.
    pub extra_members: bool,
    /// Writes ids that are integers as JSON numbers, and gives such ids to the machines, devices
    /// and tags of the generated plant.
    pub integer_ids: bool,
    /// Omits members of points that are null.
    pub omit_nulls: bool,
    /// Omits `nextCursor` on the last page, although the document promises null.
    pub omit_last_cursor: bool,
    /// Writes JSON with spaces and line breaks.
    pub spaced: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: None,
            seed: 7,
            approved: true,
            token_requests_per_minute: 30,
            daily_allowance: None,
            leeway_seconds: 30,
            default_page_size: 1_000,
            maximum_page_size: 10_000,
            default_interval_seconds: 60,
            maximum_interval_seconds: 86_400,
            maximum_range_seconds: 366 * 86_400,
            lateness: true,
            record_wire: false,
            tls: TlsOption::Switch(false),
            mutual_tls: None,
            certificate_refusal: CertificateRefusal::Page,
            take_step: |step| step(),
            array: "series".to_owned(),
            timestamps: TimestampForm::IsoZ,
            order: PointOrder::SeriesThenTime,
            page_counts: PageCounts::Points,
            envelope_points: 60,
            to_inclusive: false,
            invalid_client_status: 401,
            unavailable_status: 503,
            error_body: ErrorBody::OAuth,
            extra_members: false,
            integer_ids: false,
            omit_nulls: false,
            omit_last_cursor: false,
            spaced: false,
        }
    }
}

impl Options {
    pub(super) fn speaks_tls(&self) -> bool {
        self.mutual_tls.is_some() || self.tls != TlsOption::Switch(false)
    }

    pub(super) fn page_size(&self) -> u32 {
        self.default_page_size.min(self.maximum_page_size)
    }

    /// Checks the values. The errors name the keywords of Python.
    pub(super) fn check(&self) -> Result<(), SandboxError> {
        if self.mutual_tls.is_none() && self.certificate_refusal == CertificateRefusal::Alert {
            let text = "certificate_refusal= belongs to mutual_tls=.";
            return Err(SandboxError::new(text));
        }
        let at_least_1 = [
            ("max_page_size", self.maximum_page_size),
            ("page_size", self.default_page_size),
            ("interval", self.default_interval_seconds),
            ("max_interval", self.maximum_interval_seconds),
            ("max_range", self.maximum_range_seconds),
            ("envelope_points", self.envelope_points),
        ];
        if let Some((name, _)) = at_least_1.iter().find(|(_, value)| *value == 0) {
            return Err(SandboxError::new(format!("{name}= must be at least 1.")));
        }
        if ["", "nextCursor", "generatedBy"].contains(&self.array.as_str()) {
            let text = format!("array={:?} is not a valid name for the array.", self.array);
            return Err(SandboxError::new(text));
        }
        let statuses = [
            ("invalid_client_status", self.invalid_client_status),
            ("unavailable_status", self.unavailable_status),
        ];
        match statuses.iter().find(|(_, status)| !(400..600).contains(status)) {
            Some((name, status)) => {
                Err(SandboxError::new(format!("{name}={status} is not an error status.")))
            }
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum TlsOption {
    /// TLS 1.2 and 1.3, or none.
    Switch(bool),
    /// Only one version.
    Version(TlsVersion),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum TlsVersion {
    #[serde(rename = "1.2")]
    V12,
    #[serde(rename = "1.3")]
    V13,
}

/// The document does not show this purpose of a client certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MutualMode {
    /// It authorises discovery and data requests, without tokens.
    Data,
    /// It authenticates token requests (RFC 8705), and the tokens are bound to it.
    Token,
}

/// How a client certificate is refused that is missing, of another authority, or out of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CertificateRefusal {
    /// As nginx does: each request is answered with status 400 and an HTML page.
    Page,
    /// The handshake ends with an alert of TLS.
    Alert,
}

/// How a bucket timestamp is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum TimestampForm {
    /// `"2026-11-01T00:00:00Z"`
    #[serde(rename = "iso")]
    IsoZ,
    /// `"2026-11-01T00:00:00+00:00"`
    #[serde(rename = "iso_offset")]
    IsoOffset,
    /// `"2026-11-01T00:00:00.000Z"`
    #[serde(rename = "iso_fraction")]
    IsoFraction,
    /// `1793491200`
    #[serde(rename = "epoch_s")]
    EpochSeconds,
    /// `1793491200000`
    #[serde(rename = "epoch_ms")]
    EpochMilliseconds,
}

/// The order of the points in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum PointOrder {
    /// All points of one series, then the next series.
    #[serde(rename = "series")]
    SeriesThenTime,
    /// All series at one bucket, then the next bucket: each page may have every series.
    #[serde(rename = "time")]
    TimeThenSeries,
}

/// The unit of `pageSize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageCounts {
    /// Points, over all series.
    Points,
    /// Series envelopes, each of up to [`Options::envelope_points`] buckets.
    Envelopes,
}

/// The shape of an error body on discovery and data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorBody {
    /// `{"error": "...", "error_description": "..."}`
    OAuth,
    /// RFC 9457 `application/problem+json`.
    Problem,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(keywords: Value) -> Result<Options, String> {
        let options: Options = serde_json::from_value(keywords).map_err(|e| e.to_string())?;
        options.check().map(|()| options).map_err(|e| e.to_string())
    }

    #[test]
    fn keywords_are_read_and_missing_ones_have_their_defaults() {
        let keywords = json!({"token_rate": 5, "daily_allowance": null, "max_page_size": 10,
            "late": false, "timestamps": "epoch_ms", "order": "time", "error_body": "oauth"});
        let options = read(keywords).expect("options");
        assert_eq!((options.token_requests_per_minute, options.page_size()), (5, 10));
        assert_eq!(options.timestamps, TimestampForm::EpochMilliseconds);
        assert_eq!(options.order, PointOrder::TimeThenSeries);
        assert!(!options.lateness && options.approved && options.leeway_seconds == 30);
    }

    #[test]
    fn an_invalid_option_is_refused_by_name() {
        for (keywords, words) in [
            (json!({"colour": 1}), "`colour`"),
            (json!({"take_step": null}), "`take_step`"),
            (json!({"timestamps": "stardate"}), "`iso_offset`"),
            (json!({"page_size": 0}), "page_size= must be at least 1."),
            (json!({"array": "nextCursor"}), "array=\"nextCursor\""),
            (json!({"certificate_refusal": "alert"}), "certificate_refusal= belongs to"),
            (json!({"mutual_tls": "yes"}), "`token`"),
            (json!({"unavailable_status": 200}), "unavailable_status=200 is not an error status."),
        ] {
            let error = read(keywords).expect_err("refused");
            assert!(error.contains(words), "{error}");
        }
    }
}
