//! Selects the trusted certificates: `ca_bundle`, then `SSL_CERT_FILE` and `SSL_CERT_DIR`, then the
//! platform's certificate store, then a fallback file.

use std::fs;
use std::path::{Path, PathBuf};

use pkcs8::LineEnding;
use pkcs8::der::Document;
use rustls::pki_types::CertificateDer;

use super::bundle::{self, UnusableBundle};
use super::failure::{TRUST_HINT, unread_trust};
use crate::error::{Error, Kind, Result};
use crate::files::read_whole;
use crate::system::{self, exhausted_files};
use crate::written::unquoted;

/// Maximum size of a certificate file, in bytes.
const LARGEST_BUNDLE: u64 = 16 * 1024 * 1024;

/// The source of trusted certificates; the platform's store by default.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Trust {
    /// The only certificates to trust, as PEM.
    pub ca_bundle: Option<Vec<u8>>,
    /// The file of the bundle. Another process can read it again.
    pub ca_bundle_file: Option<PathBuf>,
    /// A file that replaces the platform's store (`SSL_CERT_FILE`).
    pub file: Option<PathBuf>,
    /// Folders of such files (`SSL_CERT_DIR`).
    pub folders: Vec<PathBuf>,
    /// A file that is read only if the platform has no store.
    pub fallback: Option<PathBuf>,
}

impl Trust {
    /// Reads `SSL_CERT_FILE` and `SSL_CERT_DIR`. An empty value counts as unset.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<std::ffi::OsString>) -> Self {
        // A path need not be text. A text may have the quotation marks of an environment file.
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

    /// Keeps only the certificates of a bundle, each of which must be readable. A server's file may
    /// also contain its private key, which must not stay in memory.
    pub fn set_bundle(&mut self, bundle: &[u8], file: Option<&Path>) -> Result<()> {
        self.ca_bundle_file = file.map(Path::to_owned);
        let certificates = bundle::read(bundle).map_err(|why| self.unusable(why))?;
        self.ca_bundle = Some(certificates.iter().filter_map(pem).collect::<String>().into_bytes());
        Ok(())
    }

    fn unusable(&self, unusable: UnusableBundle) -> Error {
        let what = match &self.ca_bundle_file {
            Some(file) => format!("ca_bundle={:?}", file.to_string_lossy()),
            None => "ca_bundle".to_owned(),
        };
        unusable.error(Kind::ConfigError, &what)
    }

    /// Describes the source for a user.
    pub(super) fn named_by(&self) -> String {
        match (&self.ca_bundle, &self.ca_bundle_file, &self.file, self.folders.is_empty()) {
            (Some(_), Some(file), ..) => format!("ca_bundle={}", file.display()),
            (Some(_), None, ..) => "the certificates of ca_bundle=".to_owned(),
            (None, _, Some(file), true) => format!("SSL_CERT_FILE={}", file.display()),
            (None, _, None, false) => "SSL_CERT_DIR".to_owned(),
            (None, _, Some(_), false) => "SSL_CERT_FILE and SSL_CERT_DIR".to_owned(),
            (None, _, None, true) => "this machine's certificate store".to_owned(),
        }
    }

