//! Reads PKCS#12 files, after two checks: the work to decrypt a file is limited, and the issuers of its
//! certificates form no circle. The library would follow a circle of issuers forever.

use ::pkcs12::kdf::{Pkcs12KeyType, derive_key_utf8};
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockCipher, BlockDecrypt, BlockDecryptMut as _, KeyInit, KeyIvInit as _};
use p12_keystore::error::Error as Pkcs12Error;
use p12_keystore::{KeyStore, KeyStoreEntry, PrivateKeyChain};
use pkcs8::der::Decode as _;
use pkcs8::pkcs5::pbes2;
use rustls::pki_types::CertificateDer;
use sha1::Sha1;
use zeroize::Zeroizing;

use super::super::encoding::{unknown_encryption, wrong_passphrase};
use super::super::key_cost::{self, Element, elements};
use super::super::refusal::refused;
use super::x509::Certificate;
use crate::{Error, Result};

/// The encoded object identifier of `id-encryptedData`.
const ENCRYPTED_DATA: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 6];
/// The encoded object identifier of PBES2.
const PBES2: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13];
/// SHA-1 with triple DES (RFC 7292 §C), which older programs write.
const WITH_DES: [u8; 12] = [6, 10, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 12, 1, 3];
/// SHA-1 with 40-bit RC2 (RFC 7292 §C), which older programs write.
const WITH_RC2: [u8; 12] = [6, 10, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 12, 1, 6];
/// The encoded object identifier of `x509Certificate`.
const X509: [u8; 12] = [6, 10, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 22, 1];
const DEEPEST: usize = 32;

