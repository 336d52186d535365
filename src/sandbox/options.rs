//! What a sandbox can be told at its start: limits of the service, and a switch for each thing that
//! the interface document leaves open ([`ServiceShape`]).

use std::time::Duration;

/// How a sandbox behaves. `Options::default()` is a service that keeps every rule of the document
/// and is generous where the document gives no number.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of the generated plant: the same seed gives the same series, values and delays.
    pub seed: u64,
    /// True: an enrolled integration may ask for tokens at once. False: it waits for
    /// [`Sandbox::approve`](super::Sandbox::approve), as real ones do (§1).
    pub approved: bool,
    /// Token requests allowed to one integration in any 60 seconds (§5.4).
    pub token_requests_per_minute: u32,
    /// Data requests allowed to one integration in one UTC day (§8); `None`: no limit.
    pub daily_allowance: Option<u64>,
    /// How far the caller's clock may run ahead in `iat` and `nbf`, in seconds.
    pub leeway_seconds: i64,
    /// Page size where the query names none.
    pub default_page_size: u32,
    /// Largest `pageSize`.
    pub maximum_page_size: u32,
    /// Bucket width in seconds where the query names none (loaded data set their own).
    pub default_interval_seconds: u32,
    /// Largest `aggregationIntervalSeconds`.
    pub maximum_interval_seconds: u32,
    /// Longest time range of one query.
    pub maximum_range: Duration,
    /// True: generated data arrive late and are revised; false: all are there, final, two minutes
    /// after their bucket.
    pub lateness: bool,
    /// Keep every byte that clients send, for wire checks. They hold assertions and tokens.
    pub record_wire: bool,
    /// How the service's thread takes each of its steps, none of which waits: for whoever has to hold
    /// it still between two of them.
    pub take_step: fn(&mut dyn FnMut()),
    /// What the document does not show.
    pub shape: ServiceShape,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 7,
            approved: true,
            token_requests_per_minute: 30,
            daily_allowance: None,
            leeway_seconds: 30,
            default_page_size: 1_000,
            maximum_page_size: 10_000,
            default_interval_seconds: 60,
            maximum_interval_seconds: 86_400,
            maximum_range: Duration::from_secs(366 * 86_400),
            lateness: true,
            record_wire: false,
            take_step: |step| step(),
            shape: ServiceShape::default(),
        }
    }
}

/// What the document leaves open, one switch each. A client must read all of them.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct ServiceShape {
    /// Name of the top-level array that holds the series envelopes (§2.3).
    pub array: String,
    /// How a bucket timestamp is written.
    pub timestamps: TimestampForm,
    /// The ordering that a cursor is a position in (§4.4.6).
    pub order: PointOrder,
    /// What `pageSize` counts.
    pub page_counts: PageCounts,
    /// Where pages count envelopes: most buckets in one envelope.
    pub envelope_points: u32,
    /// True: a bucket that begins at `to` belongs to the range.
    pub to_inclusive: bool,
    /// Status of `invalid_client`: 401 or 400.
    pub invalid_client_status: u16,
    /// Status of `temporarily_unavailable`: 503, 400 or 500.
    pub unavailable_status: u16,
    /// Body of errors on discovery and data.
    pub error_body: ErrorBody,
    /// Add members that the document does not name, at every level.
    pub extra_members: bool,
    /// Ids that are whole numbers are written as JSON numbers; the machines, devices and tags of
    /// the generated plant have such ids.
    pub integer_ids: bool,
    /// Members of points whose value is null are left out.
    pub omit_nulls: bool,
    /// The last page has no `nextCursor` at all, where the document promises null.
    pub omit_last_cursor: bool,
    /// JSON with spaces and line breaks.
    pub spaced: bool,
}

impl Default for ServiceShape {
    fn default() -> Self {
        Self {
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

/// How a bucket timestamp is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampForm {
    /// `"2026-11-01T00:00:00Z"`
    IsoZ,
    /// `"2026-11-01T00:00:00+00:00"`
    IsoOffset,
    /// `"2026-11-01T00:00:00.000Z"`
    IsoFraction,
    /// `1793491200`
    EpochSeconds,
    /// `1793491200000`
    EpochMilliseconds,
}

/// The order of the points over the whole chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointOrder {
    /// All points of one series, then the next series.
    SeriesThenTime,
    /// All series at one bucket, then the next bucket: a series is on every page.
    TimeThenSeries,
}

/// What `pageSize` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCounts {
    /// Points, over all series.
    Points,
    /// Series envelopes, each of up to [`ServiceShape::envelope_points`] buckets.
    Envelopes,
}

/// The shape of an error body on discovery and data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorBody {
    /// `{"error": "...", "error_description": "..."}`
    OAuth,
    /// RFC 9457 `application/problem+json`.
    Problem,
}
