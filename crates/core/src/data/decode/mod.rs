//! Decodes a page's body into columns (§2.3), in one pass for any order of members. What the interface
//! document leaves open is detected or set with [`Shape`](crate::data::Shape); what it specifies is
//! checked strictly.
//!
//! | file | reads |
//! |---|---|
//! | reader | the top level: the cursor, the array of series |
//! | envelope | a series: its ids, its points |
//! | known_series | nothing: recognises the envelopes of series of earlier pages |
//! | points | the points, most of them in place |
//! | names, separator | a member's name and the bytes before it |
//! | times, numeral | a point's timestamp, number and count, in all accepted forms |
//! | timestamp, number, string, ignored | one value |
//! | json | any JSON, strictly |
//! | quality | nothing: counts unusual points |
//! | edge | only the cursor, before the rest is decoded |

mod decoded;
mod digits;
mod double;
pub(super) mod edge;
mod envelope;
mod identities;
mod ignored;
mod json;
mod known_series;
mod names;
mod number;
mod numeral;
mod points;
mod quality;
mod reader;
mod separator;
mod settings;
mod string;
mod times;
pub(super) mod timestamp;

pub use decoded::Decoded;
pub use settings::DecodeSettings;

use json::under;
use known_series::KnownSeries;
use reader::PageReader;

use crate::error::{Error, Kind, Result};

/// The smallest size of a point in JSON, which limits the initial capacity by the body's size.
const LEAST_POINT_BYTES: usize = 16;

/// What the earlier pages of a chain were like, which the next one mostly is too: their number of points,
/// and their series. It makes decoding faster and changes no result.
#[derive(Default)]
pub struct EarlierPages {
    /// The number of points of the last one: the initial capacity for the next.
    rows: usize,
    series: KnownSeries,
}

impl std::fmt::Debug for EarlierPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EarlierPages({} points, {} series)", self.rows, self.series.len())
    }
}

/// Decodes one body of the data endpoint.
///
/// # Errors
/// `Kind::ProtocolError` with the JSON path if the body violates the interface; `Kind::TruncatedBody`
/// if the JSON ends early (H8).
pub fn decode(body: &[u8], settings: &DecodeSettings) -> Result<Decoded> {
    decode_after(body, settings, &mut EarlierPages::default())
}

/// Like [`decode`], after other pages of the same chain, decoded with the same settings.
///
/// # Errors
/// As [`decode`].
pub fn decode_after(
    body: &[u8],
    settings: &DecodeSettings,
    earlier: &mut EarlierPages,
) -> Result<Decoded> {
    if i32::try_from(body.len()).is_err() {
        return Err(Error::new(Kind::BodyTooLarge, "a page of 2 GiB or more cannot be decoded"));
    }
    let rows = earlier.rows.min(body.len() / LEAST_POINT_BYTES);
    let reader = PageReader::new(body, settings, rows, &mut earlier.series)?;
    let decoded = reader.page().map_err(|error| under(error, '$'))?;
    earlier.rows = decoded.points.rows();
    Ok(decoded)
}

#[cfg(test)]
mod earlier_tests;
#[cfg(test)]
mod layout_tests;
#[cfg(test)]
pub(super) mod tests;