    /// The certificates that the user configured; `None` for the platform's store.
    ///
    /// # Errors
    /// `TlsError` if the variables name no readable certificate. The fallback is not used then,
    /// because the user selected other certificates.
    pub(super) fn named(&self) -> Result<Option<Vec<CertificateDer<'static>>>> {
        if let Some(bundle) = &self.ca_bundle {
            return bundle::read(bundle).map(Some).map_err(|why| self.unusable(why));
        }
        if self.file.is_none() && self.folders.is_empty() {
            return Ok(None);
        }
        let folders = self.folders.iter();
        let mut found: Vec<_> = folders.flat_map(|folder| certificates_of_folder(folder)).collect();
        let unread = self.file.as_deref().and_then(|path| match certificates_in(path) {
            Ok(certificates) => {
                found.extend(certificates);
                None
            }
            Err(why) => Some(format!("SSL_CERT_FILE={:?} {why}", path.to_string_lossy())),
        });
        if !found.is_empty() {
            if let Some(why) = unread {
                log::warn!(target: "siteline::http", "{why}; using SSL_CERT_DIR");
            }
            return Ok(Some(found));
        }
        if let Some(error) = exhausted_files() {
            return Err(unread_trust("SSL_CERT_FILE or SSL_CERT_DIR cannot be read", &error));
        }
        let why = unread.filter(|_| self.folders.is_empty()).unwrap_or_else(|| {
            "SSL_CERT_FILE or SSL_CERT_DIR is set, but names no readable certificate".to_owned()
        });
        Err(Error::new(Kind::TlsError, format!("{why}, so the service cannot be verified."))
            .with_hint(TRUST_HINT)
            .with(|context| context.unsent = true))
    }

    pub(super) fn fallback(&self) -> Option<Vec<CertificateDer<'static>>> {
        certificates_in(self.fallback.as_ref()?).ok()
    }
}

/// The certificates of a file. The error is the rest of a sentence.
fn certificates_in(path: &Path) -> std::result::Result<Vec<CertificateDer<'static>>, String> {
    let bytes = read_whole(path, LARGEST_BUNDLE)
        .map_err(|error| format!("cannot be read: {}", system::reason(&error)))?;
    // One unreadable certificate must not invalidate a list of many.
    bundle::readable(&bytes).map_err(|unusable| unusable.why.to_owned())
}

/// The certificates of all files in a folder. Other files are ignored.
fn certificates_of_folder(folder: &Path) -> Vec<CertificateDer<'static>> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let files = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file());
    files.flat_map(|path| certificates_in(&path).unwrap_or_default()).collect()
}

fn pem(certificate: &CertificateDer<'_>) -> Option<String> {
    Document::try_from(certificate.as_ref()).ok()?.to_pem("CERTIFICATE", LineEnding::LF).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_server::{TestFolder, assert_error};

    const CERTIFICATE: &[u8] = include_bytes!("../../../../tests/keys/certificate.pem");

    #[test]
    fn h22_a_bundle_has_precedence_over_the_variables_and_they_over_the_platform() {
        let folder = TestFolder::new();
        let file = folder.join("ca.pem");
        fs::write(&file, CERTIFICATE).expect("a file");
        assert!(Trust::default().named().expect("the platform's").is_none());
        for (variable, value) in [("SSL_CERT_FILE", &file), ("SSL_CERT_DIR", &folder.to_path_buf())]
        {
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
    }

    #[test]
    fn a_bundle_without_a_certificate_is_refused() {
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (bundle, why) in [(&b"nothing"[..], "no certificate"), (broken, "cannot be read")] {
            assert_error(Trust::default().set_bundle(bundle, None), Kind::ConfigError, why);
        }
    }

    #[test]
    fn h23_the_fallback_is_a_file_with_certificates() {
        let folder = TestFolder::new();
        let file = folder.join("fallback.pem");
        let trust = Trust { fallback: Some(file.clone()), ..Trust::default() };
        assert!(trust.fallback().is_none() && Trust::default().fallback().is_none(), "no file");
        for (bundle, certificates) in [(&b"nothing"[..], None), (CERTIFICATE, Some(1))] {
            fs::write(&file, bundle).expect("a file");
            assert_eq!(trust.fallback().map(|all| all.len()), certificates);
        }
    }

    #[test]
    fn a_private_key_in_a_bundle_is_not_kept() {
        let key = b"-----BEGIN PRIVATE KEY-----\r\nAAAA\r\n-----END PRIVATE KEY-----\r\n";
        for bundle in [[key, CERTIFICATE].concat(), [CERTIFICATE, key, CERTIFICATE].concat()] {
            let mut trust = Trust::default();
            trust.set_bundle(&bundle, None).expect("certificates");
            let kept = trust.ca_bundle.expect("kept");
            assert!(!String::from_utf8_lossy(&kept).contains("PRIVATE"));
            assert_eq!(bundle::read(&kept).unwrap(), bundle::read(&bundle).unwrap());
        }
    }
}
