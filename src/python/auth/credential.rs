//! `siteline.Credential`: thin, over `auth::Credential`, with signers that are Python callables.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::auth::{Checked, Credential, PublicJwk};
use crate::error::{Error, Kind};
use crate::python::auth::passphrase::{printed, words};
use crate::python::auth::private_key::{Passphrase, Source, read};
use crate::python::auth::signer::PySigner;
use crate::python::bridge::errors::{raise, warn};
use crate::python::bridge::process::guarded;
use crate::python::convert::state::copies_are_itself;
use crate::python::convert::state::{Reduced, dict, json_text, reduce, restore};
use crate::python::convert::values::{described, octets, value_of};
use crate::settings::{Key, KeySource, PASSPHRASE, PRIVATE_KEY, PassphraseSource};

/// Who asks: the subject that enrollment returned, and the key that signs for it (§2.1).
///
/// Either ``private_key``, which takes all that :class:`PrivateKey` takes, or a
/// :class:`PrivateKey` itself (with ``passphrase`` and ``strict`` as there); or, for keys that may
/// not leave a vault, ``signer`` and ``public_jwk``.
///
/// ``signer`` is called with the ``bytes`` to sign and returns the raw signature as ``bytes``:
/// RSASSA-PKCS1-v1_5 with SHA-256 (RS256), not base64. A plain function is called on a thread of its
/// own and may block: calls that have a deadline, or are interrupted, do not wait for it. Each
/// signature is checked against ``public_jwk`` (a ``dict`` or JSON text) before it is used; what the
/// signer raises becomes the ``__cause__`` of a :class:`CredentialError`.
///
/// ``signer`` may be an ``async`` function: an :class:`AsyncClient` awaits it, on the event loop of
/// the call that needs a token. It has the time limit of one attempt (15 s), and is cancelled with
/// the call; another call that waits for the same token then signs anew, on its own loop. A
/// :class:`Client` cannot await it: it uses a valid token that this process has for the credential,
/// and raises :class:`ConfigError` where there is none, before any request.
///
/// ``password_command`` is a command that prints the passphrase of an encrypted key as its first
/// line (``["pass", "show", "plant"]``; a text is split into words, without a shell). It runs here
/// and now, for a minute at most; what it prints is shown nowhere.
///
/// ``kid`` need not be given: it is the thumbprint of the key, and one that is stated is only
/// checked. White space around ``subject`` is removed, with a :class:`SitelineWarning`.
///
/// Raises :class:`CredentialError` for a wrong key, ``kid``, or both or none of the two ways, and
/// :class:`ConfigError` for an empty subject. No request is made.
///
/// A credential is pickled as the path of its key, and the ``password_command``: both must be good
/// where it is unpickled. Nothing secret is in the pickle, so one whose key or passphrase was given
/// itself, or a ``signer``, is a ``TypeError`` there.
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
pub(crate) struct PyCredential(pub(crate) Credential, Kept);

copies_are_itself!(PyCredential);

