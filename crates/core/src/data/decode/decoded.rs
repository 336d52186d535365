//! [`Decoded`]: the result of decoding a body.

use crate::data::cursor::Cursor;
use crate::data::point_columns::PointColumns;
use crate::data::report::PageReport;

/// A decoded body.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// One row for each point, with the order and the envelopes of the body.
    pub points: PointColumns,
    /// The cursor of the next page; `None` on the last page.
    pub next_cursor: Option<Cursor>,
    /// What the decoder assumed and counted.
    pub report: PageReport,
}
