//! The client: the authorised send, and what is read through it.
//!
//! | file | noun |
//! |---|---|
//! | `send` | the client: who asks, with what, and in which order |
//! | `settings` | what makes a client, and how a scan is read |
//! | `spending` | what one read spends of the allowance |
//! | `reply` | what a reply to a data or discovery request means |
//! | `end` | where a query ends that names no end |
//! | `background` | work that goes on beside whoever wants its outcome |
//! | `background_call` | a call that a task begins and whoever wants its outcome goes on with |
//! | `page_request` | one page asked for, in place or in the background |
//! | `page_stream` | the pages of one chain, at most one of them prefetched |
//! | `progress` | how far a read has come |
//! | `density` | pages that a range is expected to take |
//! | `table` | what was read, merged; several tables as one |
//! | `scan` | a read that has not happened yet |
//! | `split` | a range cut into parts |
//! | `collect` | the whole of a scan, read once |
//! | `gather` | several scans read side by side |
//!
//! From `scan.collect()` to a request: [`collect::CollectOnce::step`], [`page_stream::PageStream::next`],
//! [`Client::get`].

pub mod background;
mod background_call;
pub mod collect;
pub mod density;
mod end;
pub mod gather;
pub mod page_request;
pub mod page_stream;
pub mod progress;
mod reply;
pub mod scan;
mod send;
mod settings;
mod spending;
pub mod split;
pub mod table;

pub use self::end::End;
pub use self::send::{Client, DATA_PATH, DISCOVERY_PATH};
pub use self::settings::{ClientSettings, ReadSettings};
pub use self::spending::Spending;

#[cfg(test)]
mod tests;