#[pymethods]
impl PyCredential {
    #[new]
    #[pyo3(
        signature = (
            subject, private_key=None, *, signer=None, public_jwk=None, passphrase=None,
            password_command=None, kid=None, strict=false
        ),
        text_signature = "(subject, private_key=None, *, signer=None, public_jwk=None, \
                          passphrase=None, password_command=None, kid=None, strict=False)"
    )]
    #[expect(clippy::too_many_arguments, reason = "named arguments of Python")]
    fn new(
        py: Python<'_>,
        subject: &str,
        private_key: Option<&Bound<'_, PyAny>>,
        signer: Option<Bound<'_, PyAny>>,
        public_jwk: Option<&Bound<'_, PyAny>>,
        passphrase: Option<Passphrase>,
        password_command: Option<&Bound<'_, PyAny>>,
        kid: Option<&str>,
        strict: bool,
    ) -> PyResult<Self> {
        let checked = match (private_key, signer) {
            (Some(source), None) => {
                if public_jwk.is_some() {
                    return Err(raise(py, &public_jwk_without_signer()));
                }
                let unlock = match (passphrase, password_command) {
                    (Some(_), Some(_)) => return Err(raise(py, &one_passphrase_only())),
                    (Some(passphrase), None) => Unlock::With(passphrase),
                    (None, Some(command)) => Unlock::Command(words(command)?),
                    (None, None) => Unlock::Nothing,
                };
                return Self::with_key(py, subject, &Source::of(source)?, unlock, kid, strict);
            }
            (None, Some(_)) if passphrase.is_some() || password_command.is_some() => {
                return Err(raise(py, &passphrase_without_key()));
            }
            (None, Some(signer)) => {
                let signer = PySigner::new(&signer)?;
                let public = public_jwk.ok_or_else(|| raise(py, &signer_without_public_jwk()))?;
                let public = read_public_jwk(public)?;
                guarded(|| Ok(signer.credential(subject, public, kid)))?
            }
            (given, _) => return Err(raise(py, &one_way_only(given.is_some()))),
        };
        Self::checked(py, checked, Err("its signer is code of this process"))
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
        dict(py, self.0.public_jwk())
    }

    fn __repr__(&self) -> String {
        format!("<Credential subject={:?} kid={}>", self.subject(), self.kid())
    }

    /// What ``pickle`` makes it again with: where the key is, and which key it must be.
    #[staticmethod]
    fn _restore(state: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = state.py();
        let CredentialState { subject, kid, key } = restore(state)?;
        let (source, strict, opened_by) = match key {
            KeyPlace::File { path, strict, opened_by } => (Source::Path(path), strict, opened_by),
            KeyPlace::Variable { opened_by } => {
                (Source::Variable(variable(py, PRIVATE_KEY)?), false, opened_by)
            }
        };
        let unlock = match opened_by {
            OpenedBy::Nothing => Unlock::Nothing,
            OpenedBy::Command(words) => Unlock::Command(words),
            OpenedBy::Variable => Unlock::Variable(variable(py, PASSPHRASE)?),
        };
        Self::with_key(py, &subject, &source, unlock, Some(&kid), strict)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let Self(credential, key) = slf.get();
        let key = key.as_ref().map_err(|why| not_pickled(why))?.clone();
        let (subject, kid) = (credential.subject().to_owned(), credential.kid().to_owned());
        reduce(slf, &CredentialState { subject, kid, key })
    }
}

fn not_pickled(why: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "This credential is not pickled, for {why}. Give private_key= the path of a key file, with \
         password_command= for what opens it, or make the client with Client.from_env() or \
         Client.from_profile()."
    ))
}

/// A credential as another process finds it: nothing secret.
#[derive(Serialize, Deserialize)]
struct CredentialState {
    subject: String,
    kid: String,
    key: KeyPlace,
}

/// Where another process finds the key, or why it does not.
type Kept = Result<KeyPlace, &'static str>;

/// Where the key of a credential is, so that another process finds it there. Nothing secret.
#[derive(Clone, Serialize, Deserialize)]
enum KeyPlace {
    File {
        path: PathBuf,
        strict: bool,
        opened_by: OpenedBy,
    },
    /// In `SITELINE_PRIVATE_KEY`.
    Variable {
        opened_by: OpenedBy,
    },
}

/// What opens it.
#[derive(Clone, Serialize, Deserialize)]
enum OpenedBy {
    Nothing,
    Command(Vec<String>),
    /// `SITELINE_PASSPHRASE`.
    Variable,
}

/// What opens a key, here and now.
enum Unlock {
    Nothing,
    With(Passphrase),
    Command(Vec<String>),
    /// What stands in `SITELINE_PASSPHRASE`.
    Variable(Zeroizing<String>),
}

