//! The sources of a private key and its passphrase.

use std::path::PathBuf;

use zeroize::Zeroizing;

use super::options::Value;

/// The source of the private key.
pub(crate) enum KeySource {
    /// A file.
    File(PathBuf),
    /// The variable [`PRIVATE_KEY`](super::PRIVATE_KEY).
    Text(Zeroizing<String>),
}

/// The source of the passphrase of an encrypted key.
pub(crate) enum PassphraseSource {
    /// The variable [`PASSPHRASE`](super::PASSPHRASE).
    Variable,
    /// The first line that a command prints; the command is a text to split into words, or the words.
    Command(Value),
}

/// A private key, and how to load and check it.
pub(crate) struct Key {
    /// Its source.
    pub source: KeySource,
    /// Its passphrase, if it is encrypted.
    pub passphrase: Option<PassphraseSource>,
    /// The expected thumbprint.
    pub kid: Option<String>,
    /// Whether a file that others can read is refused.
    pub strict: bool,
}
