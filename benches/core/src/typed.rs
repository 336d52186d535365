//! A page as structs that derive serde's `Deserialize`, for any JSON reader: texts are borrowed from
//! the body, members come in any order, unknown ones are skipped. A timestamp stays text.

use serde::Deserialize;

/// A body of the data endpoint.
#[derive(Debug, Deserialize)]
pub struct Page<'a> {
    /// The envelopes.
    #[serde(borrow)]
    pub series: Vec<Series<'a>>,
    /// The cursor of the next page.
    #[serde(rename = "nextCursor")]
    pub next_cursor: Option<&'a str>,
}

/// One envelope.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Series<'a> {
    /// Site.
    pub site_id: Option<&'a str>,
    /// Line.
    pub line_id: Option<&'a str>,
    /// Machine.
    pub machine_id: Option<&'a str>,
    /// Device.
    pub device_id: Option<&'a str>,
    /// Tag.
    pub tag_guid: Option<&'a str>,
    /// Its points.
    #[serde(borrow)]
    pub points: Vec<Point<'a>>,
}

/// One point.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Point<'a> {
    /// Start of the bucket, ISO 8601, not parsed.
    pub timestamp: &'a str,
    /// Aggregate of the bucket.
    pub value: Option<f64>,
    /// Least reading of the bucket.
    pub minimum: Option<f64>,
    /// Greatest reading of the bucket.
    pub maximum: Option<f64>,
    /// Readings in the bucket.
    pub sample_count: Option<i64>,
}
