use std::path::PathBuf;

use super::key::{KeySource, PassphraseSource};
use super::options::Options;

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
