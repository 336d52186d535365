//! Where a private key and its passphrase come from.

use std::path::PathBuf;

use zeroize::Zeroizing;

use super::options::Value;

/// Where the private key is.
pub enum KeySource {
    /// In a file.
    File(PathBuf),
    /// In the variable [`PRIVATE_KEY`](super::PRIVATE_KEY).
    Text(Zeroizing<String>),
}

/// Where the passphrase of an encrypted key comes from.
pub enum PassphraseSource {
    /// From the variable [`PASSPHRASE`](super::PASSPHRASE).
    Text(Zeroizing<String>),
    /// From the first line that a command prints: a text to be split into words, or the words.
    Command(Value),
}

/// What a key is opened and checked with.
pub struct Key {
    /// Where it is.
    pub source: KeySource,
    /// What opens it, if it is encrypted.
    pub passphrase: Option<PassphraseSource>,
    /// What its thumbprint must be.
    pub kid: Option<String>,
    /// Whether a file that others can read is refused.
    pub strict: bool,
}
