//! The data itself: what is asked ([`query`]), how pages follow each other ([`chain`]), what a page
//! says ([`mod@decode`]) and how pages become one table ([`merge`]).
//!
//! ```text
//! Query -> Chain -(Fetch)-> bytes -> json -> decode -> Page{PointColumns} -> Merger -> Merged{PointColumns}
//! ```
//!
//! The room knows [`crate::error`] only. Requests are sent by whoever implements
//! [`chain::Fetch`], so that all of it is proven without a network.

pub mod bookmark;
pub mod chain;
mod columns;
pub mod cursor;
pub mod decode;
mod digits;
mod double;
mod duration;
mod edge;
mod envelope;
mod held;
mod identities;
mod instant;
mod json;
pub mod merge;
mod names;
mod number;
mod numeral;
mod oddities;
pub mod page;
pub mod point_columns;
mod points;
pub mod preview;
pub mod query;
mod reader;
pub mod report;
mod separator;
pub mod shape;
mod string;
pub mod table;
mod times;
mod timestamp;

pub use bookmark::Bookmark;
pub use chain::{Chain, Decoding, Fetch, State};
pub use columns::{COLUMN_NAMES, schema};
pub use cursor::Cursor;
pub use decode::{DecodeSettings, Decoded, decode};
pub use duration::parse_duration;
pub use instant::parse_instant;
pub use merge::{MergeReport, Merged, Merger};
pub use page::Page;
pub use point_columns::{Envelope, Identity, PointColumns};
pub use preview::Preview;
pub use query::{Query, QueryInput};
pub use report::{Entry, PageReport};
pub use shape::{MissingCursor, Shape, TimestampForm};
pub use table::TableBuilder;
