//! The client: authorised requests, page streams and scans.
//!
//! | file | contents |
//! |---|---|
//! | `send` | the client, which sends authorised requests |
//! | `identity` | its credential, and what authorises a request |
//! | `settings` | the settings of a client and of a scan |
//! | `spending` | the requests of one read, and their limit |
//! | `reply` | replies to data and discovery requests, converted to errors |
//! | `request_length` | the hint of a refusal of a long request |
//! | `end` | the default end of a query |
//! | `background` | a task that runs concurrently with its caller |
//! | `background_call` | a call that a task starts and the waiting caller finishes |
//! | `page_request` | the request for one page, in place or in the background |
//! | `page_sizes` | the page size of reads that state none |
//! | `page_stream` | the pages of one chain, at most one of them prefetched |
//! | `progress` | the progress of a read |
//! | `density` | estimates of the number of pages |
//! | `listed` | what the discovery response listed |
//! | `discovery_body` | reads that response without a tree of its values |
//! | `naming` | the discovery request for the names of series in a read |
//! | `seen` | the series that pages had |
//! | `table` | a merged table; several tables as one |
//! | `scan` | a read that has not started |
//! | `scan_input` | the arguments of a scan |
//! | `split` | splits a range into parts |
//! | `collect` | the complete table of a scan, read once |
//! | `chains` | reads the chains of a scan concurrently |
//!
//! From `scan.collect()` to a request: [`collect::CollectOnce::step`], [`page_stream::PageStream::next`],
//! [`Client::get`].

pub mod background;
mod background_call;
pub mod chains;
pub mod collect;
pub(crate) mod density;
mod discovery_body;
mod end;
mod identity;
mod lessor;
mod listed;
mod naming;
pub(crate) mod page_request;
mod page_sizes;
pub mod page_stream;
pub mod progress;
mod reply;
mod request_length;
pub mod scan;
mod scan_input;
mod seen;
mod send;
mod settings;
mod spending;
pub mod split;
pub mod table;

pub use self::end::End;
pub use self::lessor::ClientLessor;
pub use self::listed::ListedIds;
pub use self::naming::{NamesFor, ReadNames, keep_names, names_are_due};
pub use self::scan_input::ScanInput;
pub use self::send::{Client, DATA_PATH};
pub use self::settings::ClientSettings;
pub use self::settings::ReadSettings;
pub(crate) use self::spending::SharedPause;
pub use self::spending::Spending;

#[cfg(test)]
pub(crate) mod test_idle;
#[cfg(test)]
mod tests;
