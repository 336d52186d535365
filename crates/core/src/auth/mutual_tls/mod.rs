//! [`MutualTls`]: the client certificate of a platform-managed integration (§1, §5.6), read again when
//! its files change.
//!
//! | file | contents |
//! |---|---|
//! | `bundle` | the formats of certificate and key |
//! | `pkcs12` | PKCS#12 files |
//! | `x509` | what is read of a certificate |
//! | `loaded` | a certificate that belongs to its key and may be used by a client |
//! | `state` | what was read, and whether the files have changed since |

mod bundle;
mod loaded;
mod pkcs12;
mod state;
mod x509;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use zeroize::Zeroizing;

use self::bundle::Bundle;
use self::loaded::Loaded;
use self::state::{Files, State};
use super::Checked;
use super::key_file::{self, shown};
use super::refusal::refused;
use crate::files::Stamp;
use crate::fork::Owned;
use crate::http::ClientCertificate;
use crate::lock::Mutex;
use crate::system::on_thread;
use crate::{Error, Kind, Result};

/// A file, or bytes that were passed themselves.
pub enum Part {
    /// Its path.
    File(PathBuf),
    /// Its bytes.
    Bytes(Zeroizing<Vec<u8>>),
}

/// Gets the passphrase of an encrypted key, each time that the key is read. It may block.
pub type AskPassphrase = dyn Fn() -> Result<Option<Zeroizing<Vec<u8>>>> + Send + Sync;

/// The arguments of a [`MutualTls`].
pub struct CertificateSource {
    /// The certificate and its chain; with the private key, if `key` is `None`.
    pub certificate: Part,
    /// The private key.
    pub key: Option<Part>,
    /// Gets its passphrase.
    pub passphrase: Box<AskPassphrase>,
    /// The `client_id` of token requests (RFC 8705 §2); `None` if the certificate alone authorises.
    pub client_id: Option<String>,
    /// Whether a key file that others can read is refused.
    pub strict: bool,
}

/// A client certificate, in the place of a [`Credential`](super::Credential). Cheap to clone; safe to
/// print.
#[derive(Clone)]
pub struct MutualTls(Arc<Inner>);

struct Inner {
    source: CertificateSource,
    subject: String,
    /// One caller at a time reads the files.
    reading: Owned<Mutex<()>>,
    state: Mutex<State>,
}

impl MutualTls {
    /// Reads and checks the certificate and its key, with warnings about their files (K8). Whether it is
    /// within its time is checked when it is used, by the service's clock.
    ///
    /// # Errors
    /// `CredentialError` that names what was found instead; `ConfigError` for an empty `client_id`.
    #[cfg(test)]
    pub fn load(source: CertificateSource) -> Result<Checked<Self>> {
        let passphrase = source.ask()?;
        Self::open(source, passphrase.as_ref().map(|text| text.as_slice()))
    }

    /// As [`MutualTls::load`], with what [`CertificateSource::ask`] returned.
    ///
    /// # Errors
    /// As [`MutualTls::load`].
    pub fn open(source: CertificateSource, passphrase: Option<&[u8]>) -> Result<Checked<Self>> {
        check_client_id(source.client_id.as_deref())?;
        let files = source.files();
        let Checked { value: loaded, warnings } = source.open(passphrase)?;
        let subject = loaded.subject.clone();
        let loaded = Some(Arc::new(loaded));
        let state = State { loaded, files: Some(files), ..State::default() };
        Ok(Checked { value: Self::with_state(source, subject, state), warnings })
    }

    /// A certificate with this subject that is read at its first use.
    #[must_use]
    pub fn deferred(source: CertificateSource, subject: String) -> Self {
        Self::with_state(source, subject, State::default())
    }

    fn with_state(source: CertificateSource, subject: String, state: State) -> Self {
        let (reading, state) = (Owned::empty(), Mutex::new(state));
        Self(Arc::new(Inner { source, subject, reading, state }))
    }

