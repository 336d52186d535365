//! `siteline.PrivateKey`, a wrapper of `auth::PrivateKey`; keys and passphrases as arguments.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use zeroize::Zeroizing;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::errors::warn;
use crate::bridge::long_work::left_on_interrupt;
use crate::bridge::process::detached;
use crate::convert::patching::methods_can_be_replaced;
use crate::convert::state::{copies_are_itself, dict, json_text};
use crate::convert::values::{described, octets, path_of};
use siteline_core::auth::{Loaded, PrivateKey, is_key_text};
use siteline_core::error::Error;

type Bytes = Zeroizing<Vec<u8>>;

/// An RSA private key, which signs the assertions of a credential.
///
/// ``source`` is the path of a key file (``str`` or ``os.PathLike``), or the key itself: PEM text,
/// ``bytes`` of PEM, DER or JSON, or a JWK as ``dict``. It is PKCS#8, encrypted PKCS#8 or PKCS#1, of
/// 2048 to 8192 bits. PEM that a mail program, an editor or an environment variable has changed is
/// accepted: other line ends, none, ``\n`` as two characters, a byte order mark. PEM text is
/// recognised and never used as a path.
///
/// ``passphrase`` (``str`` or ``bytes``) decrypts an encrypted key. A key file that other users can
/// read gives a :class:`SitelineWarning`; with ``strict=True`` it is refused.
///
/// Raises :class:`CredentialError` that says what was found instead and what to do; no message
/// contains text of the key. Before enrollment: generate a key, save it, and enroll its public JWK
/// (§1, §2.1).
///
/// >>> import pathlib, tempfile
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "key.pem"
/// >>> key = siteline.PrivateKey.generate()
/// >>> key.save(path)
/// >>> siteline.PrivateKey(path).thumbprint == key.thumbprint
/// True
/// >>> " ".join(sorted(key.public_jwk))
/// 'alg e kid kty n use'
#[pyclass(dict, frozen, weakref, name = "PrivateKey", module = "siteline")]
pub(crate) struct PyPrivateKey(pub(crate) PrivateKey);

copies_are_itself!(PyPrivateKey);

methods_can_be_replaced!(PyPrivateKey);

#[pymethods]
impl PyPrivateKey {
    #[new]
    #[pyo3(signature = (source, *, passphrase=None, strict=false))]
    fn new(
        source: &Bound<'_, PyAny>,
        passphrase: Option<Passphrase>,
        strict: bool,
    ) -> PyResult<Self> {
        read(source.py(), &Source::of(source)?, passphrase, strict).map(Self)
    }

    /// Generate a key of 2048, 3072 (the default) or 4096 bits.
    ///
    /// Takes up to a few seconds; other threads continue meanwhile. Raises :class:`CredentialError`
    /// for another size.
    ///
    /// >>> siteline.PrivateKey.generate(2048).bits
    /// 2048
    #[staticmethod]
    #[pyo3(signature = (bits=3072))]
    fn generate(py: Python<'_>, bits: u32) -> PyResult<Self> {
        Ok(Self(detached(py, || PrivateKey::generate(bits))?.or_raise()?))
    }

    /// Load a key file. Unlike in ``PrivateKey(path)``, ``path`` is always used as a path.
    ///
    /// Raises :class:`CredentialError` that names the path if it is missing, a directory or not
    /// readable, and where the class itself raises it.
    ///
    /// >>> siteline.PrivateKey.load("absent.pem")  # doctest: +ELLIPSIS
    /// Traceback (most recent call last):
    /// ...
    /// siteline.errors.CredentialError: The private key file "absent.pem" does not exist...
    #[staticmethod]
    #[pyo3(signature = (path, *, passphrase=None, strict=false))]
    fn load(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        passphrase: Option<Passphrase>,
        strict: bool,
    ) -> PyResult<Self> {
        read(py, &Source::Path(path_of(path, "path")?), passphrase, strict).map(Self)
    }

    /// Save the key as PKCS#8 PEM that only its owner can read (mode 600), encrypted if a
    /// ``passphrase`` is given (PBKDF2 and AES-256, as OpenSSL does it).
    ///
    /// An existing file is a :class:`CredentialError`; with ``overwrite=True`` it is replaced
    /// atomically. An enrolled key that is lost cannot be recovered.
    ///
    /// >>> import pathlib, tempfile
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "key.pem"
    /// >>> key = siteline.PrivateKey.generate(2048)
    /// >>> key.save(path, passphrase="correct horse")
    /// >>> siteline.PrivateKey(path, passphrase="correct horse").bits
    /// 2048
    #[pyo3(signature = (path, *, passphrase=None, overwrite=false))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands extracted arguments over")]
    fn save(
        &self,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        passphrase: Option<Passphrase>,
        overwrite: bool,
    ) -> PyResult<()> {
        let passphrase = passphrase.as_ref().map(|passphrase| passphrase.0.as_slice());
        let path = path_of(path, "path")?;
        detached(py, || self.0.save(&path, passphrase, overwrite))?.or_raise()
    }

