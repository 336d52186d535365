//! A page as typed structs that borrow from its body.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<'a> {
    #[serde(borrow)]
    pub(crate) series: Vec<Series<'a>>,
    pub(crate) next_cursor: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Series<'a> {
    pub(crate) site_id: &'a str,
    pub(crate) line_id: &'a str,
    pub(crate) machine_id: &'a str,
    pub(crate) device_id: &'a str,
    pub(crate) tag_guid: &'a str,
    #[serde(borrow)]
    pub(crate) points: Vec<Point<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Point<'a> {
    pub(crate) timestamp: &'a str,
    pub(crate) value: Option<f64>,
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) sample_count: Option<i64>,
}
