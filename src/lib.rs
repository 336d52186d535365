//! The core of siteline: aggregated time series of the Customer Data Service, complete, merged and
//! counted. It knows no Python; the feature `python` adds the thin layer that does.
//!
//! The data's path, in one line:
//!
//! ```text
//! Query -> Chain -> (allowance, token, retry) one request -> bytes -> decode -> PointColumns -> Page -> Python
//! ```
//!
//! The rooms, from the ground up (a room knows only those above it in this list that are named):
//!
//! | room | holds | knows |
//! |---|---|---|
//! | `fork` | what belongs to one process | - |
//! | `lock` | locks without poison | - |
//! | [`error`] | the one error type, and what is transient | - |
//! | [`clock`] | time, and the service's time once learnt | lock |
//! | [`http`] | one attempt, retries, the allowance and its ledgers | fork, lock, error, clock |
//! | [`auth`] | keys, assertions, tokens | fork, lock, error, clock, http |
//! | [`data`] | query, cursor, chain, decoding, merging | lock, error |
//! | [`preview`] | the lines of a table's first series, for display | data |
//! | [`duration`] | durations that a user writes | error |
//! | [`client`] | the authorised send; scans; discovery | fork, lock, error, clock, http, auth, data |
//! | [`store`] | one file: every version of every point | fork, lock, error, data |
//! | [`sync`] | feeds kept right while the service revises its data | fork, lock, error, clock, http, data, client, store |
//! | [`settings`] | what variables and a profile say about a client | error |
//! | [`sandbox`] | the service itself, as an independent witness | lock, clock |
//! | `python` | the Python layer, behind its feature | all |
//!
//! Chosen parts, and parts left out:
//!
//! | for | we took | and not |
//! |---|---|---|
//! | HTTP | reqwest on hyper and rustls, its redirects, retries and decompression off | its own decompression: it hides `Content-Encoding`, and why a body broke off |
//! | gzip | libdeflate for a body that is whole and of one member; flate2 over zlib-rs as the bytes come, up to a cap, for every other | zlib-rs alone: a page takes 1.55 times as long to inflate and decode |
//! | bodies | a small pool of buffers (`http/buffers.rs`) | a new buffer for each: a collected read to pandas takes 1.04 to 1.15 times as long |
//! | numbers of the data | `double.rs` and `digits.rs` of `data/decode`: doubles of the lengths that sensors write | fast-float2: the whole decoder takes 1.24 times as long; lexical-core: 1.40 times |
//! | signatures | aws-lc-rs | jsonwebtoken: it signs with a key that it holds, so a vault's callable would need a second path |
//! | verifying, in the sandbox and in the tests of [`auth`] | jsonwebtoken, over the same aws-lc-rs: the witness shares no code with the signer | its `Validation`: it reads the machine's clock, and takes an `aud` that is a list and a member that comes twice |
//! | small error types | thiserror | for [`Error`] itself, whose text comes of a kind and a context |
//! | retries | one policy of ours ([`http::Policy`]) | a retry crate: pauses, deadlines, quota and fresh assertions are what it would have to be taught |
//! | locks | the standard library's, in `lock` without their poison | `parking_lot`: a free lock may be lost in a forked child (`lock` says how) |
//! | columns | arrow, exported by the C data interface | pyarrow: it is not needed to hand over a frame |
//! | JSON of the data | a strict pull parser of ours ([`data`]): bit-equal doubles, exact positions, no tree | serde: errors without a path, a number read before its column is known |
//! | profiles | toml, read into a table and checked member by member; strsim for "is … meant?" | serde's derive: its errors show values |
//! | the store | `SQLite` inside (rusqlite): one transaction for a page, its bookmark and its coverage | a row for each point: blocks of a series' points are smaller, faster, and carry a checksum |
//! | certificates | the platform's verifier; rustls-native-certs for `SSL_CERT_FILE` and `SSL_CERT_DIR` | |
//! | JSON of all else | `serde_json` | |
//! | Python | pyo3, pyo3-log for the shape of a record | |
//! | asyncio: coroutines of the user's that Rust awaits | pyo3-async-runtimes, without its features: `into_future_with_locals`, for async signers and async stores (`python/bridge/coroutine.rs`) | |
//! | asyncio: awaitables that Python awaits | a bridge of ours (`python/bridge/awaitable.rs`) | pyo3-async-runtimes 0.29, tried: 8 of 40 scripts that ended with calls under way crashed, for it attaches to an interpreter that ends; where the loop was closed meanwhile it prints a traceback and sets `sys.last_value`; an awaitable whose outcome is `StopIteration` never ends; a panic is an exception of its own, without its words |
//! | the sandbox | hyper itself, so that a fault can be written to the socket byte by byte | axum |

pub mod auth;
pub mod client;
pub mod clock;
pub mod data;
pub mod duration;
pub mod error;
mod fork;
pub mod http;
mod lock;
pub mod preview;
pub mod sandbox;
pub mod settings;
pub mod store;
pub mod sync;

#[cfg(feature = "python")]
mod python;

pub use error::{Error, Kind, Result};

/// The version of this crate and of the Python package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