    /// The public key to enroll, a ``dict`` with ``kty``, ``n``, ``e``, ``kid``, ``alg`` and
    /// ``use`` (§2.1). It contains nothing secret.
    #[getter]
    fn public_jwk<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, &self.0.public_jwk())
    }

    /// RFC 7638 thumbprint of the public key (SHA-256, base64url): the ``kid`` of its assertions.
    #[getter]
    fn thumbprint(&self) -> &str {
        self.0.thumbprint()
    }

    /// The size of the key in bits.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    fn __repr__(&self) -> String {
        format!("<PrivateKey RSA {} bits, thumbprint={}>", self.bits(), self.thumbprint())
    }

    #[expect(clippy::unused_self, reason = "the protocol asks the object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "A PrivateKey is not pickled, because the pickle would contain the key: save() it once \
             and pass the path.",
        ))
    }
}

/// The source of a key.
#[derive(Clone)]
pub(crate) enum Source {
    Held(PrivateKey),
    Path(PathBuf),
    Bytes(Bytes),
    /// The value of `SITELINE_PRIVATE_KEY`.
    Variable(Zeroizing<String>),
}

impl Source {
    pub(crate) fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(key) = value.cast::<PyPrivateKey>() {
            Ok(Self::Held(key.get().0.clone()))
        } else if let Ok(text) = value.cast::<PyString>() {
            let text = Zeroizing::new(text.to_cow()?.into_owned());
            if text.trim().is_empty() || is_key_text(&text) {
                Ok(Self::Bytes(Zeroizing::new(text.as_bytes().to_vec())))
            } else {
                Ok(Self::Path(PathBuf::from(text.as_str())))
            }
        } else if let Some(bytes) = octets(value)? {
            Ok(Self::Bytes(bytes))
        } else if value.is_instance_of::<PyDict>() {
            Ok(Self::Bytes(Zeroizing::new(json_text(value)?.into_bytes())))
        } else if value.hasattr(intern!(value.py(), "__fspath__"))? {
            value.extract().map(Self::Path)
        } else {
            Err(PyTypeError::new_err(format!(
                "A private key is a path, PEM text, bytes (PEM, DER or JSON), a JWK as dict, or a \
                 PrivateKey; this is {}.",
                described(value),
            )))
        }
    }
}

/// A passphrase as text or bytes, wiped when it is dropped.
pub(crate) struct Passphrase(pub(crate) Bytes);

impl From<&str> for Passphrase {
    fn from(text: &str) -> Self {
        Self(Zeroizing::new(text.as_bytes().to_vec()))
    }
}

impl<'py> FromPyObject<'_, 'py> for Passphrase {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self::from(&*text.to_cow()?));
        }
        let refused = |found| format!("A passphrase is str or bytes; this is {found}.");
        match octets(&value)? {
            Some(bytes) => Ok(Self(bytes)),
            None => Err(PyTypeError::new_err(refused(described(&value)))),
        }
    }
}

/// Loads the key, and gives its warnings to Python. The passphrase is wiped at the end.
pub(crate) fn read(
    py: Python<'_>,
    source: &Source,
    passphrase: Option<Passphrase>,
    strict: bool,
) -> PyResult<PrivateKey> {
    let source = match source {
        Source::Held(key) => return Ok(key.clone()),
        other => other.clone(),
    };
    let is_framed = passphrase.as_ref().is_some_and(|Passphrase(bytes)| {
        let is_frame = |byte: Option<&u8>| byte.is_some_and(|byte| b"\"' \t".contains(byte));
        is_frame(bytes.first()) || is_frame(bytes.last())
    });
    let load = move || {
        let passphrase = passphrase.as_ref().map(|passphrase| passphrase.0.as_slice());
        let key = match source {
            Source::Path(path) => return PrivateKey::load(&path, passphrase, strict),
            Source::Held(key) => key,
            Source::Bytes(bytes) => PrivateKey::parse(&bytes, passphrase)?,
            Source::Variable(text) => PrivateKey::parse(text.as_bytes(), passphrase)?,
        };
        Ok(Loaded { key, warnings: Vec::new() })
    };
    let loaded = left_on_interrupt(py, load)?;
    let Loaded { key, warnings } =
        loaded.map_err(|error| if is_framed { framed(error) } else { error }).or_raise()?;
    warn(py, &warnings)?;
    Ok(key)
}

/// The error for a key that this passphrase does not open: a variable may have been written with
/// quotation marks that no shell removes.
fn framed(error: Error) -> Error {
    error.with(|context| {
        let hint = context.hint.get_or_insert_default();
        if !hint.is_empty() {
            hint.push('\n');
        }
        hint.push_str(
            "The passphrase begins or ends with a quotation mark or a blank, which is a part of it.",
        );
    })
}
