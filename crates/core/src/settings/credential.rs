use std::fs::Metadata;
use std::path::PathBuf;

use super::options::{Options, Value};
use crate::error::{Error, Kind, Result};

/// The settings of a credential before its creation.
pub struct CredentialSettings {
    /// The subject that signs assertions; `None` for a client certificate.
    pub subject: Option<String>,
    pub kid: Option<String>,
    /// The parts of the credential: `certificate`, `key` or `key_variable`, `password_command` or
    /// `passphrase_variable`, `client_id` and `strict`.
    pub parts: Options,
    /// The options of assertions.
    pub options: Options,
    /// The profile file with the `password_command`. Who can write to it chooses what runs.
    pub(super) command_file: Option<PathBuf>,
}

impl CredentialSettings {
    /// Returns a warning, or an error if `strict`, if another user owns the file of the
    /// `password_command` or can write to it. Not checked on Windows.
    pub fn check_command_file(&self) -> Result<Option<String>> {
        let Some(file) = &self.command_file else { return Ok(None) };
        let Some(who) = std::fs::metadata(file).ok().and_then(|metadata| writers(&metadata)) else {
            return Ok(None);
        };
        let message =
            format!("{who} the file {}, which contains the password_command.", file.display());
        let hint = "Run chmod go-w on it as its owner.";
        if self.parts.contains(&("strict", Value::Flag(true))) {
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
