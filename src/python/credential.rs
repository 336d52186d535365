//! `siteline.PrivateKey` and `siteline.Credential`: thin, over `auth`.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMemoryView, PyString};
use zeroize::Zeroizing;

use crate::auth::{Checked, Credential, Loaded, PrivateKey, PublicJwk, Signer};
use crate::error::{Error, Kind};
use crate::python::errors::{raise, warn};
use crate::python::runtime::detached;

type Bytes = Zeroizing<Vec<u8>>;

/// An RSA private key: what a credential signs its assertions with.
///
/// ``source`` is the path of a key file (``str`` or ``os.PathLike``), or the key itself: PEM text,
/// ``bytes`` of PEM, DER or JSON, or a JWK as ``dict``. PKCS#8, encrypted PKCS#8 and PKCS#1 are
/// read, of 2048 to 8192 bits; what came through a mail, an editor or an environment variable
/// (other line ends, none, ``\n`` spelt out, a byte order mark) is read too. A PEM given as text is
/// recognised and never taken for a path.
///
/// ``passphrase`` (``str`` or ``bytes``) opens an encrypted key. A key file that other users can
/// read gives a :class:`SitelineWarning`; with ``strict=True`` it is refused.
///
/// Raises :class:`CredentialError` saying what was found instead and what to do; no message holds
/// text of the key. Before enrollment: make a key, save it, and enroll its public JWK (§1, §2.1).
///
/// >>> import pathlib, tempfile
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "key.pem"
/// >>> key = siteline.PrivateKey.generate()
/// >>> key.save(path)
/// >>> siteline.PrivateKey(path).thumbprint == key.thumbprint
/// True
/// >>> " ".join(sorted(key.public_jwk))
/// 'alg e kid kty n use'
#[pyclass(frozen, name = "PrivateKey", module = "siteline")]
pub(crate) struct PyPrivateKey(pub(crate) PrivateKey);

#[pymethods]
impl PyPrivateKey {
    #[new]
    #[pyo3(
        signature = (source, *, passphrase=None, strict=false),
        text_signature = "(source, *, passphrase=None, strict=False)"
    )]
    fn new(
        source: &Bound<'_, PyAny>,
        passphrase: Option<Passphrase>,
        strict: bool,
    ) -> PyResult<Self> {
        private_key(source, passphrase, strict).map(Self)
    }

    /// Make a new key of 2048, 3072 (the default) or 4096 bits.
    ///
    /// Takes up to a few seconds, during which other threads run on. Raises
    /// :class:`CredentialError` for another size.
    ///
    /// >>> siteline.PrivateKey.generate(2048).bits
    /// 2048
    #[staticmethod]
    #[pyo3(signature = (bits=3072), text_signature = "(bits=3072)")]
    fn generate(py: Python<'_>, bits: u32) -> PyResult<Self> {
        detached(py, || PrivateKey::generate(bits))?.map(Self).map_err(|error| raise(py, &error))
    }

    /// Load a key file: as ``PrivateKey(path)``, but ``path`` is a path whatever it looks like.
    ///
    /// Raises :class:`CredentialError` naming the path for a file that is missing, a directory, or
    /// not readable, and as the class itself.
    ///
    /// >>> siteline.PrivateKey.load("absent.pem")  # doctest: +ELLIPSIS
    /// Traceback (most recent call last):
    /// ...
    /// siteline.errors.CredentialError: The private key file "absent.pem" does not exist...
    #[staticmethod]
    #[pyo3(
        signature = (path, *, passphrase=None, strict=false),
        text_signature = "(path, *, passphrase=None, strict=False)"
    )]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        passphrase: Option<Passphrase>,
        strict: bool,
    ) -> PyResult<Self> {
        read(py, &Source::Path(path), passphrase, strict).map(Self)
    }

    /// Save the key as PKCS#8 PEM that its owner alone can read (mode 600), encrypted where a
    /// ``passphrase`` is given (PBKDF2 and AES-256, as OpenSSL does it).
    ///
    /// An existing file is left alone, with :class:`CredentialError`, unless ``overwrite=True``;
    /// then the new one takes its place in one step. An enrolled key that is lost cannot be had
    /// back.
    ///
    /// >>> import pathlib, tempfile
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "key.pem"
    /// >>> key = siteline.PrivateKey.generate(2048)
    /// >>> key.save(path, passphrase="correct horse")
    /// >>> siteline.PrivateKey(path, passphrase="correct horse").bits
    /// 2048
    #[pyo3(
        signature = (path, *, passphrase=None, overwrite=false),
        text_signature = "($self, path, *, passphrase=None, overwrite=False)"
    )]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands extracted arguments over")]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        passphrase: Option<Passphrase>,
        overwrite: bool,
    ) -> PyResult<()> {
        detached(py, || self.0.save(&path, Passphrase::bytes(passphrase.as_ref()), overwrite))?
            .map_err(|error| raise(py, &error))
    }

    /// The public key to enroll, a ``dict`` with ``kty``, ``n``, ``e``, ``kid``, ``alg`` and
    /// ``use`` (§2.1). Holds nothing secret.
    #[getter]
    fn public_jwk<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        jwk_as_dict(py, &self.0.public_jwk())
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

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    #[expect(clippy::unused_self, reason = "the protocol asks the object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "A PrivateKey is not pickled, for its text would go wherever the pickle goes: \
             save() it once and pass the path.",
        ))
    }
}

