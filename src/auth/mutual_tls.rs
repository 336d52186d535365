//! `siteline.MutualTls`, a wrapper of `auth::MutualTls`, and what is pickled of it.

use std::path::PathBuf;

use jiff::Timestamp;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::auth::key_place::Opener;
use crate::auth::passphrase::words;
use crate::auth::private_key::{Passphrase, PyPrivateKey};
use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::errors::{error_of, warn};
use crate::bridge::long_work::left_on_interrupt;
use crate::bridge::process::{attached, detached};
use crate::convert::patching::methods_can_be_replaced;
use crate::convert::state::{Reduced, copies_are_itself, reduce, restore};
use crate::convert::values::{Text, described, octets, value_of};
use siteline_core::auth::{
    AskPassphrase, CertificateSource, Checked, MutualTls, Part, is_key_text,
};
use siteline_core::error::{Error, Kind};
use siteline_core::settings::{
    CertificateSettings, KeySource, PRIVATE_KEY, PassphraseSource, variable_of_pickle,
};

/// The client certificate of a platform-managed integration (§1, §5.6), in the place of a
/// :class:`Credential`.
///
/// ``certificate`` is a path (``str`` or ``os.PathLike``), PEM text, or ``bytes``: the certificate and
/// its chain, in any order, as PEM, or with its key as PKCS#12 (``.p12``, ``.pfx``). ``key`` is the
/// private key, if it is not in there too: ``MutualTls("plant.pem", key="plant.key")``; PKCS#8, plain or
/// encrypted, PKCS#1 or SEC 1, RSA, ECDSA or Ed25519. (The legacy encryption, ``Proc-Type:
/// 4,ENCRYPTED``, is refused with the way to convert it.) ``passphrase`` (``str`` or ``bytes``) or
/// ``password_command`` open an encrypted key or a PKCS#12 file, as for a :class:`Credential`; a PKCS#12
/// file without either has an empty passphrase.
///
/// The interface does not show how the service uses the certificate, so there are both known forms:
///
/// - without ``client_id`` the certificate alone authorises discovery and data requests: no token is
///   requested, and no header ``Authorization`` is sent;
/// - with ``client_id``, the id of the integration, it authenticates the token request (RFC 8705 §2):
///   ``scope`` and ``client_id`` in the form, no assertion. The token is bound to the certificate.
///
/// The files are looked at before each request. If they were replaced, the next request opens new
/// connections with the new certificate, and asks for a new token; requests under way are not
/// disturbed. While the new files cannot be used (half written, or their key does not belong to the
/// certificate), the former certificate is used, with a warning in the log; they are tried again when
/// they change, and after a minute. Another subject needs another client: it is what the ledger of the
/// allowance counts for.
///
/// Raises :class:`CredentialError` that says what is wrong: no key, one that does not belong to the
/// certificate, a certificate that is not for clients. One that has expired, or is not valid yet, by the
/// service's time, is refused at its use, before anything is sent. A refusal by the service is an
/// :class:`AuthenticationError` that speaks of the client certificate; it is not retried. Plain
/// ``http://`` is a :class:`ConfigError`.
///
/// Other users who can read the file of the key give a :class:`SitelineWarning`, or an error if
/// ``strict``. A pickle contains the paths and ``password_command``, which must be valid where it is
/// loaded, and nothing secret; the files are read when the loaded one is first used. With a certificate,
/// key or passphrase that was passed itself: ``TypeError``.
///
/// >>> with siteline.Sandbox(mutual_tls="data") as service:
/// ...     plant = siteline.MutualTls(service.certificate("plant-7"))
/// ...     with siteline.Client(service.base_url, credential=plant, ca_bundle=service.ca) as mine:
/// ...         plant.subject, len(mine.discover())
/// ('CN=plant-7,O=siteline sandbox', 2)
#[pyclass(dict, frozen, weakref, name = "MutualTls", module = "siteline")]
pub(crate) struct PyMutualTls(
    pub(crate) MutualTls,
    /// How another process finds the files, or why it cannot.
    Result<CertificatePlace, &'static str>,
);

copies_are_itself!(PyMutualTls);

/// Where another process finds the certificate. Nothing secret.
#[derive(Clone, Serialize, Deserialize)]
struct CertificatePlace {
    certificate: PathBuf,
    key: Option<KeyPart>,
    opener: Option<Opener>,
    client_id: Option<String>,
    strict: bool,
}

