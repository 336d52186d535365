//! [`Loaded`]: a client certificate with its key, checked.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::InconsistentKeys;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};

use super::super::refusal::refused;
use super::x509::{self, Certificate};
use crate::http::{ClientCertificate, provider};
use crate::{Error, Result};

/// A certificate, its chain and its key.
pub(super) struct Loaded {
    pub(super) certificate: Arc<ClientCertificate>,
    pub(super) subject: String,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
}

impl Loaded {
    /// Checks that the key is usable and belongs to one of the certificates, which must be for
    /// clients.
    pub(super) fn new(
        certificates: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self> {
        let key = provider().key_provider.load_private_key(key).map_err(|_| {
            refused("The private key of the certificate cannot be used.").with_hint(
                "Use RSA of 2048 to 8192 bits, ECDSA with P-256, P-384 or P-521, or Ed25519.",
            )
        })?;
        let leaf = leaf(&certificates, &key)?;
        let Certificate { subject, not_before, not_after, is_for_clients, .. } =
            Certificate::read(&certificates[leaf])?;
        if !is_for_clients {
            return Err(refused(format!(
                "The certificate {subject:?} is not for clients: its extended key usage lacks \
                 clientAuth."
            ))
            .with_hint("Ask its CA for one with the use \"client authentication\"."));
        }
        let thumbprint = x509::thumbprint(&certificates[leaf]);
        let key = CertifiedKey::new(chain(certificates, leaf), key);
        let certificate = Arc::new(ClientCertificate::new(key, thumbprint));
        Ok(Self { certificate, subject, not_before, not_after })
    }

    /// Refuses a certificate that is expired or not yet valid, before anything is sent.
    pub(super) fn check_time(&self, now: Timestamp) -> Result<()> {
        let Self { subject, not_before, not_after, .. } = self;
        let (what, hint) = if now > *not_after {
            (
                format!("expired on {not_after}"),
                "Get a new one from its CA, or check this machine's clock.",
            )
        } else if now < *not_before {
            (
                format!("is not valid before {not_before}"),
                "Wait until then, or check this machine's clock.",
            )
        } else {
            return Ok(());
        };
        let message = format!("The client certificate {subject:?} {what}; now is {now:.0}.");
        Err(refused(message).with_hint(hint).with(|context| context.unsent = true))
    }
}

/// Finds the certificate of the key. It need not be the first.
fn leaf(certificates: &[CertificateDer<'static>], key: &Arc<dyn SigningKey>) -> Result<usize> {
    if certificates.is_empty() {
        return Err(refused("There is a private key and no certificate.").with_hint(
            "Pass the certificate with its chain as certificate=, and this file as key=.",
        ));
    }
    for (index, certificate) in certificates.iter().enumerate() {
        let pair = CertifiedKey::new(vec![certificate.clone()], Arc::clone(key));
        match pair.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
                return Ok(index);
            }
            Err(_) => {}
        }
    }
    let subject = Certificate::read(&certificates[0])?.subject;
    Err(mismatch(&subject, certificates.len()))
}

fn mismatch(subject: &str, count: usize) -> Error {
    let which = match count {
        1 => format!("the certificate {subject:?}"),
        _ => format!("any of the {count} certificates, starting with {subject:?}"),
    };
    refused(format!("The private key does not belong to {which}.")).with_hint(
        "If the certificate was renewed with a new key, use that key. `openssl x509 -noout \
         -pubkey` and `openssl pkey -pubout` show which ones match.",
    )
}

/// Returns the certificate and its issuers in order. Others are dropped.
fn chain(
    mut certificates: Vec<CertificateDer<'static>>,
    leaf: usize,
) -> Vec<CertificateDer<'static>> {
    let mut chain = vec![certificates.swap_remove(leaf)];
    let names = |der: &CertificateDer<'_>| Certificate::read(der).ok().map(|read| read.names);
    while let Some([subject, issuer]) = chain.last().and_then(names) {
        let is_issuer =
            |der: &CertificateDer<'_>| names(der).is_some_and(|[name, _]| name == issuer);
        match certificates.iter().position(is_issuer) {
            Some(index) if subject != issuer => chain.push(certificates.swap_remove(index)),
            _ => break,
        }
    }
    chain
}