/// Who asks: the subject that enrollment returned, and the key that signs for it (§2.1).
///
/// Either ``private_key``, which takes all that :class:`PrivateKey` takes, or a
/// :class:`PrivateKey` itself (with ``passphrase`` and ``strict`` as there); or, for keys that may
/// not leave a vault, ``signer`` and ``public_jwk``.
///
/// ``signer`` is called with the ``bytes`` to sign and returns the raw signature as ``bytes``:
/// RSASSA-PKCS1-v1_5 with SHA-256 (RS256), not base64. It may be called from any thread. Each
/// signature is checked against ``public_jwk`` (a ``dict`` or JSON text) before it is used; what
/// the signer raises becomes the ``__cause__`` of a :class:`CredentialError`.
///
/// ``kid`` need not be given: it is the thumbprint of the key, and one that is stated is only
/// checked. White space around ``subject`` is removed, with a :class:`SitelineWarning`.
///
/// Raises :class:`CredentialError` for a wrong key, ``kid``, or both or none of the two ways, and
/// :class:`ConfigError` for an empty subject. No request is made.
///
/// >>> key = siteline.PrivateKey.generate(2048)
/// >>> credential = siteline.Credential("customer-7", key)
/// >>> credential.kid == key.thumbprint
/// True
/// >>> siteline.Credential("customer-7", key, kid="my-key")  # doctest: +ELLIPSIS
/// Traceback (most recent call last):
/// ...
/// siteline.errors.CredentialError: kid="my-key" is not the thumbprint of this key...
#[pyclass(frozen, name = "Credential", module = "siteline")]
pub(crate) struct PyCredential(pub(crate) Credential);

