//! `siteline.Credential`, a wrapper of `auth::Credential`, and what is pickled of it.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::{Deserialize, Serialize};

use crate::auth::key_place::{DeferredKey, KeyPlace, Opener};
use crate::auth::passphrase::words;
use crate::auth::private_key::{Passphrase, Source, read};
use crate::auth::signer::PySigner;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::errors::warn;
use crate::bridge::process::guarded;
use crate::convert::patching::methods_can_be_replaced;
use crate::convert::state::{Reduced, copies_are_itself, dict, json_text, reduce, restore};
use crate::convert::values::{Text, described, octets, value_of};
use siteline_core::auth::{Checked, Credential, KeyChoice, PublicJwk};
use siteline_core::error::escaped;
use siteline_core::settings::{Key, KeySource, PassphraseSource};

/// The subject that enrollment returned, and the key that signs its assertions (§2.1).
///
/// Pass either ``private_key`` or, for a key that stays in a vault, ``signer`` and ``public_jwk``.
///
/// ``private_key`` is a :class:`PrivateKey` or any source of one; ``passphrase`` and ``strict`` are
/// those of :class:`PrivateKey`.
///
/// ``signer`` is called with the ``bytes`` to sign and returns the signature as ``bytes``, not as
/// base64: RSASSA-PKCS1-v1_5 with SHA-256 (RS256). A plain function runs on a separate thread and may
/// block: a call whose deadline passes, or that is interrupted, does not wait for it. Each signature
/// is verified with ``public_jwk`` (a ``dict`` or JSON text) before it is used. An exception of the
/// signer becomes the ``__cause__`` of a :class:`CredentialError`.
///
/// ``signer`` may be an ``async`` function. An :class:`AsyncClient` awaits it on the event loop of
/// the call that needs a token, for at most the time of one attempt (15 s), and cancels it with that
/// call; another call that waits for the same token then signs again on its own loop. A
/// :class:`Client` cannot await it: it uses a valid token of this process for the credential, and
/// raises :class:`ConfigError` before any request if there is none.
///
/// ``password_command`` prints the passphrase of an encrypted key as its first line
/// (``["pass", "show", "plant"]``; a text is split into words, without a shell), of at most 64 KiB. It
/// runs while the credential is made, for at most a minute. What it prints is never shown.
///
/// ``kid`` is optional: it is always the thumbprint of the key, and a given one is only compared.
/// White space around ``subject`` is removed, with a :class:`SitelineWarning`.
///
/// Raises :class:`CredentialError` for a wrong key or ``kid``, and unless exactly one of
/// ``private_key`` and ``signer`` is given; :class:`ConfigError` for an empty subject. Sends no
/// request.
///
/// A pickle contains the path of the key and ``password_command``, which must be valid where it is
/// loaded, and nothing secret. The command runs when the loaded credential is first used, so load
/// pickles only of those who may run commands as you. A credential whose key or passphrase was passed itself, or with a
/// ``signer``, cannot be pickled: ``TypeError``.
///
/// >>> key = siteline.PrivateKey.generate(2048)
/// >>> credential = siteline.Credential("customer-7", key)
/// >>> credential.kid == key.thumbprint
/// True
/// >>> siteline.Credential("customer-7", key, kid="my-key")  # doctest: +ELLIPSIS
/// Traceback (most recent call last):
/// ...
/// siteline.errors.CredentialError: kid="my-key" is not the thumbprint of this key...
#[pyclass(dict, frozen, weakref, name = "Credential", module = "siteline")]
pub(crate) struct PyCredential(
    pub(crate) Credential,
    /// How another process finds the key, or why it cannot.
    Result<KeyPlace, &'static str>,
);

copies_are_itself!(PyCredential);

methods_can_be_replaced!(PyCredential);