/// A private key and its certificate chain, which starts with the key's own certificate.
pub(super) struct KeyAndChain {
    pub(super) key: Zeroizing<Vec<u8>>,
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

/// Reads the private key and its certificate chain.
///
/// # Errors
/// `CredentialError` if the file cannot be decrypted or read, fails a check, or does not contain exactly one
/// private key.
pub(super) fn read(der: &[u8], passphrase: Option<&[u8]>) -> Result<KeyAndChain> {
    let text =
        std::str::from_utf8(passphrase.unwrap_or_default()).map_err(|_| wrong_passphrase())?;
    check(der, text)?;
    let store = KeyStore::from_pkcs12(der, text).map_err(|error| match (error, passphrase) {
        (Pkcs12Error::MacError(_), None) => {
            refused("The PKCS#12 file is encrypted and no passphrase was given.")
                .with_hint("Give it as passphrase= or password_command=.")
        }
        (Pkcs12Error::MacError(_) | Pkcs12Error::UnpadError, Some(_)) => wrong_passphrase(),
        (Pkcs12Error::UnsupportedEncryptionScheme | Pkcs12Error::UnsupportedMacAlgorithm, _) => {
            unknown_encryption()
        }
        _ => refused("The PKCS#12 file is damaged, or of a rare form.").with_hint(
            "Convert it: openssl pkcs12 -in plant.p12 -out plant.pem; then pass plant.pem.",
        ),
    })?;
    let chains: Vec<&PrivateKeyChain> = store
        .entries()
        .filter_map(|(_, entry)| match entry {
            KeyStoreEntry::PrivateKeyChain(chain) => Some(chain),
            _ => None,
        })
        .collect();
    match chains[..] {
        [chain] => Ok(KeyAndChain {
            certificates: chain.chain().iter().map(|one| one.as_der().to_vec().into()).collect(),
            key: Zeroizing::new(chain.key().to_vec()),
        }),
        [] => Err(refused("The PKCS#12 file contains no private key with its certificate.")
            .with_hint("Export it again, with the private key.")),
        _ => Err(two_keys()),
    }
}

pub(super) fn two_keys() -> Error {
    refused("There is more than one private key.")
        .with_hint("Keep the one that belongs to the client certificate.")
}

/// Rejects files that require too much work, including their encrypted parts, and circles of issuers.
fn check(der: &[u8], passphrase: &str) -> Result<()> {
    key_cost::check(der)?;
    let mut found = Found::default();
    found.look(&elements(der).unwrap_or_default(), passphrase, 0);
    for opened in &found.opened {
        key_cost::check(opened)?;
    }
    let mut certificates = found.certificates;
    for opened in &found.opened {
        let mut inside = Found::default();
        inside.look(&elements(opened).unwrap_or_default(), passphrase, 0);
        certificates.extend(inside.certificates);
    }
    if is_circle(&certificates) {
        return Err(refused("The certificates of the PKCS#12 file are issuers of one another.")
            .with_hint(
                "Convert it: openssl pkcs12 -in plant.p12 -out plant.pem; then keep the certificate \
                 of the key and those above it.",
            ));
    }
    Ok(())
}

/// The parts of a PKCS#12 file that the checks need.
#[derive(Default)]
struct Found {
    /// The decrypted content of each `EncryptedData` element.
    opened: Vec<Zeroizing<Vec<u8>>>,
    /// The subject and the issuer of each certificate.
    certificates: Vec<[Vec<u8>; 2]>,
}

impl Found {
    fn look(&mut self, all: &[Element<'_>], passphrase: &str, depth: usize) {
        match all {
            _ if depth > DEEPEST => return,
            // A certificate bag (RFC 7292 §4.2.3).
            [kind, value] if kind.whole == X509 => {
                let octets = elements(value.content).and_then(|inner| inner.first().copied());
                let names = octets.and_then(|octets| {
                    Certificate::read(&octets.content.to_vec().into()).ok().map(|read| read.names)
                });
                self.certificates.extend(names);
            }
            [kind, value] if kind.whole == ENCRYPTED_DATA => {
                self.opened.extend(opened(value, passphrase).map(Zeroizing::new));
            }
            _ => {}
        }
        for element in all {
            if let Some(inner) = elements(element.content) {
                self.look(&inner, passphrase, depth + 1);
            }
        }
    }
}

/// Decrypts an `EncryptedData` element (RFC 5652 §8). The caller has already checked its work.
fn opened(value: &Element<'_>, passphrase: &str) -> Option<Vec<u8>> {
    let data = *elements(value.content)?.first()?;
    let info = *elements(data.content)?.get(1)?;
    let [_, algorithm, content] = elements(info.content)?.get(..3)?.try_into().ok()?;
    let [scheme, parameters] = elements(algorithm.content)?.get(..2)?.try_into().ok()?;
    if scheme.whole == PBES2 {
        let parameters = pbes2::Parameters::from_der(parameters.whole).ok()?;
        return parameters.decrypt(passphrase.as_bytes(), content.content).ok();
    }
    let [salt, rounds] = elements(parameters.content)?.get(..2)?.try_into().ok()?;
    let rounds = i32::try_from(key_cost::number_of(&rounds)?).ok()?;
    let old = Old { passphrase, salt: salt.content, rounds };
    match scheme.whole {
        kind if kind == WITH_DES => old.decrypted::<des::TdesEde3>(content.content, 24),
        kind if kind == WITH_RC2 => old.decrypted::<rc2::Rc2>(content.content, 5),
        _ => None,
    }
}

/// Parameters of the password encryption that PKCS#12 itself defines (RFC 7292 §B).
struct Old<'a> {
    passphrase: &'a str,
    salt: &'a [u8],
    rounds: i32,
}

impl Old<'_> {
    fn decrypted<C: BlockCipher + BlockDecrypt + KeyInit>(
        &self,
        data: &[u8],
        length: usize,
    ) -> Option<Vec<u8>> {
        let derived = |kind, length| {
            derive_key_utf8::<Sha1>(self.passphrase, self.salt, kind, self.rounds, length).ok()
        };
        let key = Zeroizing::new(derived(Pkcs12KeyType::EncryptionKey, length)?);
        let vector = derived(Pkcs12KeyType::Iv, 8)?;
        let cipher = cbc::Decryptor::<C>::new_from_slices(&key, &vector).ok()?;
        cipher.decrypt_padded_vec_mut::<Pkcs7>(data).ok()
    }
}

/// Returns whether any chain of issuers contains a circle. A self-signed certificate is not a circle.
fn is_circle(certificates: &[[Vec<u8>; 2]]) -> bool {
    let issuer_of = |name: &[u8]| {
        let found = certificates.iter().find(|[subject, _]| subject == name);
        found.map(|[_, issuer]| issuer.as_slice()).filter(|issuer| *issuer != name)
    };
    certificates.iter().any(|[subject, _]| {
        let mut name = Some(subject.as_slice());
        for _ in 0..=certificates.len() {
            let Some(issuer) = name.and_then(issuer_of) else { return false };
            name = Some(issuer);
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_of_one_another_are_a_circle() {
        let make = |pairs: &[[&str; 2]]| -> Vec<[Vec<u8>; 2]> {
            pairs.iter().map(|pair| pair.map(|name| name.as_bytes().to_vec())).collect()
        };
        for (pairs, expected) in [
            (&[["a", "a"]][..], false),
            (&[["leaf", "a"], ["a", "root"], ["root", "root"]], false),
            (&[["leaf", "a"]], false),
            (&[["leaf", "a"], ["a", "b"], ["b", "a"]], true),
            (&[["a", "b"], ["b", "a"]], true),
        ] {
            assert_eq!(is_circle(&make(pairs)), expected, "{pairs:?}");
        }
    }
}
