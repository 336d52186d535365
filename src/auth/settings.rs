//! The credential that variables or a profile name.

use crate::convert::values::value_of;
use crate::prelude::*;
use siteline_core::settings::{
    CertificateSettings, CredentialSettings, Key, KeySource, PASSPHRASE, PRIVATE_KEY,
    PassphraseSource,
};

pub(crate) fn from_settings(py: Python<'_>, settings: CredentialSettings) -> PyResult<Object<'_>> {
    let module = py.import("siteline.credentials")?;
    let place = PyDict::new(py);
    let set_key = |key: &KeySource| match key {
        KeySource::File(path) => place.set_item("key", path.as_os_str()),
        KeySource::Text(_) => place.set_item("key_variable", PRIVATE_KEY),
    };
    match settings {
        CredentialSettings::Assertion { subject, key, options } => {
            let Key { source, passphrase, kid, strict } = key;
            set_key(&source)?;
            set_opener(&place, passphrase, strict)?;
            let assertions = PyDict::new(py);
            for (name, value) in &options {
                assertions.set_item(name, value_of(py, value)?)?;
            }
            let class = module.getattr("Credential")?;
            class.call_method("_at", (subject, place, kid), Some(&assertions))
        }
        CredentialSettings::MutualTls(certificate) => {
            let CertificateSettings { file, key, passphrase, client_id, strict } = certificate;
            place.set_item("certificate", file.as_os_str())?;
            key.as_ref().map_or(Ok(()), set_key)?;
            set_opener(&place, passphrase, strict)?;
            place.set_item("client_id", client_id)?;
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
