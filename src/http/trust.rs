//! Which certificates a connection trusts: the first of `ca_bundle`, `SSL_CERT_FILE` and
//! `SSL_CERT_DIR`, the platform's certificate store, and a fallback file.

use std::fs;
use std::path::PathBuf;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_native_certs::load_certs_from_paths;

use super::failure::TRUST_HINT;
use crate::error::{Error, Kind, Result};
use crate::written::unquoted;

/// Where trusted certificates come from; by default, the platform's store.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Trust {
    /// Certificates (PEM) to trust, and no others.
    pub ca_bundle: Option<Vec<u8>>,
    /// The file of the bundle, from which another process can read it again.
    pub ca_bundle_file: Option<PathBuf>,
    /// A file of certificates (PEM) instead of the platform's store: `SSL_CERT_FILE`.
    pub file: Option<PathBuf>,
    /// Folders of such files: `SSL_CERT_DIR`.
    pub folders: Vec<PathBuf>,
    /// A file of certificates (PEM), read only if the platform has no store.
    pub fallback: Option<PathBuf>,
}

impl Trust {
    /// From the values of `SSL_CERT_FILE` and `SSL_CERT_DIR`; an empty value counts as not set.
    #[must_use]
    pub(crate) fn from_variables(lookup: impl Fn(&str) -> Option<std::ffi::OsString>) -> Self {
        // A path may be no text; one that is may have the quotation marks of an environment file.
        let get = |name: &str| {
            let value = lookup(name)?;
            let value = value.to_str().map(|text| unquoted(text).into()).unwrap_or(value);
            Some(value).filter(|value: &std::ffi::OsString| !value.is_empty())
        };
        let folders = get("SSL_CERT_DIR").map(|folders| {
            std::env::split_paths(&folders).filter(|path| !path.as_os_str().is_empty()).collect()
        });
        Self {
            file: get("SSL_CERT_FILE").map(PathBuf::from),
            folders: folders.unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Refuses a bundle without certificates, or with one that cannot be read.
    ///
    /// # Errors
    /// `ConfigError`.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(bundle) = &self.ca_bundle else { return Ok(()) };
        let certificates = from_pem(bundle);
        let what = if certificates.is_empty() {
            "ca_bundle contains no certificate."
        } else if certificates.len() != store(certificates.clone()).len() {
            "ca_bundle contains a certificate that cannot be read."
        } else {
            return Ok(());
        };
        Err(Error::new(Kind::ConfigError, what)
            .with_hint("It is a path, or the bytes, of certificates in PEM form."))
    }

    /// Which of them it is, for a person.
    #[must_use]
    pub(super) fn named_by(&self) -> String {
        match (&self.ca_bundle, &self.ca_bundle_file, &self.file, self.folders.is_empty()) {
            (Some(_), Some(file), ..) => format!("ca_bundle={}", file.display()),
            (Some(_), None, ..) => "the certificates given as ca_bundle=".to_owned(),
            (None, _, Some(file), true) => format!("SSL_CERT_FILE={}", file.display()),
            (None, _, None, false) => "SSL_CERT_DIR".to_owned(),
            (None, _, Some(_), false) => "SSL_CERT_FILE and SSL_CERT_DIR".to_owned(),
            (None, _, None, true) => "this machine's store of certificates".to_owned(),
        }
    }

    /// The certificates that the user configured; `None` for the platform's store.
    ///
    /// # Errors
    /// `TlsError` if the variables name no readable certificate. The fallback is not used then,
    /// because the user asked for other certificates.
    pub(super) fn named(&self) -> Result<Option<RootCertStore>> {
        if let Some(bundle) = &self.ca_bundle {
            return Ok(Some(store(from_pem(bundle))));
        }
        if self.file.is_none() && self.folders.is_empty() {
            return Ok(None);
        }
        let file = load_certs_from_paths(self.file.as_deref(), None).certs;
        let folders =
            self.folders.iter().map(|folder| load_certs_from_paths(None, Some(folder)).certs);
        let found = store(file.into_iter().chain(folders.flatten()));
        if found.is_empty() {
            return Err(Error::new(
                Kind::TlsError,
                "SSL_CERT_FILE or SSL_CERT_DIR is set, but names no certificate that can be read, \
                 so the service cannot be verified.",
            )
            .with_hint(TRUST_HINT)
            .with(|context| context.unsent = true));
        }
        Ok(Some(found))
    }

    /// The certificates of the fallback file, if it has any.
    pub(super) fn fallback(&self) -> Option<RootCertStore> {
        let found = store(from_pem(&fs::read(self.fallback.as_ref()?).ok()?));
        (!found.is_empty()).then_some(found)
    }
}

/// Copies only the certificates of a bundle: a server's file may also contain its private key, which
/// must not stay in memory.
#[must_use]
pub(crate) fn certificates_of(bundle: &[u8]) -> Vec<u8> {
    let mut within = false;
    let mut kept = Vec::new();
    for line in bundle.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
        let line_is = |start: &[u8]| line.windows(start.len()).any(|part| part == start);
        within |= line_is(b"-----BEGIN CERTIFICATE-----");
        if within {
            kept.extend_from_slice(line);
        }
        within &= !line_is(b"-----END");
    }
    kept
}

