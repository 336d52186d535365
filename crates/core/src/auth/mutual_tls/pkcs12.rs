//! Reads PKCS#12 files. `key_cost` and `p12_keystore` limit the work of decrypting them, and the
//! latter stops at a cycle of issuers.

use p12_keystore::error::Error as Pkcs12Error;
use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy, PrivateKeyChain};

use super::super::encoding::{unknown_encryption, wrong_passphrase};
use super::super::key_cost;
use super::super::refusal::refused;
use super::bundle::{Bundle, private_key};
use crate::{Error, Result};

/// Reads the private key and its certificate chain.
pub(super) fn read(der: &[u8], passphrase: Option<&[u8]>) -> Result<Bundle> {
    let text =
        std::str::from_utf8(passphrase.unwrap_or_default()).map_err(|_| wrong_passphrase())?;
    key_cost::check_all(der, passphrase)?;
    let read = KeyStore::from_pkcs12(der, text, Pkcs12ImportPolicy::Strict);
    let store = read.map_err(|error| match (error, passphrase) {
        (Pkcs12Error::MacError(_), None) => {
            refused("The PKCS#12 file is encrypted, and there is no passphrase.")
                .with_hint("Pass it as passphrase= or password_command=.")
        }
        (Pkcs12Error::MacError(_) | Pkcs12Error::UnpadError, Some(_)) => wrong_passphrase(),
        (Pkcs12Error::UnsupportedEncryptionScheme | Pkcs12Error::UnsupportedMacAlgorithm, _) => {
            unknown_encryption()
        }
        (Pkcs12Error::InvalidParameters, _) => {
            refused("The PKCS#12 file requires too much work to decrypt it.")
                .with_hint("Export it again with fewer rounds: openssl pkcs12 -export writes 2048.")
        }
        _ => refused("The PKCS#12 file is damaged or has a rare form.").with_hint(
            "Convert it with openssl pkcs12 -in plant.p12 -out plant.pem, and pass plant.pem.",
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
            certificates: chain.certs().iter().map(|one| one.as_der().to_vec().into()).collect(),
            key: Some(private_key(chain.key().as_der(), None)?),
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
