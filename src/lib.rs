//! The extension module `siteline._core`. It converts arguments and results, and waits for the
//! core only through [`bridge`].
//!
//! A module uses only the modules above it in this list:
//!
//! | module | contents |
//! |---|---|
//! | [`prelude`] | names that most modules use |
//! | [`bridge`] | the boundary to Python: runtime, signals, fork, exit, logs, exceptions |
//! | [`convert`] | conversion of values, records and columns from and to Python |
//! | [`files`] | files and folders |
//! | [`frame`] | everything tabular, in memory or streamed from a store |
//! | [`auth`] | keys and credentials |
//! | [`client`] | the client, its scans and their pages |
//! | [`store`] | a store and its points |
//! | [`sync`] | a sync and its plan |
//! | [`agent`] | the agent |
//! | [`sandbox`] | the service on loopback |

#![cfg_attr(not(feature = "sandbox"), expect(dead_code, reason = "only the sandbox uses it"))]
#![expect(clippy::needless_pass_by_value, reason = "PyO3 gives arguments by value")]

mod agent;
mod auth;
mod bridge;
mod client;
mod convert;
mod files;
mod frame;
mod prelude;
#[cfg(feature = "sandbox")]
mod sandbox;
mod store;
mod sync;

use pyo3::prelude::*;

/// The core of siteline. Everything public is exported by the package ``siteline``.
#[pymodule(gil_used = false)]
mod _core {
    #[cfg(feature = "sandbox")]
    #[pymodule_export]
    use super::sandbox::PySandbox;
    #[pymodule_export]
    use super::{
        agent::{_forbid_core_dumps, PyAgent},
        auth::{_excerpt, _is_key_text, _variable, CertificateHandle, CredentialHandle, KeyHandle},
        bridge::{call::Call, errors::_refusal},
        client::settings::_check,
        client::{_instrument, PyClient, once::_sources, records::_bookmark_pages, scan::PyScan},
        convert::clock::PyClock,
        files::{_create_folder, _paths, NewFile},
        frame::{Frame, zone_name},
        store::{_of_state, _store_path, StoreHandle},
        store::{feed::_feed, maintenance::_restore},
        sync::SyncHandle,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", siteline_core::VERSION)?;
        module.add("HAS_SANDBOX", cfg!(feature = "sandbox"))?;
        super::bridge::panics::keep_places();
        super::bridge::logging::install();
        super::bridge::process::watch(module)?;
        #[cfg(debug_assertions)]
        super::bridge::runtime::panic::export(module)?;
        module.as_any().delattr("__all__")
    }
}
