//! Settings from the environment: which variables there are, and what they must hold. Whoever
//! reads them decides where they come from, so that tests need no process environment.

use std::fmt;
use std::path::PathBuf;

use zeroize::Zeroizing;

use crate::auth::ScopeSet;
use crate::error::{Error, Kind, Result};

/// Address of the service, as `https://customer.example.com`.
pub const BASE_URL: &str = "SITELINE_BASE_URL";
/// The subject that enrollment returned.
pub const SUBJECT: &str = "SITELINE_SUBJECT";
/// Path of the private key.
pub const PRIVATE_KEY_FILE: &str = "SITELINE_PRIVATE_KEY_FILE";
/// The private key itself, PEM text or a JWK.
pub const PRIVATE_KEY: &str = "SITELINE_PRIVATE_KEY";
/// Passphrase of an encrypted private key.
pub const PASSPHRASE: &str = "SITELINE_PASSPHRASE";
/// Scopes, separated by spaces.
pub const SCOPES: &str = "SITELINE_SCOPES";
/// `aud` of the assertion, where it differs from the token endpoint that is dialled.
pub const AUDIENCE: &str = "SITELINE_AUDIENCE";
/// Requests a day that siteline may make.
pub const DAILY_ALLOWANCE: &str = "SITELINE_DAILY_ALLOWANCE";

/// Where the private key is.
pub enum KeySource {
    /// In a file.
    File(PathBuf),
    /// In the variable itself.
    Text(Zeroizing<String>),
}

/// What the environment says.
pub struct Environment {
    /// [`BASE_URL`].
    pub base_url: String,
    /// [`SUBJECT`], as it stands there; the credential trims it, with a warning.
    pub subject: String,
    /// [`PRIVATE_KEY_FILE`] or [`PRIVATE_KEY`].
    pub key: KeySource,
    /// [`PASSPHRASE`].
    pub passphrase: Option<Zeroizing<String>>,
    /// [`SCOPES`].
    pub scopes: Option<ScopeSet>,
    /// [`AUDIENCE`].
    pub audience: Option<String>,
    /// [`DAILY_ALLOWANCE`].
    pub daily_allowance: Option<u64>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address is not checked yet: a password may stand in it.
        f.debug_struct("Environment").field("subject", &self.subject).finish_non_exhaustive()
    }
}

impl Environment {
    /// Reads the variables through `lookup`. A variable that is set but empty counts as not set.
    ///
    /// # Errors
    /// `ConfigError` listing all that was looked at, where something needed is missing, both keys
    /// are given, or a value cannot be read.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let get = |name: &str| lookup(name).filter(|text| !text.trim().is_empty());
        let need = |name: &str| get(name).ok_or_else(|| missing(name, &get));
        let key = match (get(PRIVATE_KEY_FILE), get(PRIVATE_KEY)) {
            (Some(_), Some(_)) => {
                return Err(Error::new(
                    Kind::Config,
                    format!("{PRIVATE_KEY_FILE} and {PRIVATE_KEY} are both set."),
                )
                .with_hint("Unset one: nobody can say which key is meant."));
            }
            (Some(path), None) => KeySource::File(PathBuf::from(path.trim())),
            (None, Some(text)) => KeySource::Text(Zeroizing::new(text)),
            (None, None) => {
                return Err(missing(&format!("{PRIVATE_KEY_FILE} or {PRIVATE_KEY}"), &get));
            }
        };
        Ok(Self {
            base_url: need(BASE_URL)?.trim().to_owned(),
            subject: need(SUBJECT)?,
            key,
            passphrase: get(PASSPHRASE).map(Zeroizing::new),
            scopes: get(SCOPES).map(|text| ScopeSet::parse(&text)).transpose()?,
            audience: get(AUDIENCE).map(|text| text.trim().to_owned()),
            daily_allowance: get(DAILY_ALLOWANCE).map(|text| allowance(&text)).transpose()?,
        })
    }
}

fn allowance(text: &str) -> Result<u64> {
    text.trim().parse().map_err(|_| {
        Error::new(Kind::Config, format!("{DAILY_ALLOWANCE} is not a number of requests."))
            .with_hint("It is a whole number, such as 5000.")
    })
}

/// Says what is missing, and of every variable whether it is set: never what it holds.
fn missing(name: &str, get: &impl Fn(&str) -> Option<String>) -> Error {
    let all = [
        BASE_URL,
        SUBJECT,
        PRIVATE_KEY_FILE,
        PRIVATE_KEY,
        PASSPHRASE,
        SCOPES,
        AUDIENCE,
        DAILY_ALLOWANCE,
    ];
    let looked_at =
        all.map(|name| format!("{name} ({})", if get(name).is_some() { "set" } else { "not set" }));
    Error::new(Kind::Config, format!("{name} is not set."))
        .with_hint(format!("Looked at: {}.", looked_at.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Environment> {
        Environment::read(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_error_lists_what_was_looked_at_and_shows_no_value() {
        let error =
            read(&[(BASE_URL, "https://a"), (PRIVATE_KEY, "-----BEGIN secret")]).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), Kind::Config);
        assert!(text.contains("SITELINE_SUBJECT is not set"), "{text}");
        assert!(text.contains("SITELINE_PRIVATE_KEY (set)"), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn two_keys_are_one_too_many() {
        let error = read(&[(PRIVATE_KEY, "-----BEGIN secret"), (PRIVATE_KEY_FILE, "key.pem")]);
        assert!(error.unwrap_err().to_string().contains("both set"));
    }

    #[test]
    fn a_full_environment_is_read() {
        let environment = read(&[
            (BASE_URL, "https://customer.example.com\n"),
            (SUBJECT, "subject-1"),
            (PRIVATE_KEY_FILE, "key.pem"),
            (SCOPES, "customer.data.read"),
            (DAILY_ALLOWANCE, "5000"),
        ])
        .unwrap();
        assert_eq!(environment.base_url, "https://customer.example.com");
        assert_eq!(environment.daily_allowance, Some(5000));
        assert!(matches!(environment.key, KeySource::File(path) if path.ends_with("key.pem")));
        assert!(
            !format!(
                "{environment:?}",
                environment = read(&[
                    (BASE_URL, "https://user:secret@a"),
                    (SUBJECT, "s"),
                    (PRIVATE_KEY, "-----BEGIN secret"),
                ])
                .unwrap()
            )
            .contains("secret")
        );
    }
}
