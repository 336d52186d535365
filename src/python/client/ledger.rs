//! Which ledger a client counts in.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::client::ClientSettings;
use crate::error::{Error, Kind};
use crate::http::{DefaultLedger, FileLedger, Integration, Ledger};
use crate::python::bridge::errors::raise;
use crate::python::bridge::process::detached;
use crate::settings::Surroundings;

/// The ledger of a client with these settings; `None`: memory. A service on loopback and a client with
/// a `clock` are for tests: they count in memory unless a path is given. The path is made absolute in
/// the keywords that are pickled.
pub(crate) fn choose(
    pickled: &Bound<'_, PyDict>,
    settings: &ClientSettings,
) -> PyResult<Option<Arc<dyn Ledger>>> {
    let py = pickled.py();
    let integration = Integration::new(settings.base_url.as_str(), settings.credential.subject());
    if let Some(path) = pickled.get_item("ledger")? {
        let path: PathBuf = path.extract()?;
        if path.as_os_str().is_empty() {
            return Err(raise(py, &Error::new(Kind::ConfigError, "ledger= is an empty path.")));
        }
        let opened = detached(py, || FileLedger::open(&path, integration, settings.terms()))?;
        let ledger = opened.map_err(|error| raise(py, &error))?;
        pickled.set_item("ledger", ledger.path().as_os_str())?;
        return Ok(Some(Arc::new(ledger)));
    }
    if settings.base_url.is_loopback() || settings.clock.is_manual() {
        return Ok(None);
    }
    let path = Surroundings::of_process().state_file(&integration.file_name());
    let usual = DefaultLedger::new(path.as_deref(), integration, settings.terms());
    Ok(Some(Arc::new(usual)))
}
