//! The formats of a certificate and its key: PEM with either or both, PKCS#12, DER, and base64 of
//! these, as vaults store them.

use pkcs8::der::Tag;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::super::encoding::decrypt;
use super::super::pem;
use super::super::refusal::refused;
use super::pkcs12;
use crate::files::{
    first_element, is_pem, leading_element, member_tags, text_of, unescaped, without_base64,
};
use crate::{Error, Result};

/// The content of a file or text.
#[derive(Default)]
pub(super) struct Bundle {
    pub(super) certificates: Vec<CertificateDer<'static>>,
    pub(super) key: Option<PrivateKeyDer<'static>>,
}

impl Bundle {
    /// Reads any of the formats. An error names the format that was found.
    pub(super) fn read(bytes: &[u8], passphrase: Option<&[u8]>) -> Result<Self> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(refused("It is empty: there is no certificate and no private key.")
                .with_hint("Check its source."));
        }
        let bytes = without_base64(bytes);
        match text_of(&bytes) {
            Some(text) if is_pem(&text) => Self::read_pem(&text, passphrase),
            _ => Self::read_der(&bytes, passphrase),
        }
    }

    fn read_pem(text: &str, passphrase: Option<&[u8]>) -> Result<Self> {
        let text = unescaped(text);
        let mut found = Self::default();
        for block in pem::blocks(&text)? {
            if block.is_certificate() {
                let der = pem::der(&block)?;
                // `TRUSTED CERTIFICATE` contains more data after the certificate.
                let certificate = leading_element(&der).unwrap_or(&der).to_vec();
                found.certificates.push(certificate.into());
            } else if block.is_private_key() {
                let key = private_key(&pem::der(&block)?, passphrase)?;
                if found.key.replace(key).is_some() {
                    return Err(pkcs12::two_keys());
                }
            }
        }
        Ok(found)
    }

    fn read_der(bytes: &[u8], passphrase: Option<&[u8]>) -> Result<Self> {
        use Tag::{BitString, Integer, Sequence};
        let der = first_element(bytes).ok_or_else(unrecognised)?;
        match member_tags(der).as_deref() {
            Some([Sequence, Sequence, BitString]) => {
                Ok(Self { certificates: vec![der.to_vec().into()], key: None })
            }
            Some([Integer, Sequence] | [Integer, Sequence, Sequence]) => {
                pkcs12::read(der, passphrase)
            }
            _ => Ok(Self { certificates: Vec::new(), key: Some(private_key(der, passphrase)?) }),
        }
    }
}

/// Reads a key of any algorithm, in PKCS#8, PKCS#1 or SEC 1.
pub(super) fn private_key(der: &[u8], passphrase: Option<&[u8]>) -> Result<PrivateKeyDer<'static>> {
    let damaged = |_| {
        refused("The private key is damaged, or not in a known format.")
            .with_hint("Known are PKCS#8 (plain or encrypted), PKCS#1 and SEC 1, in PEM or DER.")
    };
    if matches!(member_tags(der).as_deref(), Some([Tag::Sequence, Tag::OctetString])) {
        let opened = decrypt(der, passphrase)?;
        return PrivateKeyDer::try_from(opened.as_bytes().to_vec()).map_err(damaged);
    }
    PrivateKeyDer::try_from(der.to_vec()).map_err(damaged)
}

fn unrecognised() -> Error {
    refused("This is not a certificate or private key in a known format.").with_hint(
        "Known formats are PEM, PKCS#12 (.p12, .pfx) and DER. If you meant a path, remove line \
         breaks from it.",
    )
}