    /// The subject of the certificate (RFC 4514), or its first alternative name where it has none. A
    /// certificate that replaces it has the same.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// The `client_id` of token requests; `None` if the certificate alone authorises.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        self.0.source.client_id.as_deref()
    }

    /// The SHA-256 of the certificate in base64url, and from when until when it is valid.
    ///
    /// # Errors
    /// Those of [`MutualTls::load`], if it was not read yet.
    pub fn details(&self) -> Result<(String, Timestamp, Timestamp)> {
        let loaded = self.loaded(None)?;
        let thumbprint = loaded.certificate.thumbprint().to_owned();
        Ok((thumbprint, loaded.not_before, loaded.not_after))
    }

    /// The certificate as its files have it now: read again if they have changed (M5). While they are
    /// not usable, the former one is used for as long as it is valid.
    ///
    /// # Errors
    /// `CredentialError` if it is out of its time at `now`, and those of [`MutualTls::load`].
    pub(crate) async fn current(&self, now: Timestamp) -> Result<Arc<ClientCertificate>> {
        let loaded = if let Some(known) = self.known(Some(now)) {
            known
        } else {
            let this = self.clone();
            // It may wait for a command, and decrypts.
            let read = on_thread(move || this.loaded(Some(now))).await;
            read.map_err(|refused| Error::no_thread(&refused))??
        };
        // Here and not where they arise: no caller sees the records of that thread, or of a getter.
        let unlogged = std::mem::take(&mut self.0.state.lock().unlogged);
        for (level, text) in unlogged {
            log::log!(target: "siteline::token", level, "{text}");
        }
        loaded.check_time(now).map_err(|error| match &self.0.state.lock().unusable {
            Some(new) => error.with_hint(format!("Its files were replaced: {}", new.why)),
            None => error,
        })?;
        Ok(Arc::clone(&loaded.certificate))
    }

    /// What was read, if the files have not changed since, and need not be tried again.
    fn known(&self, now: Option<Timestamp>) -> Option<Arc<Loaded>> {
        let files = self.0.source.files();
        let state = self.0.state.lock();
        state.loaded.clone().filter(|_| state.files == Some(files) && !state.is_due(now))
    }

    fn loaded(&self, now: Option<Timestamp>) -> Result<Arc<Loaded>> {
        let _reading = self.0.reading.get_or_init(Mutex::default).lock();
        if let Some(known) = self.known(now) {
            return Ok(known);
        }
        let files = self.0.source.files();
        let read = self.0.source.load().and_then(|checked| self.same_subject(checked));
        self.0.state.lock().settle(files, read, now)
    }

    /// Requests are counted, and bookmarks sealed, for the subject.
    fn same_subject(&self, checked: Checked<Loaded>) -> Result<Checked<Loaded>> {
        let loaded = &checked.value;
        if loaded.subject == self.0.subject {
            return Ok(checked);
        }
        let message = format!(
            "The certificate is for {:?}; this credential is for {:?}.",
            loaded.subject, self.0.subject
        );
        Err(refused(message).with_hint(
            "Make another client for it: each subject has its own ledger and bookmarks.",
        ))
    }
}

impl fmt::Debug for MutualTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutualTls")
            .field("subject", &self.0.subject)
            .field("client_id", &self.client_id())
            .finish_non_exhaustive()
    }
}

impl CertificateSource {
    /// Gets the passphrase, which may run a command.
    ///
    /// # Errors
    /// Those of the command.
    pub fn ask(&self) -> Result<Option<Zeroizing<Vec<u8>>>> {
        (self.passphrase)()
    }

    fn load(&self) -> Result<Checked<Loaded>> {
        let passphrase = self.ask()?;
        self.open(passphrase.as_ref().map(|text| text.as_slice()))
    }

    fn open(&self, passphrase: Option<&[u8]>) -> Result<Checked<Loaded>> {
        let (bundle, mut warnings) = self.read("certificate", &self.certificate, passphrase)?;
        let Bundle { certificates, mut key } = bundle;
        if let Some(part) = &self.key {
            let (other, more) = self.read("private key", part, passphrase)?;
            warnings.extend(more);
            // The key of a file that is named for it counts.
            key = Some(other.key.ok_or_else(|| {
                let error = refused("There is no private key in what was given as key=.");
                placed(
                    part,
                    error.with_hint("Leave key= out if certificate= contains the key too."),
                )
            })?);
        }
        let key = key.ok_or_else(|| {
            let found = if certificates.is_empty() { "no certificate" } else { "a certificate" };
            let error = refused(format!("There is {found}, and no private key."));
            placed(
                &self.certificate,
                error.with_hint("Pass the key as key=, or a certificate= that contains both."),
            )
        })?;
        let value =
            Loaded::new(certificates, key).map_err(|error| placed(&self.certificate, error))?;
        Ok(Checked { value, warnings })
    }

    fn read(
        &self,
        what: &str,
        part: &Part,
        passphrase: Option<&[u8]>,
    ) -> Result<(Bundle, Vec<String>)> {
        let path = match part {
            Part::Bytes(bytes) => return Ok((Bundle::read(bytes, passphrase)?, Vec::new())),
            Part::File(path) => path,
        };
        let (bytes, open_mode) = key_file::read(what, path)?;
        let bundle = Bundle::read(&bytes, passphrase).map_err(|error| placed(part, error))?;
        let open_mode = open_mode.filter(|_| bundle.key.is_some());
        let warnings = key_file::check_mode(path, open_mode, self.strict)?;
        Ok((bundle, warnings))
    }

    fn files(&self) -> Files {
        [Some(&self.certificate), self.key.as_ref()].map(|part| match part {
            Some(Part::File(path)) => Stamp::read(path).ok(),
            Some(Part::Bytes(_)) | None => None,
        })
    }
}

/// The error with the path of the file, if it is about one.
fn placed(part: &Part, error: Error) -> Error {
    match part {
        Part::File(path) => {
            error.with(|context| context.message = format!("{}: {}", shown(path), context.message))
        }
        Part::Bytes(_) => error,
    }
}

fn check_client_id(client_id: Option<&str>) -> Result<()> {
    match client_id {
        Some(text) if text.trim().is_empty() || text.chars().any(char::is_control) => {
            Err(Error::new(Kind::ConfigError, "client_id is empty, or has control characters.")
                .with_hint(
                    "It is the id of the integration at the token endpoint; leave it out if the \
                     certificate alone authorises requests.",
                ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
