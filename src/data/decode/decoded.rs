//! [`Decoded`]: what a page says.

use crate::data::cursor::Cursor;
use crate::data::point_columns::PointColumns;
use crate::data::report::PageReport;

/// A decoded body.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// One row per point, in the order of the body; its envelopes are those of the body.
    pub points: PointColumns,
    /// The cursor of the next page; `None`: this is the last one.
    pub next_cursor: Option<Cursor>,
    /// What was assumed and seen.
    pub report: PageReport,
}
