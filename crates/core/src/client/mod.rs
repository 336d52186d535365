//! The client: authorised requests, page streams and scans.
//!
//! Call path of `scan.collect()`: [`collect::CollectOnce::step`],
//! [`page_stream::PageStream::next`], [`Client::get`].

pub mod background;
pub mod chains;
pub mod collect;
pub(crate) mod density;
mod discovery_body;
mod identity;
mod listed;
mod naming;
pub(crate) mod page_request;
mod page_sizes;
pub mod page_stream;
pub mod progress;
mod reply;
mod request_length;
mod running_steps;
pub mod scan;
mod scan_input;
mod seen;
mod send;
mod settings;
mod spending;
pub mod split;
pub mod table;

pub use self::listed::ListedIds;
pub use self::naming::{NamesFor, ReadNames, keep_names, names_are_due};
pub use self::scan_input::ScanInput;
pub use self::send::{Client, DATA_PATH};
pub use self::settings::{ClientSettings, ReadSettings};
pub(crate) use self::spending::SharedPause;
pub use self::spending::Spending;

#[cfg(test)]
pub(crate) mod test_idle;
#[cfg(test)]
mod tests;
