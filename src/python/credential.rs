//! `siteline.Credential`: thin, over `auth::Credential`, with signers that are Python callables.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::auth::{Checked, Credential, PublicJwk, Signer};
use crate::error::{Error, Kind};
use crate::python::errors::{raise, warn};
use crate::python::private_key::{
    Passphrase, described, json_text, jwk_as_dict, octets, private_key,
};
use crate::python::process::attached;
use crate::python::runtime::guarded;

/// Who asks: the subject that enrollment returned, and the key that signs for it (§2.1).
///
/// Either ``private_key``, which takes all that :class:`PrivateKey` takes, or a
/// :class:`PrivateKey` itself (with ``passphrase`` and ``strict`` as there); or, for keys that may
/// not leave a vault, ``signer`` and ``public_jwk``.
///
/// ``signer`` is called with the ``bytes`` to sign and returns the raw signature as ``bytes``:
/// RSASSA-PKCS1-v1_5 with SHA-256 (RS256), not base64. It is called on a thread of its own and may
/// block: calls that have a deadline, or are interrupted, do not wait for it. Each signature is
/// checked against ``public_jwk`` (a ``dict`` or JSON text) before it is used; what
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
                guarded(|| Ok(Credential::with_key(subject, key, kid)))?
            }
            (None, Some(signer)) => {
                let signer = PySigner::new(&signer)?;
                let public = public_jwk.ok_or_else(|| raise(py, &signer_without_public_jwk()))?;
                let public = read_public_jwk(public)?;
                guarded(|| Ok(Credential::with_signer(subject, Arc::new(signer), public, kid)))?
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
        attached(|py| {
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
