use zeroize::Zeroizing;

use crate::auth::called;
use crate::auth::key::{KeyHandle, Passphrase, part_of, wrong};
use crate::bridge::long_work::left_on_interrupt;
use crate::prelude::*;
use siteline_core::auth::{AskPassphrase, CertificateSource, Checked, MutualTls, Part};

#[pyclass(frozen, module = "siteline._core")]
pub(crate) struct CertificateHandle(pub(crate) MutualTls);

#[pymethods]
impl CertificateHandle {
    /// With `subject` it is read at the first use.
    #[staticmethod]
    #[pyo3(signature = (certificate, key, passphrase, client_id, strict, subject=None))]
    fn open(
        certificate: &Object<'_>,
        key: Option<&Object<'_>>,
        passphrase: Option<Object<'_>>,
        client_id: Option<Text<'_>>,
        strict: bool,
        subject: Option<String>,
    ) -> PyResult<Self> {
        let py = certificate.py();
        let source = CertificateSource {
            certificate: part(certificate, "certificate")?,
            key: key.map(|key| part(key, "key")).transpose()?,
            passphrase: asking(passphrase)?,
            client_id: client_id.map(|id| id.0.to_owned()),
            strict,
        };
        if let Some(subject) = subject {
            return Ok(Self(MutualTls::deferred(source, subject)));
        }
        let passphrase = detached(py, || source.ask())?.or_raise()?;
        let open = move || MutualTls::open(source, passphrase.as_ref().map(|text| text.as_slice()));
        let Checked { value, warnings } = left_on_interrupt(py, open)?.or_raise()?;
        warn(py, &warnings)?;
        Ok(Self(value))
    }

    fn facts(&self) -> (&str, Option<&str>) {
        (self.0.subject(), self.0.client_id())
    }

    fn details(&self, py: Python<'_>) -> PyResult<(String, Timestamp, Timestamp)> {
        detached(py, || self.0.details())?.or_raise()
    }
}

fn asking(passphrase: Option<Object<'_>>) -> PyResult<Box<AskPassphrase>> {
    if let Some(function) = passphrase.as_ref().filter(|given| given.is_callable()) {
        let function = function.clone().unbind();
        let convert = |text: Object<'_>| Ok(Some(text.extract::<Passphrase>()?.0));
        return Ok(Box::new(move || called(&function, convert)));
    }
    let held = passphrase.map(|given| given.extract::<Passphrase>()).transpose()?;
    Ok(Box::new(move || Ok(held.as_ref().map(|passphrase| passphrase.0.clone()))))
}

fn part(value: &Object<'_>, name: &str) -> PyResult<Part> {
    if let Ok(key) = value.cast::<KeyHandle>() {
        let pem = key.get().0.to_pkcs8_pem(None).or_raise()?;
        return Ok(Part::Bytes(Zeroizing::new(pem.as_bytes().to_vec())));
    }
    let known = format!("{name}= is a path, PEM text, or bytes (PEM, PKCS#12 or DER)");
    // A JWK has no certificate.
    let part = if value.hasattr("keys")? { None } else { part_of(value)? };
    part.ok_or_else(|| wrong(&known, value))
}
