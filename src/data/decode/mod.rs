//! Decodes a page's body into columns (§2.3), in one pass for any order of members. What the interface
//! document leaves open is detected or set with [`Shape`](crate::data::Shape); what it specifies is
//! checked strictly.
//!
//! | file | reads |
//! |---|---|
//! | reader | the top level: the cursor, the array of series |
//! | envelope | a series: its ids, its points |
//! | points | the points, most of them in place |
//! | names, separator | a member's name and the bytes before it |
//! | times, numeral | a point's timestamp, number and count, in all accepted forms |
//! | timestamp, number, string | one value |
//! | json | any JSON, strictly |
//! | quality | nothing: counts unusual points |
//! | edge | only the cursor, before the rest is decoded |

mod decoded;
mod digits;
mod double;
pub(super) mod edge;
mod envelope;
mod identities;
mod json;
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
use reader::PageReader;

use crate::error::{Error, Kind, Result};

/// The smallest size of a point in JSON, which limits the initial capacity by the body's size.
const LEAST_POINT_BYTES: usize = 16;

/// Decodes one body of the data endpoint.
///
/// # Errors
/// `Kind::ProtocolError` with the JSON path if the body violates the interface; `Kind::TruncatedBody`
/// if the JSON ends early (H8).
pub fn decode(body: &[u8], settings: &DecodeSettings) -> Result<Decoded> {
    decode_sized(body, settings, 0)
}

/// Like [`decode`], with initial capacity for `rows` points, the count of the last page.
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