#[pymethods]
impl PyCredential {
    #[new]
    #[pyo3(
        signature = (
            subject, private_key=None, *, signer=None, public_jwk=None, passphrase=None, kid=None,
            strict=false
        ),
        text_signature = "(subject, private_key=None, *, signer=None, public_jwk=None, \
                          passphrase=None, kid=None, strict=False)"
    )]
    #[expect(clippy::too_many_arguments, reason = "named arguments of Python")]
    fn new(
        py: Python<'_>,
        subject: &str,
        private_key: Option<&Bound<'_, PyAny>>,
        signer: Option<Bound<'_, PyAny>>,
        public_jwk: Option<&Bound<'_, PyAny>>,
        passphrase: Option<Passphrase>,
        kid: Option<&str>,
        strict: bool,
    ) -> PyResult<Self> {
        let checked = match (private_key, signer) {
            (Some(source), None) => {
                if public_jwk.is_some() {
                    return Err(raise(py, &public_jwk_without_signer()));
                }
                let key = self::private_key(source, passphrase, strict)?;
                Credential::with_key(subject, key, kid)
            }
            (None, Some(signer)) => {
                let signer = PySigner::new(&signer)?;
                let public = public_jwk.ok_or_else(|| raise(py, &signer_without_public_jwk()))?;
                let public = read_public_jwk(public)?;
                Credential::with_signer(subject, Arc::new(signer), public, kid)
            }
            (given, _) => return Err(raise(py, &one_way_only(given.is_some()))),
        };
        let Checked { value, warnings } = checked.map_err(|error| raise(py, &error))?;
        warn(py, &warnings)?;
        Ok(Self(value))
    }

    /// The subject that enrollment returned: ``iss`` and ``sub`` of every assertion (§2.1).
    #[getter]
    fn subject(&self) -> &str {
        self.0.subject()
    }

    /// The thumbprint of the public key: ``kid`` of every assertion (§2.1).
    #[getter]
    fn kid(&self) -> &str {
        self.0.kid()
    }

    /// The public key as it is enrolled, a ``dict`` with ``kty``, ``n``, ``e``, ``kid``, ``alg``
    /// and ``use``.
    #[getter]
    fn public_jwk<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        jwk_as_dict(py, self.0.public_jwk())
    }

    fn __repr__(&self) -> String {
        format!("<Credential subject={:?} kid={}>", self.subject(), self.kid())
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    #[expect(clippy::unused_self, reason = "the protocol asks the object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "A Credential is not pickled, for its key would go wherever the pickle goes: make it \
             anew in the other process, from the path of the key.",
        ))
    }
}

/// Where a key comes from.
enum Source {
    Held(PrivateKey),
    Path(PathBuf),
    Bytes(Bytes),
}

impl Source {
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(key) = value.cast::<PyPrivateKey>() {
            Ok(Self::Held(key.get().0.clone()))
        } else if let Ok(text) = value.cast::<PyString>() {
            let text = Zeroizing::new(text.to_cow()?.into_owned());
            if text.trim().is_empty() || PrivateKey::looks_like_key_text(&text) {
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
                described(value)?,
            )))
        }
    }
}

/// A passphrase as text or bytes, wiped when it is dropped.
struct Passphrase(Bytes);

impl Passphrase {
    fn bytes(given: Option<&Self>) -> Option<&[u8]> {
        given.map(|passphrase| passphrase.0.as_slice())
    }
}

impl<'py> FromPyObject<'_, 'py> for Passphrase {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self(Zeroizing::new(text.to_cow()?.as_bytes().to_vec())));
        }
        match octets(&value)? {
            Some(bytes) => Ok(Self(bytes)),
            None => Err(PyTypeError::new_err(format!(
                "A passphrase is str or bytes; this is {}.",
                described(&value)?
            ))),
        }
    }
}

/// A key from whatever Python gave, with its warnings raised.
fn private_key(
    source: &Bound<'_, PyAny>,
    passphrase: Option<Passphrase>,
    strict: bool,
) -> PyResult<PrivateKey> {
    read(source.py(), &Source::of(source)?, passphrase, strict)
}

#[expect(clippy::needless_pass_by_value, reason = "it is wiped once it was used")]
fn read(
    py: Python<'_>,
    source: &Source,
    passphrase: Option<Passphrase>,
    strict: bool,
) -> PyResult<PrivateKey> {
    let passphrase = Passphrase::bytes(passphrase.as_ref());
    let unwarned = |key| Loaded { key, warnings: Vec::new() };
    let loaded = detached(py, || match source {
        Source::Held(key) => Ok(unwarned(key.clone())),
        Source::Path(path) => PrivateKey::load(path, passphrase, strict),
        Source::Bytes(bytes) => PrivateKey::parse(bytes, passphrase).map(unwarned),
    })?;
    let Loaded { key, warnings } = loaded.map_err(|error| raise(py, &error))?;
    warn(py, &warnings)?;
    Ok(key)
}

/// A Python callable that signs.
struct PySigner(Py<PyAny>);

impl PySigner {
    fn new(signer: &Bound<'_, PyAny>) -> PyResult<Self> {
        if signer.is_callable() {
            return Ok(Self(signer.clone().unbind()));
        }
        Err(PyTypeError::new_err(format!(
            "signer= is called with the bytes to sign and returns the signature; this is {}.",
            described(signer)?
        )))
    }
}

