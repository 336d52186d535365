//! Which ledger a client counts in, and the time of day at which its days begin.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTime};

use crate::client::ClientSettings;
use crate::error::{Error, Kind};
use crate::http::{Ledger, TimeOfDay};
use crate::python::conversions::{path_of, text};
use crate::python::errors::raise;
use crate::python::private_key::described;
use crate::python::runtime::detached;
use crate::python::settings::with_surroundings;
use crate::store::{FileLedger, Integration, UsualLedger};

/// What a client counts in.
pub(super) struct Chosen {
    /// `None`: memory.
    pub(super) ledger: Option<Arc<dyn Ledger>>,
    /// Its path, where one was given.
    pub(super) path: Option<PathBuf>,
}

/// The ledger of a client with these settings. A service on loopback, and a client on a clock of its
/// own, are for tests: they count in memory unless a path is given.
pub(super) fn choose(
    py: Python<'_>,
    given: Option<&Bound<'_, PyAny>>,
    settings: &ClientSettings,
) -> PyResult<Chosen> {
    let integration = Integration::new(settings.base_url.as_str(), settings.credential.subject());
    if let Some(given) = given {
        let path = path_of(given, "ledger")?;
        if path.as_os_str().is_empty() {
            return Err(raise(py, &Error::new(Kind::Config, "ledger= is an empty path.")));
        }
        let opened = detached(py, || FileLedger::at(&path, integration, settings.terms()))?;
        let ledger = opened.map_err(|error| raise(py, &error))?;
        let path = Some(ledger.path().to_owned());
        return Ok(Chosen { ledger: Some(Arc::new(ledger)), path });
    }
    if settings.base_url.is_loopback() || settings.clock.is_manual() {
        return Ok(Chosen { ledger: None, path: None });
    }
    let path = with_surroundings(|around| around.state_file(&integration.file_name()));
    let usual = UsualLedger::new(path.as_deref(), integration, settings.terms());
    Ok(Chosen { ledger: Some(Arc::new(usual)), path: None })
}

/// A time of day: text with a zone, or an aware `datetime.time`.
pub(super) fn time_of_day(given: &Bound<'_, PyAny>, name: &str) -> PyResult<TimeOfDay> {
    let py = given.py();
    let named = |error: Error| {
        let message = format!("{name}= {}", error.context().message);
        raise(py, &error.with(|context| context.message = message))
    };
    if let Ok(written) = given.cast::<PyString>() {
        return TimeOfDay::parse(&text(written, name, Kind::Config)?).map_err(named);
    }
    let Ok(time) = given.cast::<PyTime>() else {
        let what = described(given)?;
        return Err(PyTypeError::new_err(format!(
            "{name}= is text such as \"06:00Z\" or an aware datetime.time; this is {what}."
        )));
    };
    let offset = time.call_method0("utcoffset")?;
    if offset.is_none() {
        // So is one in a zone whose offset depends on the date.
        let hint = "Write when the service's day begins as \"06:00Z\", or with an offset.";
        let error = Error::new(Kind::Config, "has no fixed offset from UTC.").with_hint(hint);
        return Err(named(error));
    }
    let part = |of: &Bound<'_, PyAny>, name: &str| of.getattr(name)?.extract::<i64>();
    let seconds = part(time, "hour")? * 3_600 + part(time, "minute")? * 60 + part(time, "second")?;
    let ahead = part(&offset, "days")? * 86_400 + part(&offset, "seconds")?;
    TimeOfDay::new(seconds, ahead).map_err(named)
}
