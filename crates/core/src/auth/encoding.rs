//! The formats of a private key. [`read`] recognises PEM, DER and JWK, decrypts, and returns the
//! numbers of an RSA key. An error names the format that was found, without showing its content.

use pkcs8::der::asn1::UintRef;
use pkcs8::der::{Reader as _, SecretDocument, SliceReader, Tag};
use pkcs8::{EncryptedPrivateKeyInfoRef, ObjectIdentifier, PrivateKeyInfoRef, pkcs5};
use zeroize::Zeroizing;

use super::refusal::{not_rsa, refused};
use super::{jwk, key_cost, pem};
use crate::error::{Error, Result};
use crate::files::{first_element, is_bare_base64, is_pem, member_tags, text_of, without_base64};

/// The numbers of an RSA private key, big-endian (RFC 8017, A.1.2).
pub(super) struct Components {
    pub(super) n: Vec<u8>,
    pub(super) e: Vec<u8>,
    pub(super) d: Secret,
    pub(super) p: Secret,
    pub(super) q: Secret,
    pub(super) dp: Secret,
    pub(super) dq: Secret,
    pub(super) qi: Secret,
}

/// Bytes that are wiped when they are dropped.
pub(super) type Secret = Zeroizing<Vec<u8>>;

/// Reads a private key in any format.
pub(super) fn read(bytes: &[u8], passphrase: Option<&[u8]>) -> Result<Components> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(refused("The private key is empty.")
            .with_hint("Check the file or variable of the key."));
    }
    let bytes = without_base64(bytes);
    if let Some(text) = text_of(&bytes)
        && let Some(components) = read_text(&text, passphrase)?
    {
        return Ok(components);
    }
    read_der(first_element(&bytes).ok_or_else(unrecognised)?, passphrase)
}

/// Whether a text looks like a key: it has a BEGIN line or a line break, or is a JSON object or
/// long base64. Such a text is never treated as a path and never shown.
pub fn is_key_text(text: &str) -> bool {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    is_pem(text) || text.contains(['\n', '\r']) || start.starts_with('{') || is_bare_base64(text)
}

/// Returns `None` for a text in another format.
fn read_text(text: &str, passphrase: Option<&[u8]>) -> Result<Option<Components>> {
    if is_pem(text) {
        read_der(&pem::private_key_der(text)?, passphrase).map(Some)
    } else if text.trim_start().starts_with('{') {
        jwk::read_private(text).map(Some)
    } else if text.starts_with("PuTTY-User-Key-File") {
        Err(refused("The key is in PuTTY's own format.").with_hint(
            "Export it as an OpenSSH key with PuTTYgen, then: ssh-keygen -p -m PKCS8 -f it",
        ))
    } else {
        Ok(None)
    }
}

fn read_der(der: &[u8], passphrase: Option<&[u8]>) -> Result<Components> {
    use Tag::{BitString, Integer, OctetString, Sequence};
    match member_tags(der).as_deref() {
        Some([Integer, Sequence, OctetString, ..]) => read_pkcs8(der),
        Some([Integer, Integer, Integer, ..]) => read_pkcs1(der),
        Some([Sequence, OctetString]) => read_pkcs8(decrypt(der, passphrase)?.as_bytes()),
        Some([Sequence, BitString] | [Integer, Integer]) => Err(not_rsa("a public key")),
        Some([Sequence, Sequence, BitString]) => Err(not_rsa("a certificate")),
        Some([Integer, OctetString, ..]) => Err(not_rsa("an EC key")),
        Some([Integer, Sequence] | [Integer, Sequence, Sequence]) => Err(refused(
            "This is a PKCS#12 bundle (.p12, .pfx), not a key.",
        )
        .with_hint("Extract the key: openssl pkcs12 -nocerts -noenc -in key.p12 -out key.pem")),
        _ => Err(unrecognised()),
    }
}

fn read_pkcs1(der: &[u8]) -> Result<Components> {
    let mut reader = SliceReader::new(der).map_err(|_| damaged())?;
    reader
        .sequence(|members| -> pkcs8::der::Result<_> {
            let mut next = || members.decode::<UintRef<'_>>().map(|number| number.as_bytes());
            // A multi-prime key (version 1) has another member and is refused as damaged.
            let _version = next()?;
            let (n, e) = (next()?.to_vec(), next()?.to_vec());
            let mut secret = || next().map(|bytes| Zeroizing::new(bytes.to_vec()));
            Ok(Components {
                n,
                e,
                d: secret()?,
                p: secret()?,
                q: secret()?,
                dp: secret()?,
                dq: secret()?,
                qi: secret()?,
            })
        })
        .map_err(|_| damaged())
}

