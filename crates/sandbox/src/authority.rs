//! The certificate authority of one sandbox, for its own certificate and its clients' certificates.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, SanType, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::SandboxError;

const ORGANISATION: &str = "siteline sandbox";
/// The names of the service's own certificate.
const SERVER_NAMES: [&str; 3] = ["127.0.0.1", "::1", "localhost"];
/// The clock of a sandbox may show any time: its own certificates are valid for all that it may.
const YEARS: [i32; 2] = [1971, 2200];

pub(super) struct Authority {
    params: CertificateParams,
    key: KeyPair,
    der: CertificateDer<'static>,
    pem: String,
}

pub(super) struct Issued {
    /// The certificate, the intermediate one if there is one, and the private key.
    pub(super) pem: String,
    pub(super) der: CertificateDer<'static>,
}

pub(super) struct ClientCertificate<'a> {
    pub(super) name: &'a str,
    pub(super) begins: Timestamp,
    pub(super) ends: Timestamp,
    /// Otherwise for servers.
    pub(super) is_for_clients: bool,
}

impl Authority {
    /// A root, or an authority below another.
    pub(super) fn new(name: &str, above: Option<&Self>) -> Result<Self, SandboxError> {
        let mut params = params(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        [params.not_before, params.not_after] = YEARS.map(|year| date_time_ymd(year, 1, 1));
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = match above {
            Some(above) => params.signed_by(&key, &above.issuer()),
            None => params.self_signed(&key),
        };
        let certificate = certificate.map_err(failed)?;
        let (der, pem) = (certificate.der().clone(), certificate.pem());
        Ok(Self { params, key, der, pem })
    }

    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    pub(super) fn der(&self) -> CertificateDer<'static> {
        self.der.clone()
    }

    pub(super) fn server(
        &self,
    ) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), SandboxError> {
        let names = SERVER_NAMES.map(str::to_owned).to_vec();
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name = distinguished("sandbox");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        [params.not_before, params.not_after] = YEARS.map(|year| date_time_ymd(year, 1, 1));
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer()).map_err(failed)?;
        Ok((certificate.der().clone(), key.into()))
    }

    pub(super) fn client(&self, wanted: &ClientCertificate<'_>) -> Result<Issued, SandboxError> {
        let mut params = params(wanted.name);
        let uri = format!("urn:siteline:sandbox:{}", wanted.name);
        let uri = uri.try_into().map_err(|_| {
            SandboxError::new(format!("name={:?} is not printable ASCII.", wanted.name))
        })?;
        params.subject_alt_names = vec![SanType::URI(uri)];
        params.extended_key_usages = vec![if wanted.is_for_clients {
            ExtendedKeyUsagePurpose::ClientAuth
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        }];
        let second = |time: Timestamp| {
            let seconds = u64::try_from(time.as_second()).map_err(|_| {
                SandboxError::new(format!("a certificate cannot be valid in {time}."))
            })?;
            Ok::<_, SandboxError>(date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds))
        };
        (params.not_before, params.not_after) = (second(wanted.begins)?, second(wanted.ends)?);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer()).map_err(failed)?;
        let is_intermediate = self.params.distinguished_name != distinguished(ROOT);
        let above = if is_intermediate { self.pem.as_str() } else { "" };
        let pem = format!("{}{above}{}", certificate.pem(), key.serialize_pem());
        Ok(Issued { pem, der: certificate.der().clone() })
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }
}

pub(super) const ROOT: &str = "authority";

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished(name);
    params
}

/// `CN=name,O=siteline sandbox`, as RFC 4514 writes it.
fn distinguished(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::OrganizationName, ORGANISATION);
    distinguished.push(DnType::CommonName, name);
    distinguished
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn failed(error: rcgen::Error) -> SandboxError {
    SandboxError::new(format!("a certificate cannot be made: {error}"))
}