/// Where its key is, if it is elsewhere.
#[derive(Clone, Serialize, Deserialize)]
enum KeyPart {
    File(PathBuf),
    /// `SITELINE_PRIVATE_KEY`.
    Variable,
}

/// What is pickled.
#[derive(Serialize, Deserialize)]
struct MutualTlsState {
    subject: String,
    place: CertificatePlace,
}

methods_can_be_replaced!(PyMutualTls);

#[pymethods]
impl PyMutualTls {
    #[new]
    #[pyo3(signature = (
        certificate, *, key=None, passphrase=None, password_command=None, client_id=None,
        strict=false
    ))]
    fn new(
        py: Python<'_>,
        certificate: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        passphrase: Option<Passphrase>,
        password_command: Option<&Bound<'_, PyAny>>,
        client_id: Option<Text<'_>>,
        strict: bool,
    ) -> PyResult<Self> {
        if passphrase.is_some() && password_command.is_some() {
            let message = "passphrase and password_command are both given.";
            let error = Error::new(Kind::CredentialError, message);
            return Err(error.with_hint("Omit one: it is ambiguous which to use.").into_py_err());
        }
        let certificate = part(certificate, "certificate")?;
        let key = key.map(|key| part(key, "key")).transpose()?;
        let opener = password_command.map(words).transpose()?.map(Opener::Command);
        let client_id = client_id.map(|id| id.0.to_owned());
        let place = match (&certificate, &key) {
            _ if passphrase.is_some() => Err("its passphrase was given itself"),
            (Part::Bytes(_), _) => Err("its certificate was given itself, not as a path"),
            (_, Some(Part::Bytes(_))) => Err("its key was given itself, not as a path"),
            (Part::File(path), key) => Ok(CertificatePlace {
                certificate: path.clone(),
                key: key.as_ref().and_then(|key| match key {
                    Part::File(path) => Some(KeyPart::File(path.clone())),
                    Part::Bytes(_) => None,
                }),
                opener: opener.clone(),
                client_id: client_id.clone(),
                strict,
            }),
        };
        let passphrase = match opener {
            Some(opener) => asking(opener),
            None => held(passphrase),
        };
        Self::load(py, CertificateSource { certificate, key, passphrase, client_id, strict }, place)
    }

    /// The subject of the certificate, as RFC 4514 writes it, or its first alternative name.
    #[getter]
    fn subject(&self) -> &str {
        self.0.subject()
    }

    /// The id of the integration in token requests; ``None`` if the certificate alone authorises.
    #[getter]
    fn client_id(&self) -> Option<&str> {
        self.0.client_id()
    }

    /// The SHA-256 of the certificate in base64url, as in ``x5t#S256`` (RFC 8705 §3.1).
    #[getter]
    fn thumbprint(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.details(py)?.0)
    }

    /// From when the certificate is valid, an aware ``datetime``.
    #[getter]
    fn not_before(&self, py: Python<'_>) -> PyResult<Timestamp> {
        Ok(self.details(py)?.1)
    }

    /// Until when the certificate is valid, an aware ``datetime``.
    #[getter]
    fn not_after(&self, py: Python<'_>) -> PyResult<Timestamp> {
        Ok(self.details(py)?.2)
    }

    fn __repr__(&self) -> String {
        let client_id =
            self.client_id().map_or_else(String::new, |id| format!(" client_id={id:?}"));
        format!("<MutualTls subject={:?}{client_id}>", self.subject())
    }

    /// Makes it from its pickle. The files are read, and a command runs, at the first use.
    #[staticmethod]
    fn _restore(state: &Bound<'_, PyAny>) -> PyResult<Self> {
        let MutualTlsState { subject, place } = restore(state)?;
        place.opener.as_ref().map_or(Ok(()), |opener| opener.prepare(state.py()))?;
        let key = match &place.key {
            None => None,
            Some(KeyPart::File(path)) => Some(Part::File(path.clone())),
            Some(KeyPart::Variable) => Some(variable()?),
        };
        let source = CertificateSource {
            certificate: Part::File(place.certificate.clone()),
            key,
            passphrase: place.opener.clone().map_or_else(|| held(None), asking),
            client_id: place.client_id.clone(),
            strict: place.strict,
        };
        Ok(Self(MutualTls::deferred(source, subject), Ok(place)))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let Self(certificate, place) = slf.get();
        let place = place.clone().map_err(|why| {
            PyTypeError::new_err(format!(
                "This certificate is not pickled: {why}. Pass the paths of files, with \
                 password_command= if the key is encrypted, or make the client with \
                 Client() or Client(profile=...)."
            ))
        })?;
        reduce(slf, &MutualTlsState { subject: certificate.subject().to_owned(), place })
    }
}

