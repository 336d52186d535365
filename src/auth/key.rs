use pyo3::types::PyMapping;
use zeroize::Zeroizing;

use crate::bridge::long_work::left_on_interrupt;
use crate::convert::values::octets;
use crate::prelude::*;
use siteline_core::auth::{Checked, Part, PrivateKey};

pub(super) type Bytes = Zeroizing<Vec<u8>>;

#[pyclass(frozen, module = "siteline._core")]
pub(crate) struct KeyHandle(pub(crate) PrivateKey);

#[pymethods]
impl KeyHandle {
    #[new]
    fn new(source: &Object<'_>, passphrase: Option<Passphrase>, strict: bool) -> PyResult<Self> {
        if let Ok(key) = source.cast::<Self>() {
            return Ok(Self(key.get().0.clone()));
        }
        let py = source.py();
        let known = "A private key is a path, PEM text, bytes (PEM, DER or JSON), a JWK as dict, or \
                     a PrivateKey";
        let part = part_of(source)?.ok_or_else(|| wrong(known, source))?;
        let load = move || {
            let passphrase = passphrase.as_ref().map(|passphrase| passphrase.0.as_slice());
            match part {
                Part::File(path) => PrivateKey::load(&path, passphrase, strict),
                Part::Bytes(bytes) => PrivateKey::parse(&bytes, passphrase)
                    .map(|value| Checked { value, warnings: Vec::new() }),
            }
        };
        let Checked { value: key, warnings } = left_on_interrupt(py, load)?.or_raise()?;
        warn(py, &warnings)?;
        Ok(Self(key))
    }

    #[staticmethod]
    fn generate(py: Python<'_>, bits: u32) -> PyResult<Self> {
        Ok(Self(detached(py, || PrivateKey::generate(bits))?.or_raise()?))
    }

    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        passphrase: Option<Passphrase>,
        overwrite: bool,
    ) -> PyResult<()> {
        let passphrase = passphrase.as_ref().map(|passphrase| passphrase.0.as_slice());
        detached(py, || self.0.save(&path, passphrase, overwrite))?.or_raise()
    }

    /// The public JWK, the thumbprint, and the size in bits.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<(Object<'py>, &str, u32)> {
        Ok((dict(py, &self.0.public_jwk())?, self.0.thumbprint(), self.0.bits()))
    }
}

/// Wiped when it is dropped.
pub(super) struct Passphrase(pub(super) Bytes);

impl<'py> FromPyObject<'_, 'py> for Passphrase {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self(Zeroizing::new(text.to_cow()?.as_bytes().to_vec())));
        }
        octets(&value)?.map(Self).ok_or_else(|| wrong("A passphrase is str or bytes", &value))
    }
}

pub(super) fn wrong(known: &str, value: &Object<'_>) -> PyErr {
    PyTypeError::new_err(format!("{known}; this is {}.", described(value)))
}

/// The file of an `os.PathLike`, otherwise the bytes of the value.
pub(super) fn part_of(value: &Object<'_>) -> PyResult<Option<Part>> {
    if value.hasattr(intern!(value.py(), "__fspath__"))? {
        return value.extract().map(|path| Some(Part::File(path)));
    }
    Ok(text_or_json(value)?.map(Part::Bytes))
}

/// The bytes of text, a bytes-like object, or a mapping as JSON.
pub(super) fn text_or_json(value: &Object<'_>) -> PyResult<Option<Bytes>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(Zeroizing::new(text.to_cow()?.as_bytes().to_vec())));
    }
    if value.is_instance_of::<PyMapping>() {
        let json: serde_json::Value = restore(value)?;
        return Ok(Some(Zeroizing::new(json.to_string().into_bytes())));
    }
    octets(value)
}