#[pymethods]
impl PyCredential {
    #[new]
    #[pyo3(signature = (
        subject, private_key=None, *, signer=None, public_jwk=None, passphrase=None,
        password_command=None, kid=None, strict=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "named arguments of Python")]
    fn new(
        py: Python<'_>,
        subject: Text<'_>,
        private_key: Option<&Bound<'_, PyAny>>,
        signer: Option<&Bound<'_, PyAny>>,
        public_jwk: Option<&Bound<'_, PyAny>>,
        passphrase: Option<Passphrase>,
        password_command: Option<&Bound<'_, PyAny>>,
        kid: Option<Text<'_>>,
        strict: bool,
    ) -> PyResult<Self> {
        let kid = kid.map(|kid| kid.0);
        let given = (private_key, signer.map(PySigner::new).transpose()?, public_jwk);
        match KeyChoice::of_arguments(given, passphrase.is_some(), password_command.is_some())
            .or_raise()?
        {
            KeyChoice::Private(source) => {
                let opener = password_command.map(words).transpose()?.map(Opener::Command);
                let source = Source::of(source)?;
                Self::with_key(py, subject.0, &source, passphrase, opener, kid, strict)
            }
            KeyChoice::Signer(signer, public_jwk) => {
                let public = read_public_jwk(public_jwk)?;
                let checked = guarded(|| signer.credential(subject.0, public, kid).or_raise())?;
                Self::checked(py, checked, Err("its signer is code of this process"))
            }
        }
    }

    /// The subject that enrollment returned; ``iss`` and ``sub`` of every assertion (§2.1).
    #[getter]
    fn subject(&self) -> &str {
        self.0.subject()
    }

    /// The thumbprint of the public key; ``kid`` of every assertion (§2.1).
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

    /// The file of the key, if it was given as a path.
    #[getter]
    fn _key_file(&self) -> Option<PathBuf> {
        self.1.as_ref().ok()?.path.clone()
    }

    fn __repr__(&self) -> String {
        format!("<Credential subject={:?} kid={}>", self.subject(), escaped(self.kid()))
    }

    /// Makes the credential from its pickle, which says where the key is and has its public key. To
    /// load it runs no command: a key that a command unlocks is read at its first use.
    #[staticmethod]
    fn _restore(state: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = state.py();
        let CredentialState { subject, public_jwk, key: place } = restore(state)?;
        let public = PublicJwk::parse(&public_jwk.to_string()).or_raise()?;
        let checked = if let Some(opener @ Opener::Command(_)) = &place.opener {
            opener.prepare(py)?;
            let signer = Arc::new(DeferredKey::new(place.clone(), public.thumbprint()));
            guarded(|| Credential::with_signer(&subject, signer, public, None).or_raise())?
        } else {
            let (key, kid) = (place.read(py)?, public.thumbprint());
            guarded(|| Credential::with_key(&subject, key, Some(kid)).or_raise())?
        };
        Self::checked(py, checked, Ok(place))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let Self(credential, key) = slf.get();
        let key = key.clone().map_err(|why| {
            PyTypeError::new_err(format!(
                "This credential is not pickled: {why}. Pass private_key= the path of a key \
                 file, with password_command= if the key is encrypted, or make the client with \
                 Client() or Client(profile=...)."
            ))
        })?;
        let public_jwk =
            serde_json::from_str(&credential.public_jwk().to_json()).unwrap_or_default();
        let subject = credential.subject().to_owned();
        reduce(slf, &CredentialState { subject, public_jwk, key })
    }
}

/// What is pickled of a credential. Nothing secret.
#[derive(Serialize, Deserialize)]
struct CredentialState {
    subject: String,
    public_jwk: serde_json::Value,
    key: KeyPlace,
}

impl PyCredential {
    /// The credential that variables or a profile name.
    pub(crate) fn from_settings(py: Python<'_>, subject: &str, key: Key) -> PyResult<Self> {
        let opener = match key.passphrase {
            None => None,
            Some(PassphraseSource::Variable) => Some(Opener::Variable),
            Some(PassphraseSource::Command(command)) => {
                warn(py, command.check_file(key.strict).or_raise()?.as_slice())?;
                Some(Opener::Command(words(&value_of(py, &command.words)?)?))
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
            Source::Held(_) | Source::Bytes(_) => Err("its key was given itself, not as a path"),
            _ if passphrase.is_some() => Err("its passphrase was given itself"),
            Source::Variable(_) => Ok(None),
            Source::Path(path) => {
                Ok(Some(std::path::absolute(path).unwrap_or_else(|_| path.clone())))
            }
        };
        let place = path.map(|path| KeyPlace { path, strict, opener: opener.clone() });
        let passphrase = match opener {
            Some(opener) => Some(opener.passphrase(py)?),
            None => passphrase,
        };
        let key = read(py, source, passphrase, strict)?;
        Self::checked(py, guarded(|| Credential::with_key(subject, key, kid).or_raise())?, place)
    }

    fn checked(
        py: Python<'_>,
        Checked { value, warnings }: Checked<Credential>,
        place: Result<KeyPlace, &'static str>,
    ) -> PyResult<Self> {
        warn(py, &warnings)?;
        Ok(Self(value, place))
    }
}

fn read_public_jwk(value: &Bound<'_, PyAny>) -> PyResult<PublicJwk> {
    let text = if value.is_instance_of::<PyDict>() {
        json_text(value)?
    } else if let Ok(text) = value.cast::<PyString>() {
        text.to_cow()?.into_owned()
    } else if let Some(bytes) = octets(value)? {
        String::from_utf8_lossy(&bytes).into_owned()
    } else {
        return Err(PyTypeError::new_err(format!(
            "public_jwk= is a dict or JSON text; this is {}.",
            described(value)
        )));
    };
    PublicJwk::parse(&text).or_raise()
}
