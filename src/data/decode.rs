//! A page's body into columns (§2.3), in one pass whatever the order of its members. What the
//! document leaves open is found by shape or stated by [`Shape`]; what the document does say is
//! held strictly.

use jiff::Timestamp;

use super::columns::COLUMN_NAMES;
use super::cursor::Cursor;
use super::json::under;
use super::point_columns::PointColumns;
use super::query::Query;
use super::reader::PageReader;
use super::report::{PageReport, shown_name};
use super::shape::Shape;
use crate::error::{Error, Kind, Result};

/// So many extra columns can be asked for.
const MOST_EXTRA_COLUMNS: usize = 50;
/// No point is written in fewer bytes than this, so that a capacity never passes the body's size.
const LEAST_POINT_BYTES: usize = 16;

/// What the decoder needs to know besides the body.
#[derive(Debug, Clone, Default)]
pub struct DecodeSettings {
    /// Names and forms.
    pub shape: Shape,
    /// Start of the query's range: epochs are recognised by it, points before it are counted.
    pub start: Option<Timestamp>,
    /// End of the query's range, exclusive.
    pub end: Option<Timestamp>,
    /// Bucket width, to count points off the grid.
    pub interval_seconds: Option<u32>,
    /// Unknown members to keep: of the point, else of its envelope; one Utf8 column of JSON text
    /// each.
    pub extra_columns: Vec<String>,
}

impl DecodeSettings {
    /// The settings for the pages of a query.
    ///
    /// # Errors
    /// `Kind::Config` for a shape or extra column that cannot be ([`DecodeSettings::check`]).
    pub fn for_query(query: &Query, shape: Shape, extra_columns: Vec<String>) -> Result<Self> {
        let (start, end) = (query.start(), query.end());
        let interval_seconds = query.interval_seconds();
        let settings = Self { shape, start, end, interval_seconds, extra_columns };
        settings.check()?;
        Ok(settings)
    }

    /// Refuses a shape with a name twice, and an extra column that is empty, repeated, one of the
    /// ten columns or a member that already has a column.
    ///
    /// # Errors
    /// `Kind::Config` naming the column.
    pub fn check(&self) -> Result<()> {
        self.shape.check()?;
        if self.extra_columns.len() > MOST_EXTRA_COLUMNS {
            let message = format!("extra_columns has more than {MOST_EXTRA_COLUMNS} names");
            return Err(Error::new(Kind::Config, message));
        }
        let members = self.shape.point_members();
        let identity = self.shape.identity.iter().map(String::as_str);
        let taken: Vec<&str> = COLUMN_NAMES
            .into_iter()
            .chain(members)
            .chain(identity)
            .chain([self.shape.points.as_str()])
            .collect();
        for (index, name) in self.extra_columns.iter().enumerate() {
            let why = if name.is_empty() {
                "is empty"
            } else if taken.contains(&name.as_str()) {
                "has a column already"
            } else if self.extra_columns[..index].contains(name) {
                "comes twice"
            } else {
                continue;
            };
            let message = format!("extra_columns: {:?} {why}", shown_name(name));
            return Err(Error::new(Kind::Config, message));
        }
        Ok(())
    }
}

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

/// Decodes one body of the data endpoint.
///
/// # Errors
/// `Kind::Protocol` with the JSON path for whatever breaks the interface; `Kind::TruncatedBody`
/// where the JSON ends early (H8).
pub fn decode(body: &[u8], settings: &DecodeSettings) -> Result<Decoded> {
    decode_sized(body, settings, 0)
}

/// As [`decode`], with room for so many points from the start: the count of the last page.
///
/// # Errors
/// As [`decode`].
pub fn decode_sized(body: &[u8], settings: &DecodeSettings, rows: usize) -> Result<Decoded> {
    if i32::try_from(body.len()).is_err() {
        return Err(Error::new(Kind::BodyTooLarge, "a page of 2 GiB or more cannot be decoded"));
    }
    let rows = rows.min(body.len() / LEAST_POINT_BYTES);
    PageReader::new(body, settings, rows)?.page().map_err(|error| under(error, '$'))
}

#[cfg(test)]
mod layout_tests;
#[cfg(test)]
pub(super) mod tests;
