//! The data's path from a query to one table. The client sends the requests, so this module is
//! tested without a network.
//!
//! ```text
//! Query -> Chain -> request -> bytes -> decode -> Page{PointColumns} -> Merger ->
//! Merged{PointColumns}
//! ```

mod asked_time;
mod bookmark;
mod chain;
mod choice;
mod columns;
mod cursor;
pub mod decode;
mod difference;
mod grid;
mod instant;
mod local_time;
mod merge;
mod novelty;
mod page;
mod paged_columns;
mod point_columns;
pub mod query;
pub mod ranges;
pub mod report;
pub mod reshape;
mod schema;
mod selection;
mod sent_size;
mod shape;
mod table;
#[cfg(test)]
pub(crate) mod test_points;

pub(crate) use asked_time::form_fingerprint;
pub use asked_time::{AskedRange, AskedTime};
pub use bookmark::Bookmark;
pub(crate) use bookmark::{Fixed, Owner, WholeChain};
pub use chain::{Chain, Decoding};
pub(crate) use chain::{Link, PagingState, ends_chain, page_limit_reached};
pub use choice::Choice;
pub use cursor::Cursor;
pub use decode::{DecodeSettings, Decoded, decode};
pub use difference::Comparison;
pub use grid::spelled;
pub use instant::OUT_OF_RANGE;
pub use local_time::parse_instant_in;
pub(crate) use merge::Merger;
pub use merge::{MergeReport, Merged};
pub(crate) use novelty::mixed;
pub use page::Page;
pub use point_columns::{Codes, Envelope, Identity, PointColumns};
pub use query::{Query, QueryInput, bucket_width};
pub(crate) use query::{chains_fingerprint, origin_fingerprint};
pub use report::PageReport;
pub use schema::{COLUMN_NAMES, schema};
pub(crate) use schema::{batch, broken};
pub use selection::{Ids, Levels, MOST_CHAINS, NamedSeries, Selection};
pub use sent_size::SentSize;
pub use shape::{DiscoveryShape, MissingCursor, Shape, TimestampForm};
pub use table::TableBuilder;
