//! PKCS#12 files: what they ask for is checked before the library reads them, which follows the
//! issuers of a certificate without end if they are a circle.

use p12_keystore::error::Error as Pkcs12Error;
use p12_keystore::{KeyStore, KeyStoreEntry, PrivateKeyChain};
use pkcs8::der::Decode as _;
use pkcs8::pkcs5::pbes2;
use zeroize::Zeroizing;

use super::super::encoding::{unknown_encryption, wrong_passphrase};
use super::super::key_cost::{self, Element, elements};
use super::super::refusal::refused;
use super::bundle::{Bundle, private_key, two_keys};
use super::x509::Certificate;
use crate::Result;

/// `id-encryptedData`, PBES2 and `x509Certificate`, encoded.
const ENCRYPTED_DATA: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 6];
const PBES2: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13];
const X509: [u8; 12] = [6, 10, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 22, 1];
const DEEPEST: usize = 32;

/// Reads the private key and its certificates.
///
/// # Errors
/// `CredentialError`.
pub(super) fn read(der: &[u8], passphrase: Option<&[u8]>) -> Result<Bundle> {
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
        [chain] => Ok(Bundle {
            certificates: chain.chain().iter().map(|one| one.as_der().to_vec().into()).collect(),
            key: Some(private_key(chain.key(), None)?),
        }),
        [] => Err(refused("The PKCS#12 file contains no private key with its certificate.")
            .with_hint("Export it again, with the private key.")),
        _ => Err(two_keys()),
    }
}

/// Refuses too much work, also in what is encrypted, and a circle of issuers.
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

/// What is in a PKCS#12 file, as far as it is needed for the checks.
#[derive(Default)]
struct Found {
    /// What was encrypted with PBES2.
    opened: Vec<Zeroizing<Vec<u8>>>,
    /// Subject and issuer of each certificate.
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

/// The content of an `EncryptedData` (RFC 5652 §8) whose work was checked.
fn opened(value: &Element<'_>, passphrase: &str) -> Option<Vec<u8>> {
    let data = *elements(value.content)?.first()?;
    let info = *elements(data.content)?.get(1)?;
    let [_, algorithm, content] = elements(info.content)?.get(..3)?.try_into().ok()?;
    let [scheme, parameters] = elements(algorithm.content)?.get(..2)?.try_into().ok()?;
    if scheme.whole != PBES2 {
        return None;
    }
    let parameters = pbes2::Parameters::from_der(parameters.whole).ok()?;
    parameters.decrypt(passphrase.as_bytes(), content.content).ok()
}

/// Whether the issuers of any certificate come back to it over another one.
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
