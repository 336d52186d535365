//! The credential that variables or a profile name.

use crate::convert::values::value_of;
use crate::prelude::*;
use siteline_core::settings::{
    CredentialSettings, KeySource, Mode, PASSPHRASE, PRIVATE_KEY, PassphraseSource,
};

pub(crate) fn from_settings(py: Python<'_>, settings: CredentialSettings) -> PyResult<Object<'_>> {
    let module = py.import("siteline.credentials")?;
    let place = PyDict::new(py);
    match &settings.key {
        Some(KeySource::File(path)) => place.set_item("key", path.as_os_str())?,
        Some(KeySource::Variable) => place.set_item("key_variable", PRIVATE_KEY)?,
        None => {}
    }
    set_opener(&place, settings.passphrase, settings.strict)?;
    match settings.mode {
        Mode::Assertion(subject) => {
            let assertions = PyDict::new(py);
            for (name, value) in &settings.options {
                assertions.set_item(name, value_of(py, value)?)?;
            }
            let class = module.getattr("Credential")?;
            class.call_method("_at", (subject, place, settings.kid), Some(&assertions))
        }
        Mode::MutualTls(file) => {
            place.set_item("certificate", file.as_os_str())?;
            place.set_item("client_id", settings.client_id)?;
            module.getattr("MutualTls")?.call_method1("_at", (place,))
        }
    }
}

fn set_opener(
    place: &Bound<'_, PyDict>,
    passphrase: Option<PassphraseSource>,
    strict: bool,
) -> PyResult<()> {
    let py = place.py();
    place.set_item("strict", strict)?;
    match passphrase {
        None => Ok(()),
        Some(PassphraseSource::Variable) => place.set_item("passphrase_variable", PASSPHRASE),
        Some(PassphraseSource::Command(command)) => {
            warn(py, command.check_file(strict).or_raise()?.as_slice())?;
            place.set_item("password_command", value_of(py, &command.words)?)
        }
    }
}
