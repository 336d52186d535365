//! Decodes a page's body into columns in one pass, for any order of members. Undocumented parts of
//! the interface are detected, or set with [`Shape`](crate::data::Shape). Documented parts are
//! checked strictly.
//!
//! The module `reader` reads the top level, `envelope` a series, and `points` its points. `names`,
//! `separator` and the modules for single values have fast paths for the most frequent forms.
//! `json` reads all other forms.

mod digits;
mod double;
pub(super) mod edge;
mod envelope;
mod identities;
mod ignored;
pub(crate) mod json;
mod known_series;
mod names;
mod number;
mod points;
mod quality;
mod reader;
mod separator;
mod settings;
mod string;
mod times;
pub(super) mod timestamp;

pub use settings::DecodeSettings;

use json::under;
use known_series::KnownSeries;
use reader::PageReader;

use crate::data::cursor::Cursor;
use crate::data::point_columns::PointColumns;
use crate::data::report::PageReport;
use crate::error::{Error, Kind, Result};

/// A decoded body.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// One row for each point, in the order of the body.
    pub points: PointColumns,
    /// `None` on the last page.
    pub next_cursor: Option<Cursor>,
    pub report: PageReport,
}

/// Minimum size of a point in JSON. It limits the initial capacity by the body's size.
const LEAST_POINT_BYTES: usize = 16;

/// Properties of a chain's earlier pages, which the next page usually shares. They make decoding
/// faster and change no result.
#[derive(Default)]
pub struct EarlierPages {
    /// The points of the last page, as initial capacity for the next.
    rows: usize,
    series: KnownSeries,
}

impl std::fmt::Debug for EarlierPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EarlierPages({} points, {} series)", self.rows, self.series.len())
    }
}

/// Returns `ProtocolError` with the JSON path if the body violates the interface, and
/// `TruncatedBody` if the JSON ends early.
pub fn decode(body: &[u8], settings: &DecodeSettings) -> Result<Decoded> {
    decode_after(body, settings, &mut EarlierPages::default())
}

/// Like [`decode`], after other pages of the same chain with the same settings.
pub fn decode_after(
    body: &[u8],
    settings: &DecodeSettings,
    earlier: &mut EarlierPages,
) -> Result<Decoded> {
    if i32::try_from(body.len()).is_err() {
        return Err(Error::new(Kind::BodyTooLarge, "A page of 2 GiB or more cannot be decoded."));
    }
    let rows = earlier.rows.min(body.len() / LEAST_POINT_BYTES);
    let reader = PageReader::new(body, settings, rows, &mut earlier.series)?;
    let decoded = reader.page().map_err(|error| under(error, '$'))?;
    earlier.rows = decoded.points.rows();
    Ok(decoded)
}

#[cfg(test)]
mod layout_tests;
#[cfg(test)]
pub(super) mod tests;
