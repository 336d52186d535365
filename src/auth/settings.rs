//! The credential that variables or a profile name.

use crate::convert::values::value_of;
use crate::prelude::*;
use siteline_core::settings::{CredentialSettings, Options};

pub(crate) fn from_settings(py: Python<'_>, settings: CredentialSettings) -> PyResult<Object<'_>> {
    warn(py, settings.check_command_file().or_raise()?.as_slice())?;
    let module = py.import("siteline.credentials")?;
    let place = PyDict::new(py);
    place.set_item("strict", false)?;
    if let Some(subject) = settings.subject {
        let assertions = PyDict::new(py);
        put(&place, &settings.parts)?;
        put(&assertions, &settings.options)?;
        let class = module.getattr("Credential")?;
        return class.call_method("_at", (subject, place, settings.kid), Some(&assertions));
    }
    place.set_item("client_id", py.None())?;
    put(&place, &settings.parts)?;
    module.getattr("MutualTls")?.call_method1("_at", (place,))
}

fn put(into: &Bound<'_, PyDict>, values: &Options) -> PyResult<()> {
    for (name, value) in values {
        into.set_item(name, value_of(into.py(), value)?)?;
    }
    Ok(())
}
