//! Verifies the certificate of a service. A trusted certificate is also accepted if the service
//! itself presents it. webpki rejects a CA certificate that a server presents, but `openssl req
//! -x509` creates such certificates by default.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error as Tls, RootCertStore, SignatureScheme,
};
use rustls_platform_verifier::Verifier;
use x509_cert::certificate::{CertificateInner, Raw, TbsCertificateInner};
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::ExtendedKeyUsage;
use x509_cert::time::Time;

use super::failure;
use crate::error::Result;

/// `id-kp-serverAuth` and `anyExtendedKeyUsage` (RFC 5280 §4.2.1.12).
const FOR_SERVERS: [&str; 2] = ["1.3.6.1.5.5.7.3.1", "2.5.29.37.0"];

/// Trusts a set of certificates, and the certificates that they issued.
#[derive(Debug)]
pub(crate) struct ServerVerifier {
    issued: Arc<dyn ServerCertVerifier>,
    /// The trusted certificates, or `None` for the certificates of the machine's store.
    named: Option<Vec<CertificateDer<'static>>>,
}

impl ServerVerifier {
    pub(crate) fn of_certificates(
        named: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self> {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(named.iter().cloned());
        let builder =
            WebPkiServerVerifier::builder_with_provider(store.into(), Arc::clone(provider));
        let issued = builder.build().map_err(|_| failure::no_store())?;
        Ok(Self { issued, named: Some(named) })
    }

    /// Trusts the certificates that the platform trusts. Returns `None` if it has no store.
    pub(crate) fn of_platform(provider: &Arc<CryptoProvider>) -> Option<Self> {
        let verifier = Verifier::new(Arc::clone(provider)).ok()?;
        Some(Self { issued: Arc::new(verifier), named: None })
    }

    fn names(&self, certificate: &CertificateDer<'_>) -> bool {
        match &self.named {
            Some(named) => named.contains(certificate),
            // On other platforms the refusal of the system's verifier is final.
            None if cfg!(target_os = "linux") => {
                rustls_native_certs::load_native_certs().certs.contains(certificate)
            }
            None => false,
        }
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Tls> {
        let issued = self.issued.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match issued {
            Err(_) if self.names(end_entity) => verify_itself(end_entity, server_name, now),
            issued => issued,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Tls> {
        self.issued.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Tls> {
        self.issued.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issued.supported_verify_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[rustls::DistinguishedName]> {
        self.issued.root_hint_subjects()
    }
}

/// Verifies a trusted certificate without its issuer. It must be valid now, for servers, and for
/// this host name.
fn verify_itself(
    der: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> std::result::Result<ServerCertVerified, Tls> {
    let certificate = ParsedCertificate::try_from(der)?;
    let read = CertificateInner::<Raw>::from_der(der).map_err(|_| CertificateError::BadEncoding)?;
    let body = read.tbs_certificate();
    let (not_before, not_after) =
        (unix(body.validity().not_before), unix(body.validity().not_after));
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
    }
    if !has_purpose(body, FOR_SERVERS).ok_or(CertificateError::BadEncoding)? {
        return Err(CertificateError::InvalidPurpose.into());
    }
    verify_server_name(&certificate, server_name)?;
    Ok(ServerCertVerified::assertion())
}

/// Whether a certificate may be used for one of these purposes: it has no extended key usage, or one
/// that includes a purpose. Returns `None` for an unreadable extension.
pub(crate) fn has_purpose(body: &TbsCertificateInner<Raw>, purposes: [&str; 2]) -> Option<bool> {
    let usage = body.get_extension::<ExtendedKeyUsage>().ok()?;
    Some(usage.is_none_or(|(_, usage)| {
        usage.0.iter().any(|purpose| purposes.contains(&purpose.to_string().as_str()))
    }))
}

/// The instant of a certificate's time; `None` out of range.
pub(crate) fn timestamp(time: Time) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(time.to_unix_duration().as_secs()).ok()?).ok()
}

fn unix(time: Time) -> UnixTime {
    UnixTime::since_unix_epoch(time.to_unix_duration())
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, IsCa,
        KeyPair, KeyUsagePurpose, date_time_ymd,
    };

    use super::*;
    use crate::http::handshake_problem;
    use crate::http::provider;

    /// Returns a self-signed certificate for `plant.example` that is valid in 2026. `change` edits
    /// its parameters first.
    fn made(change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
        let names = vec!["plant.example".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("names");
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2027, 1, 1);
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().clone()
    }

    fn verified(
        trusted: &CertificateDer<'static>,
        presented: &CertificateDer<'_>,
        host: &str,
        now: u64,
    ) -> std::result::Result<(), String> {
        let verifier = ServerVerifier::of_certificates(vec![trusted.clone()], &provider());
        let host = ServerName::try_from(host.to_owned()).expect("a name");
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now));
        let seen = verifier.expect("trusted").verify_server_cert(presented, &[], &host, &[], now);
        seen.map(drop).map_err(|error| handshake_problem(&error).0)
    }

    /// 2026-06-01.
    const NOW: u64 = 1_780_272_000;
    /// 2025-06-01.
    const BEFORE: u64 = 1_748_736_000;
    /// 2027-06-01.
    const AFTER: u64 = 1_811_808_000;

    #[test]
    fn a_self_signed_certificate_that_was_named_is_accepted() {
        let authority = IsCa::Ca(BasicConstraints::Unconstrained);
        let no_certificates = vec![KeyUsagePurpose::DigitalSignature];
        for (is_ca, usages, purposes) in [
            (authority, vec![], vec![]),
            (IsCa::Ca(BasicConstraints::Constrained(0)), vec![], vec![]),
            (IsCa::ExplicitNoCa, vec![], vec![]),
            (IsCa::NoCa, vec![], vec![]),
            (authority, no_certificates, vec![]),
            (authority, vec![], vec![ExtendedKeyUsagePurpose::ServerAuth]),
        ] {
            let form = format!("{is_ca:?} {usages:?} {purposes:?}");
            let certificate = made(|params| {
                (params.is_ca, params.key_usages) = (is_ca, usages);
                params.extended_key_usages = purposes;
            });
            for host in ["plant.example", "127.0.0.1"] {
                assert_eq!(
                    verified(&certificate, &certificate, host, NOW),
                    Ok(()),
                    "{form} {host}"
                );
            }
        }
    }

    #[test]
    fn a_named_certificate_is_still_checked() {
        let authority = IsCa::Ca(BasicConstraints::Unconstrained);
        let good = made(|params| params.is_ca = authority);
        let clients = made(|params| {
            params.is_ca = authority;
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        });
        let nameless = made(|params| {
            params.is_ca = authority;
            params.subject_alt_names.clear();
        });
        let strange = made(|params| {
            params.is_ca = authority;
            let mut extension =
                CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99], vec![5, 0]);
            extension.set_criticality(true);
            params.custom_extensions.push(extension);
        });
        let another = made(|params| params.is_ca = authority);
        for (trusted, presented, host, now, why) in [
            (&good, &good, "plant.example", AFTER, "expired on 2027-01-01T00:00:00Z"),
            (&good, &good, "plant.example", BEFORE, "is not valid before 2026-01-01T00:00:00Z"),
            (&good, &good, "other.example", NOW, "for another host name: plant.example, 127.0.0.1"),
            (&clients, &clients, "plant.example", NOW, "is not for servers"),
            (&nameless, &nameless, "plant.example", NOW, "no host name as subjectAltName"),
            (&strange, &strange, "plant.example", NOW, "a critical extension"),
            (&good, &another, "plant.example", NOW, "is self-signed or a CA's own"),
        ] {
            let text = verified(trusted, presented, host, now).expect_err(why);
            assert!(text.contains(why), "{why}: {text}");
            assert!(!text.contains(['"', '{', '[']) && !text.contains("Name("), "{text}");
        }
    }
}