impl PyCredential {
    /// The credential that variables or a profile name.
    pub(crate) fn from_settings(py: Python<'_>, subject: &str, key: Key) -> PyResult<Self> {
        let unlock = match key.passphrase {
            None => Unlock::Nothing,
            Some(PassphraseSource::Text(text)) => Unlock::Variable(text),
            Some(PassphraseSource::Command(command)) => {
                Unlock::Command(words(&value_of(py, &command)?)?)
            }
        };
        let source = match key.source {
            KeySource::File(path) => Source::Path(path),
            KeySource::Text(text) => Source::Variable(text),
        };
        Self::with_key(py, subject, &source, unlock, key.kid.as_deref(), key.strict)
    }

    fn with_key(
        py: Python<'_>,
        subject: &str,
        source: &Source,
        unlock: Unlock,
        kid: Option<&str>,
        strict: bool,
    ) -> PyResult<Self> {
        let (passphrase, opened_by) = match unlock {
            Unlock::Nothing => (None, Ok(OpenedBy::Nothing)),
            Unlock::With(passphrase) => (Some(passphrase), Err("its passphrase was given itself")),
            Unlock::Command(words) => {
                (Some(Passphrase::new(printed(py, &words)?)), Ok(OpenedBy::Command(words)))
            }
            Unlock::Variable(text) => {
                let bytes = Zeroizing::new(text.as_bytes().to_vec());
                (Some(Passphrase::new(bytes)), Ok(OpenedBy::Variable))
            }
        };
        let place = match (source, opened_by) {
            (Source::Path(path), Ok(opened_by)) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                Ok(KeyPlace::File { path, strict, opened_by })
            }
            (Source::Variable(_), Ok(opened_by)) => Ok(KeyPlace::Variable { opened_by }),
            (Source::Held(_) | Source::Bytes(_), _) => {
                Err("its key was given itself, not as a path")
            }
            (_, Err(why)) => Err(why),
        };
        let key = read(py, source, passphrase, strict)?;
        Self::checked(py, guarded(|| Ok(Credential::with_key(subject, key, kid)))?, place)
    }

    fn checked(
        py: Python<'_>,
        checked: crate::Result<Checked<Credential>>,
        place: Kept,
    ) -> PyResult<Self> {
        let Checked { value, warnings } = checked.map_err(|error| raise(py, &error))?;
        warn(py, &warnings)?;
        Ok(Self(value, place))
    }
}

/// A variable that the pickled credential was made of.
fn variable(py: Python<'_>, name: &str) -> PyResult<Zeroizing<String>> {
    std::env::var(name).ok().filter(|text| !text.trim().is_empty()).map(Zeroizing::new).ok_or_else(
        || {
            let message = format!("{name} is not set in this process.");
            let hint = "The pickled credential was made of it: set it here as it was set there.";
            raise(py, &Error::new(Kind::CredentialError, message).with_hint(hint))
        },
    )
}

fn one_way_only(both: bool) -> Error {
    let message = if both {
        "A credential has private_key or signer, not both."
    } else {
        "A credential needs private_key or signer; both are missing or None."
    };
    Error::new(Kind::CredentialError, message).with_hint(
        "Pass private_key= (a path, PEM text, bytes, a JWK or a PrivateKey), or for a key that \
         stays in a vault signer= with public_jwk=. Is an environment variable unset?",
    )
}

fn one_passphrase_only() -> Error {
    Error::new(Kind::CredentialError, "passphrase and password_command are both given.")
        .with_hint("Leave one out: nobody can say which is meant.")
}

fn passphrase_without_key() -> Error {
    Error::new(Kind::CredentialError, "passphrase and password_command belong to private_key.")
        .with_hint("A signer opens its own vault: leave them out.")
}

fn signer_without_public_jwk() -> Error {
    Error::new(
        Kind::CredentialError,
        "A signer needs public_jwk, the public key that was enrolled.",
    )
    .with_hint("Its thumbprint is the kid, and each signature is checked against it.")
}

fn public_jwk_without_signer() -> Error {
    Error::new(Kind::CredentialError, "public_jwk belongs to signer; a private key brings its own.")
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
