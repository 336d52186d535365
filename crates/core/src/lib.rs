//! The core of siteline, a client of the Customer Data Service. It reads aggregated time series,
//! merges them and counts the requests. It knows nothing of Python: the extension in `src/` exposes it,
//! and the package `siteline-sandbox` is the server for tests.
//!
//! The path of the data:
//!
//! ```text
//! Query -> Chain -> (allowance, token, retry) one request -> bytes -> decode -> PointColumns -> Page -> Python
//! ```
//!
//! The modules, lowest first. A module uses only the modules that its row names, and the package
//! `siteline-base`: `clock`, `lock` and `arrow`:
//!
//! | module | contents | uses |
//! |---|---|---|
//! | `fork` | values that belong to one process | - |
//! | `system` | what the system refuses: I/O errors in words, threads | fork |
//! | `files` | who may use a file, files made with an owner and a mode, and the forms in which keys and certificates are saved | - |
//! | [`error`] | the error type, and which errors are transient | system |
//! | `written` | the value inside the quotation marks and white space of a variable | - |
//! | [`http`] | one attempt, retries, the allowance and its ledgers | fork, system, files, error, written |
//! | [`auth`] | keys, assertions, tokens, client certificates | fork, system, files, error, http |
//! | [`agent`] | tokens and an allowance that another process holds | fork, system, files, error, http, auth |
//! | [`duration`] | parser of durations that a user writes | error |
//! | [`data`] | query, cursor, chain, decoding, merging, reshaping | error, duration |
//! | [`preview`] | the lines of a table's first series, for display | data |
//! | [`client`] | the authorised request; scans; discovery | fork, system, error, http, auth, agent, data |
//! | [`store`] | one file with every version of every point | fork, system, files, error, data |
//! | [`sync`] | feeds: incremental reads into a target, with re-reads of revised ranges | fork, error, http, data, client, store |
//! | [`settings`] | a client's options from environment variables and profiles | system, error, written |
//!
//! Dependencies, and alternatives that were rejected:
//!
//! | for | used | rejected |
//! |---|---|---|
//! | HTTP | reqwest on hyper and rustls, with redirects, retries and decompression off | its own decompression: it hides `Content-Encoding` and the cause of a truncated body |
//! | gzip | libdeflate for a complete body of one member; flate2 over zlib-rs, streaming up to a cap, for every other | zlib-rs alone: a page takes 1.55 times as long to inflate and decode |
//! | bodies | a small pool of buffers (`http/buffers.rs`) | a new buffer for each: a collected read to pandas takes 1.04 to 1.15 times as long |
//! | numbers of the data | `double.rs` and `digits.rs` of `data/decode`: doubles of the lengths that sensors write | fast-float2: the decoder takes 1.24 times as long; lexical-core: 1.40 times |
//! | signatures | aws-lc-rs | jsonwebtoken: it signs only with its own key, so an external signer would need a second path |
//! | verifying, in the sandbox and in the tests of [`auth`] | jsonwebtoken, over the same aws-lc-rs: it shares no code with the signer | its `Validation`: it reads the system clock, and accepts an `aud` that is a list and a duplicate member |
//! | small error types | thiserror | thiserror for [`Error`] itself, whose text is composed of a kind and a context |
//! | retries | a policy of our own ([`http::Policy`]) | a retry crate: none supports our pauses, deadlines, quota and a new assertion for each attempt |
//! | locks | those of the standard library, wrapped in `lock` without poisoning | `parking_lot`: a free lock may be lost in a forked child (explained in `lock`) |
//! | owners, modes and locks of files on Unix, time since boot | nix | rustix: it locks no part of a file, and knows no names of users |
//! | files on Windows | the standard library; tempfile to rename a file only where nothing has the name, in one step; dunce for paths without `\\?\`, which other programs may not read | windows-sys: its functions are `unsafe`. A second name for a file, as on Unix: FAT has none |
//! | columns | arrow, exported through the C data interface, and as an IPC stream (arrow-ipc, without compression) | pyarrow: it is not needed to export a frame, nor to write that stream |
//! | JSON of the data | a strict pull parser of our own ([`data`]): bit-equal doubles, exact positions, no tree | serde: errors without a path, a number parsed before its column is known |
//! | profiles | toml, parsed into a table and checked member by member; strsim for "is … meant?" | serde's derive: its errors show values |
//! | the store | embedded `SQLite` (rusqlite): one transaction for a page, its bookmark and its coverage | a row for each point: blocks of a series' points are smaller, faster, and carry a checksum |
//! | certificates of services | the platform's verifier; rustls-native-certs for `SSL_CERT_FILE` and `SSL_CERT_DIR` | |
//! | certificates of clients | rustls; x509-cert to read them, p12-keystore for PKCS#12 | reqwest's `Identity`: it does not tell whether the service asked for a certificate, so a refused handshake would not say why |
//! | other JSON | `serde_json` | |
//! | instants, and the rules of time zones | jiff, with the database of the system, else its own: wheels run where there is none | |
//! | Python | pyo3 | |
//! | log records | log, whose records have fields, emitted by `src/bridge/logging.rs` | pyo3-log 0.13: it turns each field into text |
//! | asyncio: user coroutines that Rust awaits | pyo3-async-runtimes, without its features: `into_future_with_locals`, for async signers and async stores (`src/bridge/coroutine.rs`) | |
//! | asyncio: awaitables that Python awaits | a bridge of our own (`src/bridge/awaitable.rs`) | pyo3-async-runtimes 0.29: 8 of 40 scripts that exited during a call crashed, because it attaches to an interpreter that is finalizing; if the loop was closed it prints a traceback and sets `sys.last_value`; an awaitable whose result is `StopIteration` never completes; a panic becomes a separate exception without its message |
//! | the agent | hyper serves it; its clients make one connection for each call, over a blocking socket, and read the answer with httparse: at the end of a process and in a drop nothing can be awaited | reqwest: its pool is of one runtime |
//! | the socket that systemd hands over | listenfd | the standard library: `unsafe` |
//! | the sandbox | hyper itself, so that a fault can be written to the socket byte by byte; tokio-rustls and rcgen for TLS with an authority of its own | axum |

pub mod agent;
pub mod auth;
#[cfg(test)]
mod campaign;
pub mod client;
pub mod data;
pub mod duration;
pub mod error;
pub mod files;
pub mod fork;
pub mod http;
pub mod preview;
pub mod settings;
pub mod store;
pub mod sync;
pub mod system;
mod written;

use siteline_base::{arrow, clock, lock};

pub use error::{Error, Kind, Result};

/// The version of this crate and of the Python package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
