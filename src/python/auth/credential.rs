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

/// The subject that enrollment returned, and the key that signs for it (§2.1).
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
pub(crate) struct PyCredential(
    pub(crate) Credential,
    /// What is pickled, or why nothing is.
    Result<KeyPlace, &'static str>,
);

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
        let refused = |message: &str, hint| {
            Err(raise(py, &Error::new(Kind::CredentialError, message).with_hint(hint)))
        };
        match (private_key, signer, public_jwk) {
            (Some(_), Some(_), _) => {
                refused("A credential has private_key or signer, not both.", TWO_WAYS)
            }
            (None, None, _) => refused(
                "A credential needs private_key or signer; both are missing or None.",
                TWO_WAYS,
            ),
            (Some(_), None, Some(_)) => refused(
                "public_jwk belongs to signer; a private key brings its own.",
                "Leave public_jwk out; read it from credential.public_jwk.",
            ),
            (Some(_), None, None) if passphrase.is_some() && password_command.is_some() => refused(
                "passphrase and password_command are both given.",
                "Leave one out: nobody can say which is meant.",
            ),
            (Some(source), None, None) => {
                let opener = password_command.map(words).transpose()?.map(Opener::Command);
                let source = Source::of(source)?;
                Self::with_key(py, subject, &source, passphrase, opener, kid, strict)
            }
            (None, Some(_), _) if passphrase.is_some() || password_command.is_some() => refused(
                "passphrase and password_command belong to private_key.",
                "A signer opens its own vault: leave them out.",
            ),
            (None, Some(signer), public_jwk) => {
                let signer = PySigner::new(&signer)?;
                let Some(public_jwk) = public_jwk else {
                    return refused(
                        "A signer needs public_jwk, the public key that was enrolled.",
                        "Its thumbprint is the kid, and each signature is checked against it.",
                    );
                };
                let public = read_public_jwk(public_jwk)?;
                let checked = guarded(|| Ok(signer.credential(subject, public, kid)))?;
                Self::checked(py, checked, Err("its signer is code of this process"))
            }
        }
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
        let KeyPlace { path, strict, opener } = key;
        let source = match path {
            Some(path) => Source::Path(path),
            None => Source::Variable(variable(py, PRIVATE_KEY)?),
        };
        Self::with_key(py, &subject, &source, None, opener, Some(&kid), strict)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let Self(credential, key) = slf.get();
        let key = key.clone().map_err(|why| {
            PyTypeError::new_err(format!(
                "This credential is not pickled, for {why}. Give private_key= the path of a key \
                 file, with password_command= for what opens it, or make the client with \
                 Client.from_env() or Client.from_profile()."
            ))
        })?;
        let (subject, kid) = (credential.subject().to_owned(), credential.kid().to_owned());
        reduce(slf, &CredentialState { subject, kid, key })
    }
}

/// What is pickled of a credential. Nothing secret.
#[derive(Serialize, Deserialize)]
struct CredentialState {
    subject: String,
    kid: String,
    key: KeyPlace,
}

/// Where another process finds the key.
#[derive(Clone, Serialize, Deserialize)]
struct KeyPlace {
    /// `None`: in `SITELINE_PRIVATE_KEY`.
    path: Option<PathBuf>,
    strict: bool,
    opener: Option<Opener>,
}

/// Where the passphrase of a key comes from, if it was not given itself.
#[derive(Clone, Serialize, Deserialize)]
enum Opener {
    Command(Vec<String>),
    /// `SITELINE_PASSPHRASE`.
    Variable,
}

impl PyCredential {
    /// The credential that variables or a profile name.
    pub(crate) fn from_settings(py: Python<'_>, subject: &str, key: Key) -> PyResult<Self> {
        let opener = match key.passphrase {
            None => None,
            Some(PassphraseSource::Variable) => Some(Opener::Variable),
            Some(PassphraseSource::Command(command)) => {
                Some(Opener::Command(words(&value_of(py, &command)?)?))
            }
        };
        let source = match key.source {
            KeySource::File(path) => Source::Path(path),
            KeySource::Text(text) => Source::Variable(text),
        };
        Self::with_key(py, subject, &source, None, opener, key.kid.as_deref(), key.strict)
    }

    fn with_key(
        py: Python<'_>,
        subject: &str,
        source: &Source,
        passphrase: Option<Passphrase>,
        opener: Option<Opener>,
        kid: Option<&str>,
        strict: bool,
    ) -> PyResult<Self> {
        let path = match source {
            Source::Path(path) => Some(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
            _ => None,
        };
        let place = if matches!(source, Source::Held(_) | Source::Bytes(_)) {
            Err("its key was given itself, not as a path")
        } else if passphrase.is_some() {
            Err("its passphrase was given itself")
        } else {
            Ok(KeyPlace { path, strict, opener: opener.clone() })
        };
        let passphrase = match opener {
            None => passphrase,
            Some(Opener::Command(words)) => Some(Passphrase(printed(py, &words)?)),
            Some(Opener::Variable) => Some(Passphrase::from(variable(py, PASSPHRASE)?.as_str())),
        };
        let key = read(py, source, passphrase, strict)?;
        Self::checked(py, guarded(|| Ok(Credential::with_key(subject, key, kid)))?, place)
    }

    fn checked(
        py: Python<'_>,
        checked: crate::Result<Checked<Credential>>,
        place: Result<KeyPlace, &'static str>,
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

const TWO_WAYS: &str = "Pass private_key= (a path, PEM text, bytes, a JWK or a PrivateKey), or for a \
                        key that stays in a vault signer= with public_jwk=. Is an environment \
                        variable unset?";

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
