use std::fs::Metadata;
use std::path::PathBuf;

use super::options::{Options, Value};
use crate::error::{Error, Kind, Result};

/// The settings of a credential before its creation.
pub struct CredentialSettings {
    pub mode: Mode,
    /// `None` if it is in the file of the certificate.
    pub key: Option<KeySource>,
    pub passphrase: Option<PassphraseSource>,
    pub kid: Option<String>,
    /// Whether a key file that other users can read is rejected.
    pub strict: bool,
    /// The integration's id in token requests with a client certificate.
    pub client_id: Option<String>,
    /// The options of assertions.
    pub options: Options,
}

pub enum Mode {
    /// Signs assertions for this subject.
    Assertion(String),
    /// Presents the certificate in this file, with its chain.
    MutualTls(PathBuf),
}

pub enum KeySource {
    File(PathBuf),
    /// The variable [`PRIVATE_KEY`](super::PRIVATE_KEY).
    Variable,
}

pub enum PassphraseSource {
    /// The variable [`PASSPHRASE`](super::PASSPHRASE).
    Variable,
    /// The first line that a command prints.
    Command(PasswordCommand),
}

pub struct PasswordCommand {
    /// The words, or one text to split into words.
    pub words: Value,
    /// The profile file with the command. Who can write to it chooses what runs.
    pub file: Option<PathBuf>,
}

impl PasswordCommand {
    /// Returns a warning, or an error if `strict`, if another user owns the file or can write to
    /// it. Not checked on Windows.
    pub fn check_file(&self, strict: bool) -> Result<Option<String>> {
        let Some(file) = &self.file else { return Ok(None) };
        let Some(who) = std::fs::metadata(file).ok().and_then(|metadata| writers(&metadata)) else {
            return Ok(None);
        };
        let message =
            format!("{who} the file {}, which contains the password_command.", file.display());
        let hint = "Run chmod go-w on it as its owner.";
        if strict {
            return Err(Error::new(Kind::CredentialError, message).with_hint(hint));
        }
        Ok(Some(format!("{message} {hint}")))
    }
}

#[cfg(unix)]
fn writers(metadata: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let (mode, owner) = (metadata.mode() & 0o777, metadata.uid());
    if mode & 0o022 != 0 {
        return Some(format!("Other users can write to (mode {mode:03o})"));
    }
    let is_own = owner == 0 || owner == nix::unistd::Uid::effective().as_raw();
    (!is_own).then(|| format!("Another user (uid {owner}) owns"))
}

/// The writers are in an access control list, which is not read.
#[cfg(not(unix))]
fn writers(_metadata: &Metadata) -> Option<String> {
    None
}