/// None if a block of the bundle is damaged.
fn from_pem(bundle: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(bundle).collect::<Result<_, _>>().unwrap_or_default()
}

/// Those of the certificates that can be read.
fn store(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates);
    store
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &[u8] = include_bytes!("../../tests/keys/certificate.pem");

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("siteline-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn h22_a_bundle_has_precedence_over_the_variables_and_they_over_the_platform() {
        let folder = folder("trust");
        let file = folder.join("ca.pem");
        fs::write(&file, CERTIFICATE).expect("a file");
        assert!(Trust::default().named().expect("the platform's").is_none());
        for (variable, value) in [("SSL_CERT_FILE", &file), ("SSL_CERT_DIR", &folder)] {
            let lookup = |name: &str| (name == variable).then(|| value.clone().into_os_string());
            let trust = Trust::from_variables(lookup);
            assert_eq!(trust.named().expect("readable").map(|all| all.len()), Some(1));
        }
        let trust = Trust {
            ca_bundle: Some(CERTIFICATE.to_vec()),
            file: Some(folder.join("absent.pem")),
            ..Trust::default()
        };
        assert_eq!(trust.named().expect("the bundle").map(|all| all.len()), Some(1));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn h22_h23_variables_without_a_certificate_are_a_tls_error_without_fallback() {
        let folder = folder("nothing");
        for trust in [
            Trust { file: Some(folder.join("absent.pem")), ..Trust::default() },
            Trust { folders: vec![folder.clone()], ..Trust::default() },
        ] {
            let error = trust.named().expect_err("nothing there");
            assert_eq!(error.kind(), Kind::TlsError);
            let text = error.to_string();
            assert!(text.contains("ca_bundle=") && text.contains("SSL_CERT_FILE"), "{text}");
        }
        assert!(Trust::from_variables(|_| Some("".into())).named().expect("not set").is_none());
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_bundle_without_a_certificate_is_refused() {
        let trust = Trust { ca_bundle: Some(b"nothing".to_vec()), ..Trust::default() };
        assert_eq!(trust.check().unwrap_err().kind(), Kind::ConfigError);
        assert!(Trust::default().check().is_ok());
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let trust = Trust { ca_bundle: Some(broken.to_vec()), ..Trust::default() };
        assert!(trust.check().unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn h23_the_fallback_is_a_file_with_certificates() {
        let folder = folder("fallback");
        let file = folder.join("fallback.pem");
        let trust = Trust { fallback: Some(file.clone()), ..Trust::default() };
        assert!(trust.fallback().is_none() && Trust::default().fallback().is_none(), "no file");
        for (bundle, certificates) in [(&b"nothing"[..], None), (CERTIFICATE, Some(1))] {
            fs::write(&file, bundle).expect("a file");
            assert_eq!(trust.fallback().map(|all| all.len()), certificates);
        }
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_damaged_block_of_a_bundle_is_kept_to_be_refused() {
        let begin = &b"-----BEGIN CERTIFICATE-----\nAAAA\n"[..];
        let bundle = [begin, CERTIFICATE].concat();
        assert_eq!(certificates_of(&bundle), bundle);
    }

    #[test]
    fn a_private_key_in_a_bundle_is_not_kept() {
        let key = b"-----BEGIN PRIVATE KEY-----\r\nAAAA\r\n-----END PRIVATE KEY-----\r\n";
        for bundle in [[key, CERTIFICATE].concat(), [CERTIFICATE, key, CERTIFICATE].concat()] {
            let kept = certificates_of(&bundle);
            assert!(!String::from_utf8_lossy(&kept).contains("PRIVATE"));
            assert_eq!(from_pem(&kept).len(), from_pem(&bundle).len());
        }
    }
}