impl PyMutualTls {
    /// The certificate that variables or a profile name.
    pub(crate) fn from_settings(py: Python<'_>, given: CertificateSettings) -> PyResult<Self> {
        let CertificateSettings { file, key, passphrase, client_id, strict } = given;
        let opener = match passphrase {
            None => None,
            Some(PassphraseSource::Variable) => Some(Opener::Variable),
            Some(PassphraseSource::Command(command)) => {
                warn(py, command.check_file(strict).or_raise()?.as_slice())?;
                Some(Opener::Command(words(&value_of(py, &command.words)?)?))
            }
        };
        let certificate = std::path::absolute(&file).unwrap_or(file);
        let (key, place_of_key) = match key {
            None => (None, None),
            Some(KeySource::File(path)) => {
                let path = std::path::absolute(&path).unwrap_or(path);
                (Some(Part::File(path.clone())), Some(KeyPart::File(path)))
            }
            Some(KeySource::Text(_)) => (Some(variable()?), Some(KeyPart::Variable)),
        };
        let place = CertificatePlace {
            certificate: certificate.clone(),
            key: place_of_key,
            opener: opener.clone(),
            client_id: client_id.clone(),
            strict,
        };
        let source = CertificateSource {
            certificate: Part::File(certificate),
            key,
            passphrase: opener.map_or_else(|| held(None), asking),
            client_id,
            strict,
        };
        Self::load(py, source, Ok(place))
    }

    fn load(
        py: Python<'_>,
        source: CertificateSource,
        place: Result<CertificatePlace, &'static str>,
    ) -> PyResult<Self> {
        let passphrase = detached(py, || source.ask())?.or_raise()?;
        let open = move || MutualTls::open(source, passphrase.as_ref().map(|text| text.as_slice()));
        let Checked { value, warnings } = left_on_interrupt(py, open)?.or_raise()?;
        warn(py, &warnings)?;
        Ok(Self(value, place))
    }

    fn details(&self, py: Python<'_>) -> PyResult<(String, Timestamp, Timestamp)> {
        detached(py, || self.0.details())?.or_raise()
    }
}

fn held(passphrase: Option<Passphrase>) -> Box<AskPassphrase> {
    Box::new(move || Ok(passphrase.as_ref().map(|passphrase| passphrase.0.clone())))
}

/// Runs the command, or reads the variable, each time.
fn asking(opener: Opener) -> Box<AskPassphrase> {
    Box::new(move || {
        let asked = attached(|py| opener.passphrase(py).map_err(|raised| error_of(py, raised)));
        asked.map_or_else(
            || Err(Error::new(Kind::ClosedError, "Python is shutting down: no command can run.")),
            |asked| asked.map(|passphrase| Some(passphrase.0)),
        )
    })
}

/// The key in `SITELINE_PRIVATE_KEY`.
fn variable() -> PyResult<Part> {
    let text = variable_of_pickle(PRIVATE_KEY).or_raise()?;
    Ok(Part::Bytes(Zeroizing::new(text.as_bytes().to_vec())))
}

/// A path, made absolute because it is looked at again later, or the bytes themselves.
fn part(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Part> {
    let file = |path: PathBuf| Part::File(std::path::absolute(&path).unwrap_or(path));
    if let Ok(key) = value.cast::<PyPrivateKey>() {
        let pem = key.get().0.to_pkcs8_pem(None).or_raise()?;
        return Ok(Part::Bytes(Zeroizing::new(pem.as_bytes().to_vec())));
    }
    if let Ok(text) = value.cast::<PyString>() {
        let text = Zeroizing::new(text.to_cow()?.into_owned());
        return Ok(if text.trim().is_empty() || is_key_text(&text) {
            Part::Bytes(Zeroizing::new(text.as_bytes().to_vec()))
        } else {
            file(PathBuf::from(text.as_str()))
        });
    }
    if let Some(bytes) = octets(value)? {
        return Ok(Part::Bytes(bytes));
    }
    if value.hasattr(intern!(value.py(), "__fspath__"))? {
        return value.extract().map(file);
    }
    Err(PyTypeError::new_err(format!(
        "{name}= is a path, PEM text, or bytes (PEM, PKCS#12 or DER); this is {}.",
        described(value)
    )))
}