impl Signer for PySigner {
    fn sign(&self, signing_input: &[u8]) -> crate::Result<Vec<u8>> {
        Python::try_attach(|py| {
            let answer = self.0.bind(py).call1((PyBytes::new(py, signing_input),));
            let answer = answer.map_err(|raised| signer_raised(py, raised))?;
            match octets(&answer) {
                Ok(Some(signature)) => Ok(signature.to_vec()),
                Ok(None) => Err(signer_returned(&answer)),
                Err(raised) => Err(signer_raised(py, raised)),
            }
        })
        .unwrap_or_else(|| {
            Err(Error::new(Kind::Closed, "Python is shutting down: the signer cannot be called."))
        })
    }
}

/// The exception itself is kept, and becomes the cause of ours; its text is not repeated.
fn signer_raised(py: Python<'_>, raised: PyErr) -> Error {
    let name = raised.get_type(py).name().map_or_else(|_| "an exception".into(), |n| n.to_string());
    Error::new(Kind::Credential, format!("The signer raised {name}; nothing was sent."))
        .with_hint("What it said is the cause of this error (__cause__).")
        .with_source(raised)
}

fn signer_returned(answer: &Bound<'_, PyAny>) -> Error {
    let found = described(answer).unwrap_or_else(|_| "something else".to_owned());
    let hint = if answer.hasattr("__await__").unwrap_or_default() {
        "It is an async function: give a plain one, which may block."
    } else {
        "It must return the raw signature, not base64 and not an object that holds it."
    };
    Error::new(Kind::Credential, format!("The signer returned {found} where bytes were expected."))
        .with_hint(hint)
}

fn one_way_only(both: bool) -> Error {
    let message = if both {
        "A credential has private_key or signer, not both."
    } else {
        "A credential needs private_key or signer; both are missing or None."
    };
    Error::new(Kind::Credential, message).with_hint(
        "Pass private_key= (a path, PEM text, bytes, a JWK or a PrivateKey), or for a key that \
         stays in a vault signer= with public_jwk=. Is an environment variable unset?",
    )
}

fn signer_without_public_jwk() -> Error {
    Error::new(Kind::Credential, "A signer needs public_jwk, the public key that was enrolled.")
        .with_hint("Its thumbprint is the kid, and each signature is checked against it.")
}

fn public_jwk_without_signer() -> Error {
    Error::new(Kind::Credential, "public_jwk belongs to signer; a private key brings its own.")
        .with_hint("Leave public_jwk out; read it from credential.public_jwk.")
}

/// The bytes of a bytes-like object, `None` for anything else.
fn octets(value: &Bound<'_, PyAny>) -> PyResult<Option<Bytes>> {
    let bytes = if let Ok(bytes) = value.cast::<PyBytes>() {
        bytes.as_bytes().to_vec()
    } else if let Ok(bytes) = value.cast::<PyByteArray>() {
        bytes.to_vec()
    } else if value.is_instance_of::<PyMemoryView>() {
        value.call_method0(intern!(value.py(), "tobytes"))?.extract()?
    } else {
        return Ok(None);
    };
    Ok(Some(Zeroizing::new(bytes)))
}

fn read_public_jwk(value: &Bound<'_, PyAny>) -> PyResult<PublicJwk> {
    let py = value.py();
    let text = if value.is_instance_of::<PyDict>() {
        json_text(value)?
    } else if let Ok(text) = value.cast::<PyString>() {
        text.to_cow()?.into_owned()
    } else if let Some(bytes) = octets(value)? {
        String::from_utf8_lossy(&bytes).into_owned()
    } else {
        return Err(PyTypeError::new_err(format!(
            "public_jwk= is a dict or JSON text; this is {}.",
            described(value)?
        )));
    };
    PublicJwk::parse(&text).map_err(|error| raise(py, &error))
}

fn json_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.py().import("json")?.call_method1("dumps", (value,))?.extract()
}

fn jwk_as_dict<'py>(py: Python<'py>, jwk: &PublicJwk) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (jwk.to_json(),))
}

/// What a value is, never what is in it.
fn described(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_none() {
        return Ok("None (is an environment variable unset?)".to_owned());
    }
    Ok(format!("an object of type {}", value.get_type().name()?))
}
