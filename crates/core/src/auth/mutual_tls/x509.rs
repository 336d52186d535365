//! The supported fields of a certificate: its subject, its validity period, its use.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use x509_cert::certificate::{CertificateInner, Raw, TbsCertificateInner};
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::super::refusal::refused;
use crate::Result;
use crate::http::{has_purpose, timestamp};

/// `id-kp-clientAuth` and `anyExtendedKeyUsage` (RFC 5280 §4.2.1.12).
const FOR_CLIENTS: [&str; 2] = ["1.3.6.1.5.5.7.3.2", "2.5.29.37.0"];

pub(super) struct Certificate {
    /// The subject (RFC 4514), or the first alternative name if there is no subject.
    pub(super) subject: String,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    /// Whether clients may use it: it has no extended key usage, or one that includes clients.
    pub(super) is_for_clients: bool,
    pub(super) names: [Vec<u8>; 2],
}

impl Certificate {
    /// Parses a certificate.
    pub(super) fn read(der: &CertificateDer<'_>) -> Result<Self> {
        let read = || {
            let certificate = CertificateInner::<Raw>::from_der(der).ok()?;
            let body = certificate.tbs_certificate();
            Some(Self {
                subject: subject(body)
                    .unwrap_or_else(|| format!("certificate {}", thumbprint(der))),
                not_before: timestamp(body.validity().not_before)?,
                not_after: timestamp(body.validity().not_after)?,
                is_for_clients: has_purpose(body, FOR_CLIENTS)?,
                names: [body.subject().to_der().ok()?, body.issuer().to_der().ok()?],
            })
        };
        read().ok_or_else(|| {
            refused("A certificate is damaged or not X.509.")
                .with_hint("Get the complete file again. `openssl x509 -text` shows details.")
        })
    }
}

/// The SHA-256 of a certificate in base64url (RFC 8705 §3.1, `x5t#S256`).
pub(super) fn thumbprint(der: &CertificateDer<'_>) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, der))
}

fn subject(body: &TbsCertificateInner<Raw>) -> Option<String> {
    if !body.subject().is_empty() {
        return Some(body.subject().to_string());
    }
    let (_, names) = body.get_extension::<SubjectAltName>().ok()??;
    names.0.iter().find_map(|name| match name {
        GeneralName::UniformResourceIdentifier(uri) => Some(uri.to_string()),
        GeneralName::DnsName(host) => Some(host.to_string()),
        GeneralName::Rfc822Name(address) => Some(address.to_string()),
        _ => None,
    })
}
