//! The errors of keys that cannot be loaded. They never show the text of a key.

use crate::error::{Error, Kind};

pub(super) fn refused(message: impl Into<String>) -> Error {
    Error::new(Kind::CredentialError, message)
}

/// The error for anything other than an RSA private key.
pub(super) fn not_rsa(found: &str) -> Error {
    let hint = if found.starts_with("a public") || found.starts_with("a certificate") {
        "Pass the private key that belongs to it. It stays on this machine: only its public part \
         is enrolled."
    } else {
        "Create one with siteline.PrivateKey.generate(), or: \
         openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -out key.pem; then enroll it."
    };
    refused(format!("RS256 needs an RSA private key; this is {found}.")).with_hint(hint)
}
