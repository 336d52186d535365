//! [`MutualTls`]: the client certificate of a platform-managed integration (§5.6). It is read again
//! when its files change.

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
use self::state::{CertificateState, Files};
use super::Checked;
use super::key_file;
use super::refusal::{parsed, refused};
use crate::error::on_thread;
use crate::files::Stamp;
use crate::fork::Owned;
use crate::http::ClientCertificate;
use crate::lock::Mutex;
use crate::{Error, Kind, Result};

/// The path of a file, or bytes.
pub enum Part {
    File(PathBuf),
    Bytes(Zeroizing<Vec<u8>>),
}

/// Returns the passphrase of an encrypted key. Called each time the key is read; it may block.
pub type AskPassphrase = dyn Fn() -> Result<Option<Zeroizing<Vec<u8>>>> + Send + Sync;

/// The arguments of a [`MutualTls`].
pub struct CertificateSource {
    /// The certificate and its chain. Contains the private key too if `key` is `None`.
    pub certificate: Part,
    /// The private key.
    pub key: Option<Part>,
    /// Returns the passphrase of the key.
    pub passphrase: Box<AskPassphrase>,
    /// The `client_id` of token requests (RFC 8705 §2); `None` if the certificate alone authorizes
    /// requests.
    pub client_id: Option<String>,
    /// Whether to refuse a key file that others can read.
    pub strict: bool,
}

/// A client certificate, used instead of a [`Credential`](super::Credential). Cheap to clone. Its
/// `Debug` output contains no secret.
#[derive(Clone)]
pub struct MutualTls(Arc<Inner>);

struct Inner {
    source: CertificateSource,
    subject: String,
    /// Held while the files are read, so that only one caller reads them.
    reading: Owned<Mutex<()>>,
    state: Mutex<CertificateState>,
}

impl MutualTls {
    /// Reads and checks the certificate and its key, with warnings about their files. The validity
    /// period is checked at each use, with the service's clock. `passphrase` is the result of
    /// [`CertificateSource::ask`].
    pub fn open(source: CertificateSource, passphrase: Option<&[u8]>) -> Result<Checked<Self>> {
        check_client_id(source.client_id.as_deref())?;
        let files = source.files();
        let Checked { value: loaded, warnings } = source.open(passphrase)?;
        let subject = loaded.subject.clone();
        let loaded = Some(Arc::new(loaded));
        let state = CertificateState { loaded, files: Some(files), ..CertificateState::default() };
        Ok(Checked { value: Self::with_state(source, subject, state), warnings })
    }

    /// A certificate with this subject that is read at its first use.
    pub fn deferred(source: CertificateSource, subject: String) -> Self {
        Self::with_state(source, subject, CertificateState::default())
    }

    fn with_state(source: CertificateSource, subject: String, state: CertificateState) -> Self {
        let (reading, state) = (Owned::empty(), Mutex::new(state));
        Self(Arc::new(Inner { source, subject, reading, state }))
    }

    /// The subject of the certificate (RFC 4514), or its first alternative name if it has no
    /// subject. A replacement must have the same one.
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// The `client_id` of token requests; `None` if the certificate alone authorizes requests.
    pub fn client_id(&self) -> Option<&str> {
        self.0.source.client_id.as_deref()
    }

    /// The SHA-256 of the certificate in base64url, and its validity period.
    pub fn details(&self) -> Result<(String, Timestamp, Timestamp)> {
        let loaded = self.loaded(None)?;
        let thumbprint = loaded.certificate.thumbprint().to_owned();
        Ok((thumbprint, loaded.not_before, loaded.not_after))
    }

    /// The current certificate. It is read again if its files have changed. If they are unusable,
    /// the previous certificate is used while it is valid.
    pub(crate) async fn current(&self, now: Timestamp) -> Result<Arc<ClientCertificate>> {
        let loaded = if let Some(cached) = self.cached(Some(now)) {
            cached
        } else {
            let this = self.clone();
            // Reading may run a command, and decrypts.
            on_thread(move || this.loaded(Some(now))).await?
        };
        // Log here: the caller does not see the records of that thread, or of a getter.
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

    /// The certificate in memory, if the files are unchanged and need not be retried.
    fn cached(&self, now: Option<Timestamp>) -> Option<Arc<Loaded>> {
        let files = self.0.source.files();
        let state = self.0.state.lock();
        state.loaded.clone().filter(|_| state.files == Some(files) && !state.is_due(now))
    }

    fn loaded(&self, now: Option<Timestamp>) -> Result<Arc<Loaded>> {
        let _reading = self.0.reading.get_or_init(Mutex::default).lock();
        if let Some(cached) = self.cached(now) {
            return Ok(cached);
        }
        let files = self.0.source.files();
        let read = self.0.source.load().and_then(|checked| self.same_subject(checked));
        self.0.state.lock().settle(files, read, now)
    }

    /// Refuses another subject, because requests are counted and bookmarks sealed for the subject.
    fn same_subject(&self, checked: Checked<Loaded>) -> Result<Checked<Loaded>> {
        let loaded = &checked.value;
        if loaded.subject == self.0.subject {
            return Ok(checked);
        }
        let message = format!(
            "The certificate is for {:?}, but this credential is for {:?}.",
            loaded.subject, self.0.subject
        );
        Err(refused(message).with_hint(
            "Create another client for it: each subject has its own ledger and bookmarks.",
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
    /// Obtains the passphrase, which may run a command.
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
            // A separate key has precedence over a key next to the certificate.
            key = Some(other.key.ok_or_else(|| {
                let error = refused("key= contains no private key.");
                placed(
                    part,
                    error.with_hint("Leave key= out if certificate= contains the key too."),
                )
            })?);
        }
        let key = key.ok_or_else(|| {
            let found = if certificates.is_empty() { "no certificate" } else { "a certificate" };
            let error = refused(format!("There is {found} and no private key."));
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
        let read = |bytes: &[u8]| {
            parsed(|| Bundle::read(bytes, passphrase)).map_err(|error| placed(part, error))
        };
        let path = match part {
            Part::Bytes(bytes) => return Ok((read(bytes)?, Vec::new())),
            Part::File(path) => path,
        };
        let (bytes, open_mode) = key_file::read(what, path)?;
        let bundle = read(&bytes)?;
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

/// Adds the path of the file, if the part is a file.
fn placed(part: &Part, error: Error) -> Error {
    match part {
        Part::File(path) => key_file::placed(path, error),
        Part::Bytes(_) => error,
    }
}

fn check_client_id(client_id: Option<&str>) -> Result<()> {
    match client_id {
        Some(text) if text.trim().is_empty() || text.chars().any(char::is_control) => {
            Err(Error::new(Kind::ConfigError, "client_id is empty or contains control characters.")
                .with_hint(
                    "It is the id of the integration at the token endpoint. Omit it if the \
                     certificate alone authorizes requests.",
                ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
