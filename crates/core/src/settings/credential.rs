use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::key::{Key, KeySource, PassphraseSource};
use super::options::{Options, Value};
use super::profile::Profile;
use super::variables::{AUDIENCE, CERTIFICATE_FILE, CLIENT_ID, SUBJECT};
use crate::error::{Error, Kind, Result};

/// The settings of a credential before its creation.
pub enum CredentialSettings {
    Assertion { subject: String, key: Key, options: Options },
    MutualTls(CertificateSettings),
}

#[derive(Default)]
pub struct CertificateSettings {
    /// The certificate and its chain.
    pub file: PathBuf,
    /// `None` if it is in the same file.
    pub key: Option<KeySource>,
    pub passphrase: Option<PassphraseSource>,
    pub client_id: Option<String>,
    /// Whether a key file that other users can read is rejected.
    pub strict: bool,
}

impl CertificateSettings {
    /// The variables that are set override the profile.
    fn overridden(
        mut self,
        key: Option<Key>,
        passphrase: Option<PassphraseSource>,
        client_id: Option<String>,
    ) -> Self {
        if let Some(key) = key {
            (self.key, self.passphrase) = (Some(key.source), key.passphrase);
        }
        self.passphrase = passphrase.or(self.passphrase);
        self.client_id = client_id.or(self.client_id);
        self
    }
}

pub(super) struct FoundCredential {
    pub(super) subject: Option<String>,
    pub(super) key: Option<Key>,
    pub(super) certificate: Option<CertificateSettings>,
    pub(super) options: Options,
}

impl FoundCredential {
    /// Reads the variables, then the profile. A subject or a certificate in the variables selects
    /// the mode. That certificate needs its key there too.
    pub(super) fn of_variables(
        environment: &Environment<'_>,
        profile: &mut Profile,
        key: Option<Key>,
        passphrase: Option<PassphraseSource>,
    ) -> Result<Self> {
        let of_profile = Self::of_profile(profile)?;
        let file = environment.get(CERTIFICATE_FILE);
        let subject = environment.get(SUBJECT);
        let client_id = environment.get(CLIENT_ID).map(|text| text.trim().to_owned());
        let certificate = match (file, subject.is_some(), of_profile.certificate) {
            (Some(_), true, _) => return Err(conflict(SUBJECT, CERTIFICATE_FILE)),
            (Some(path), false, _) => {
                let file = environment.resolved(Path::new(""), path.trim());
                Some(CertificateSettings { file, ..CertificateSettings::default() })
            }
            (None, true, _) => None,
            (None, false, of_profile) => of_profile,
        };
        if let Some(certificate) = certificate {
            let certificate = certificate.overridden(key, passphrase, client_id);
            return Ok(Self::of_certificate(certificate));
        }
        if client_id.is_some() {
            let message = format!("{CLIENT_ID} is set without {CERTIFICATE_FILE}.");
            return Err(Error::new(Kind::ConfigError, message).with_hint(ONE_MODE));
        }
        let key = key.or(of_profile.key.map(|of_profile| match passphrase {
            Some(passphrase) => Key { passphrase: Some(passphrase), ..of_profile },
            None => of_profile,
        }));
        let mut options = of_profile.options;
        if let Some(audience) = environment.get(AUDIENCE) {
            options.retain(|(name, _)| *name != "audience");
            options.push(("audience", Value::Text(audience.trim().to_owned())));
        }
        Ok(Self { subject: subject.or(of_profile.subject), key, certificate: None, options })
    }

    fn of_certificate(certificate: CertificateSettings) -> Self {
        Self { subject: None, key: None, certificate: Some(certificate), options: Vec::new() }
    }

    pub(super) fn of_profile(profile: &mut Profile) -> Result<Self> {
        let subject = profile.text("subject");
        let client_id = profile.text("client_id");
        let strict = profile.is_strict();
        let kid = profile.text("kid");
        let passphrase = profile.password_command();
        let source = profile.path("private_key_file").map(KeySource::File);
        let options = profile.assertion_options();
        let Some(file) = profile.path("certificate_file") else {
            if client_id.is_some() {
                return Err(conflict_of(profile, "client_id belongs to certificate_file"));
            }
            let key = source.map(|source| Key { source, passphrase, kid, strict });
            return Ok(Self { subject, key, certificate: None, options });
        };
        if subject.is_some() {
            return Err(conflict_of(profile, "subject and certificate_file are both set"));
        }
        let of_assertions = options.first().map(|(name, _)| *name);
        if let Some(name) = kid.map(|_| "kid").or(of_assertions) {
            let what = format!("{name} belongs to subject, not to certificate_file");
            return Err(conflict_of(profile, &what));
        }
        let certificate = CertificateSettings { file, key: source, passphrase, client_id, strict };
        Ok(Self::of_certificate(certificate))
    }
}

const ONE_MODE: &str = "A subject and key sign assertions, and a client certificate is for \
                        platform-managed integrations. Set only one of them.";

fn conflict(one: &str, other: &str) -> Error {
    Error::new(Kind::ConfigError, format!("{one} and {other} are both set.")).with_hint(ONE_MODE)
}

fn conflict_of(profile: &Profile, what: &str) -> Error {
    Error::new(Kind::ConfigError, format!("{what}, in {}.", profile.described()))
        .with_hint(ONE_MODE)
}