fn read_pkcs8(der: &[u8]) -> Result<Components> {
    let info = PrivateKeyInfoRef::try_from(der).map_err(|_| damaged())?;
    match algorithm_name(info.algorithm.oid) {
        None => read_pkcs1(info.private_key.as_bytes()),
        Some(other) => Err(not_rsa(other)),
    }
}

/// Returns `None` for plain RSA.
fn algorithm_name(oid: ObjectIdentifier) -> Option<&'static str> {
    Some(match oid.to_string().as_str() {
        "1.2.840.113549.1.1.1" => return None,
        "1.2.840.113549.1.1.10" => "an RSA key that is restricted to PSS signatures",
        "1.2.840.10045.2.1" => "an EC key",
        "1.3.101.112" => "an Ed25519 key",
        "1.3.101.113" => "an Ed448 key",
        "1.3.101.110" | "1.3.101.111" => "a key for X25519 or X448, which cannot sign",
        "1.2.840.10040.4.1" => "a DSA key",
        _ => "a key of another algorithm",
    })
}

/// Decrypts a private key and returns it as PKCS#8.
pub(super) fn decrypt(der: &[u8], passphrase: Option<&[u8]>) -> Result<SecretDocument> {
    let Some(passphrase) = passphrase else {
        return Err(refused("The private key is encrypted, and there is no passphrase.")
            .with_hint("Pass it as passphrase= or password_command=."));
    };
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(der).map_err(|_| unknown_encryption())?;
    key_cost::check(&encrypted.encryption_algorithm)?;
    let opened = encrypted.decrypt(passphrase).map_err(|error| match error {
        pkcs8::Error::EncryptedPrivateKey(
            pkcs5::Error::NoPbes1CryptSupport
            | pkcs5::Error::UnsupportedAlgorithm { .. }
            | pkcs5::Error::AlgorithmParametersInvalid { .. },
        ) => unknown_encryption(),
        _ => wrong_passphrase(),
    })?;
    // One in 256 wrong passphrases yields a valid padding after random bytes.
    match member_tags(opened.as_bytes()).as_deref() {
        Some([Tag::Integer, Tag::Sequence, Tag::OctetString, ..]) => Ok(opened),
        _ => Err(wrong_passphrase()),
    }
}

pub(super) fn wrong_passphrase() -> Error {
    refused("The private key could not be decrypted with this passphrase.").with_hint(
        "Check that it belongs to this key file, and that no quotes, blanks or line breaks are around it.",
    )
}

pub(super) fn unknown_encryption() -> Error {
    refused("The encryption of the private key is old or rare, and not supported.").with_hint(
        "Convert the key once and keep the passphrase: openssl pkcs8 -topk8 -v2 aes-256-cbc -v2prf \
         hmacWithSHA256 -in key.pem -out key-pkcs8.pem",
    )
}

fn damaged() -> Error {
    refused("The private key is damaged: its encoding is truncated or inconsistent.").with_hint(
        "Copy the complete file again in binary mode. `openssl pkey -check` shows details.",
    )
}

fn unrecognised() -> Error {
    refused("This is not a private key in a known format.").with_hint(
        "Known formats are PEM (PKCS#8, plain or encrypted; PKCS#1), the same in DER, and a JWK \
         with its private members. If you meant a path, remove line breaks from it.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k2_the_algorithm_of_another_key_is_named() {
        for (oid, name) in [
            ("1.2.840.113549.1.1.10", "an RSA key that is restricted to PSS signatures"),
            ("1.2.840.10045.2.1", "an EC key"),
            ("1.3.101.112", "an Ed25519 key"),
            ("1.3.101.113", "an Ed448 key"),
            ("1.3.101.110", "a key for X25519 or X448, which cannot sign"),
            ("1.3.101.111", "a key for X25519 or X448, which cannot sign"),
            ("1.2.840.10040.4.1", "a DSA key"),
            ("1.2.3.4", "a key of another algorithm"),
        ] {
            assert_eq!(algorithm_name(ObjectIdentifier::new_unwrap(oid)), Some(name));
        }
        assert_eq!(algorithm_name(ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1")), None);
    }
}
