//! The errors of keys that cannot be loaded. They never show the text of a key.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Kind, Result};

pub(super) fn refused(message: impl Into<String>) -> Error {
    Error::new(Kind::CredentialError, message)
}

/// Runs a parser of untrusted key material. If a library panics, the file is at fault and not
/// siteline, and the panic would look like an internal error.
pub(super) fn parsed<T>(parse: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(parse)).unwrap_or_else(|_| {
        Err(refused("The key or certificate cannot be read: it is damaged or has a rare form.")
            .with_hint("Export it again with the tool that made it."))
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_parser_is_an_error_of_the_key() {
        let error = parsed::<()>(|| panic!("a defect of a library")).expect_err("no key");
        assert_eq!(error.kind(), Kind::CredentialError);
    }
}
