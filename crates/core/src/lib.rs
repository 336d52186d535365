//! The core of siteline, a client of the Customer Data Service. It reads aggregated time series,
//! merges them and counts the requests. It does not depend on Python: the extension in `src/`
//! exposes it to Python. The crate `siteline-sandbox` is the server for tests.
//!
//! The path of the data:
//!
//! ```text
//! Query -> Chain -> (allowance, token, retry) one request -> bytes -> decode -> PointColumns
//!     -> Page -> Python
//! ```
//!
//! The modules, lowest first. A module uses only the modules in its row, and the crate
//! `siteline-base` (`clock`, `lock` and `arrow`):
//!
//! | module | contents | uses |
//! |---|---|---|
//! | `fork` | values that belong to one process | - |
//! | `system` | descriptions of I/O errors; threads for blocking work | fork |
//! | `files` | access rights of files, files created with an owner and a mode, and the formats of keys and certificates | - |
//! | [`error`] | the error type, and which errors are transient | system |
//! | `written` | removes quotation marks and white space around the value of a variable | - |
//! | [`http`] | one attempt, retries, the allowance and its ledgers | fork, system, files, error, written |
//! | [`auth`] | keys, assertions, tokens, client certificates | fork, system, files, error, http |
//! | [`agent`] | tokens and an allowance that another process holds | fork, system, files, error, http, auth |
//! | [`duration`] | parser of the durations that users write | error |
//! | [`data`] | query, cursor, chain, decoding, merging, reshaping | error, duration |
//! | [`preview`] | the lines of a table's first series, for display | data |
//! | [`client`] | the authorised request; scans; discovery | fork, system, error, http, auth, agent, data |
//! | [`store`] | one `SQLite` file with every version of every point | fork, system, files, error, data |
//! | [`sync`] | feeds: incremental reads into a target, with re-reads of revised ranges | fork, error, http, data, client, store |
//! | [`settings`] | a client's options from environment variables and profiles | system, files, error, written |
//!
//! Dependencies, and alternatives that were measured or tried, and rejected:
//!
//! | for | used | rejected |
//! |---|---|---|
//! | HTTP | reqwest on hyper and rustls, with redirects, retries and decompression off | reqwest's decompression: it hides `Content-Encoding` and the cause of a truncated body |
//! | gzip | libdeflate for a complete body with one gzip member; otherwise flate2 with zlib-rs, which streams up to a limit | only zlib-rs: it takes 1.55 times as long to inflate and decode a page |
//! | bodies | a small pool of buffers (`http/buffers.rs`) | a new buffer for each body: a collected read to pandas takes 1.04 to 1.15 times as long |
//! | numbers of the data | `double.rs` and `digits.rs` of `data/decode`, optimised for the usual lengths of sensor values | fast-float2: the decoder takes 1.24 times as long; lexical-core: 1.40 times |
//! | signatures | aws-lc-rs | jsonwebtoken: it signs only with its own key, so an external signer would need a second path |
//! | verification, in the sandbox and in the tests of [`auth`] | jsonwebtoken, also on aws-lc-rs: it shares no other code with the signer | its `Validation`: it reads the system clock, and accepts duplicate members and an `aud` that is a list |
//! | small error types | thiserror | thiserror for [`Error`] itself: its message consists of a kind and a context |
//! | retries | our own policy ([`http::Policy`]) | a retry crate: none supports our pauses, deadlines, quota and a new assertion for each attempt |
//! | locks | the locks of the standard library, wrapped in `lock` without poisoning | `parking_lot`: a free lock may be lost in a forked child (explained in `lock`) |
//! | owners, modes and locks of files on Unix, time since boot | nix | rustix: it cannot lock a part of a file, and cannot look up user names |
//! | files on Windows | the standard library; tempfile to rename a file atomically if the new name is unused; dunce for paths without `\\?\`, which some programs cannot read | windows-sys: its functions are `unsafe`. A second link to a file, as on Unix: FAT has no links |
//! | columns | arrow, exported through the C data interface, and as an IPC stream (arrow-ipc, without compression) | pyarrow: neither the export nor the stream needs it |
//! | JSON of the data | our own strict pull parser ([`data`]): bit-equal doubles, exact positions, no tree | serde: errors without a path; it parses a number before its column is known |
//! | profiles | toml, parsed into a table and checked member by member; strsim to suggest names | serde's derive: its errors show values |
//! | the store | embedded `SQLite` (rusqlite): one transaction for a page, its bookmark and its coverage | a row for each point: blocks of a series' points are smaller and faster, and have a checksum |
//! | certificates of services | the platform's verifier; rustls-native-certs for `SSL_CERT_FILE` and `SSL_CERT_DIR` | |
//! | certificates of clients | rustls; x509-cert to read them, p12-keystore for PKCS#12 | reqwest's `Identity`: it does not report whether the service requested a certificate, so the error of a refused handshake could not give the reason |
//! | other JSON | `serde_json` | |
//! | instants and time zones | jiff, with the system's database, or with its own if the system has none | |
//! | Python | pyo3 | |
//! | log records | log, with fields in the records, which `src/bridge/logging.rs` passes to `logging` | pyo3-log 0.13: it converts each field to text |
//! | asyncio: calls that Python awaits, coroutines of users | our own bridge (`src/bridge/event_loop.rs`) | pyo3-async-runtimes 0.29: 8 of 40 scripts that exited during a call crashed, because it attaches to an interpreter that is finalizing; if the loop is closed, it prints a traceback and sets `sys.last_value`; an awaitable that returns `StopIteration` never completes; a panic becomes a separate exception without its message |
//! | the agent | one line of JSON for a request and one for its answer; a client opens a connection with a blocking socket for each call, because nothing can be awaited at the end of a process or in a drop | HTTP: nobody else speaks to an agent, and a browser cannot be told from a client without more checks |
//! | the socket that systemd passes | listenfd | the standard library: `unsafe` |
//! | the sandbox | hyper itself, so that a fault can be written to the socket byte by byte; tokio-rustls and rcgen for TLS with the sandbox's own authority | axum |

pub mod agent;
pub mod auth;
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
#[cfg(test)]
mod test_kit;
mod written;

use siteline_base::{arrow, clock, lock};

pub use error::{Error, Kind, Result};

/// The version of this crate and of the Python package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
