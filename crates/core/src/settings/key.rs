//! The sources of a private key and its passphrase.

use std::fs::Metadata;
use std::path::PathBuf;

use zeroize::Zeroizing;

use super::options::Value;
use crate::error::{Error, Kind, Result};

/// The source of the private key.
pub enum KeySource {
    /// A file.
    File(PathBuf),
    /// The variable [`PRIVATE_KEY`](super::PRIVATE_KEY).
    Text(Zeroizing<String>),
}

/// The source of the passphrase of an encrypted key.
pub enum PassphraseSource {
    /// The variable [`PASSPHRASE`](super::PASSPHRASE).
    Variable,
    /// The first line that a command prints.
    Command(PasswordCommand),
}

/// A command that prints a passphrase.
pub struct PasswordCommand {
    /// A text to split into words, or the words.
    pub words: Value,
    /// The file of profiles that names it. Whoever can write to that file chooses what runs.
    pub file: Option<PathBuf>,
}

impl PasswordCommand {
    /// A warning if users other than the owner can write to the file, or if it belongs to another user
    /// (not checked on Windows).
    ///
    /// # Errors
    /// [`Kind::CredentialError`] instead of the warning, if `strict`.
    pub fn check_file(&self, strict: bool) -> Result<Option<String>> {
        let Some(file) = &self.file else { return Ok(None) };
        let Some(who) = std::fs::metadata(file).ok().and_then(|metadata| writers(&metadata)) else {
            return Ok(None);
        };
        let message = format!("{who} the file {}, whose password_command runs.", file.display());
        let hint = "Run chmod go-w on it, as its owner.";
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

/// Who may write to it is in its access control list, which is not read.
#[cfg(not(unix))]
fn writers(_metadata: &Metadata) -> Option<String> {
    None
}

/// A private key, and how to load and check it.
pub struct Key {
    /// Its source.
    pub source: KeySource,
    /// Its passphrase, if it is encrypted.
    pub passphrase: Option<PassphraseSource>,
    /// The expected thumbprint.
    pub kid: Option<String>,
    /// Whether a file that others can read is refused.
    pub strict: bool,
}
