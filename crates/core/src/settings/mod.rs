//! Settings from `SITELINE_*` environment variables and from a profile in a TOML file.
//! [`Environment`] is a parameter for tests.
//!
//! Arguments override variables, and variables override the profile, member by member. A passphrase
//! has the same source as its key, or is a variable.

mod credential;
mod environment;
mod key;
pub mod options;
mod profile;
mod sources;
mod variables;

use std::fmt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use self::credential::FoundCredential;
pub use self::credential::{CertificateSettings, CredentialSettings};
pub use self::environment::{Environment, read_certificates, read_profiles, variable_of_pickle};
pub(crate) use self::key::PasswordCommand;
pub use self::key::{Key, KeySource, PassphraseSource};
pub use self::options::{ASSERTION_OPTIONS, OPTIONS, Options, Value};
use self::profile::Profile;
pub use self::sources::Source;
pub use self::variables::{
    AGENT, AGENT_CA, AGENT_CERTIFICATE_FILE, AGENT_KEY_FILE, AGENT_SECRET, PASSPHRASE, PRIVATE_KEY,
};
pub(crate) use self::variables::{
    BASE_URL, DAILY_ALLOWANCE, LEDGER, PASSWORD_COMMAND, PRIVATE_KEY_FILE, PROFILE, SCOPES,
};
use crate::error::{Error, Kind, Result};

pub(crate) const DEFAULT_PROFILE: &str = "default";

/// The settings that are arguments, and therefore not required here.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given {
    pub base_url: bool,
    /// Subject and key, or a certificate.
    pub credential: bool,
}

pub struct Settings {
    /// `None` if it is an argument.
    pub base_url: Option<String>,
    /// `None` if it is an argument.
    pub credential: Option<CredentialSettings>,
    /// By keyword.
    pub options: Options,
    /// For errors about their contents.
    pub profile: Option<(PathBuf, String)>,
    pub sources: Vec<Source>,
}

impl Environment<'_> {
    /// Whether variables and arguments need no profile.
    fn suffices(&self, given: Given) -> bool {
        let is_set = |name: &str| self.get(name).is_some();
        let has_key = is_set(PRIVATE_KEY_FILE) || is_set(PRIVATE_KEY);
        let has_credential =
            is_set(variables::CERTIFICATE_FILE) || (is_set(variables::SUBJECT) && has_key);
        (given.base_url || is_set(BASE_URL)) && (given.credential || has_credential)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values are not validated. An address may contain a password.
        let options: Vec<&str> = self.options.iter().map(|(name, _)| *name).collect();
        f.debug_struct("Settings").field("options", &options).finish_non_exhaustive()
    }
}

impl Settings {
    /// `None` unless the credential signs.
    pub fn subject(&self) -> Option<&str> {
        match &self.credential {
            Some(CredentialSettings::Assertion { subject, .. }) => Some(subject),
            Some(CredentialSettings::MutualTls(_)) | None => None,
        }
    }

    /// Reads the variables, then the profile that [`PROFILE`] names, by default
    /// [`DEFAULT_PROFILE`]. The default profile may be absent unless a variable names its file. An
    /// unreadable file is then ignored if the other sources are sufficient. An empty variable
    /// counts as unset. The `ConfigError` for missing settings names all sources.
    pub fn from_variables(environment: &Environment<'_>, given: Given) -> Result<Self> {
        environment.check(&variables::ALL)?;
        let name = environment.get(PROFILE);
        let is_named = name.is_some() || environment.get(variables::CONFIG).is_some();
        let is_needed = is_named || !environment.suffices(given);
        let name = name.unwrap_or_else(|| DEFAULT_PROFILE.to_owned());
        let found = Profile::find(&name, environment, environment.get(PROFILE).is_some());
        let mut profile = match found {
            Err(unread) if unread.is_of_file && !is_needed => {
                log::warn!(
                    target: "siteline::settings",
                    "The profile file is ignored: {}", unread.error.context().message
                );
                Profile::without_file(&name)
            }
            found => found?,
        };
        let written = profile.written();
        let base_url = environment.get(BASE_URL).map(|text| text.trim().to_owned());
        let base_url = base_url.or_else(|| profile.text("base_url"));
        let found = profile.found();
        let credential = if given.credential {
            None
        } else {
            let key = key_of_variables(environment)?;
            // A passphrase variable belongs to the key of the variables, otherwise to the key of
            // the profile.
            let passphrase =
                if key.is_some() { None } else { passphrase_of_variables(environment)? };
            Some(FoundCredential::of_variables(environment, &mut profile, key, passphrase)?)
        };
        let settings = required(base_url, credential, given, || looked_at(environment, &profile))?;
        let mut options = profile.into_options();
        for (name, value) in options_of_variables(environment)? {
            if let Some(value) = value {
                options.retain(|(known, _)| *known != name);
                options.push((name, value));
            }
        }
        let sources = sources::list(&written, Some(environment), settings.credential.as_ref());
        Ok(Self { options, profile: found, sources, ..settings })
    }

    /// The settings of this profile only. The variable [`CONFIG`] names its file.
    pub fn from_profile(name: &str, environment: &Environment<'_>, given: Given) -> Result<Self> {
        let mut profile = Profile::find(name, environment, true)?;
        let written = profile.written();
        let base_url = profile.text("base_url");
        let found = profile.found();
        let credential =
            if given.credential { None } else { Some(FoundCredential::of_profile(&mut profile)?) };
        let looked_at = || format!("Looked at: {}.", profile.described());
        let settings = required(base_url, credential, given, looked_at)?;
        let sources = sources::list(&written, None, settings.credential.as_ref());
        Ok(Self { options: profile.into_options(), profile: found, sources, ..settings })
    }
}

/// The parts are `None` if they are arguments.
fn required(
    base_url: Option<String>,
    credential: Option<FoundCredential>,
    given: Given,
    looked_at: impl Fn() -> String,
) -> Result<Settings> {
    let mut missing = Vec::new();
    if base_url.is_none() && !given.base_url {
        missing.push("base_url");
    }
    let credential = match credential {
        None => None,
        Some(FoundCredential { certificate: Some(certificate), .. }) => {
            Some(CredentialSettings::MutualTls(certificate))
        }
        Some(FoundCredential { subject, key, options, .. }) => {
            missing.extend(subject.is_none().then_some("subject"));
            missing.extend(key.is_none().then_some("the private key"));
            subject.zip(key).map(|(subject, key)| CredentialSettings::Assertion {
                subject,
                key,
                options,
            })
        }
    };
    if !missing.is_empty() {
        let message = format!("The client cannot be created: {} missing.", listed(&missing));
        return Err(Error::new(Kind::ConfigError, message).with_hint(looked_at()));
    }
    let base_url = base_url.filter(|_| !given.base_url);
    let (options, sources) = (Vec::new(), Vec::new());
    Ok(Settings { base_url, credential, options, profile: None, sources })
}

/// `a is`, `a and b are`, `a, b and c are`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => format!("{one} is"),
        [first @ .., last] => format!("{} and {last} are", first.join(", ")),
    }
}

fn key_of_variables(environment: &Environment<'_>) -> Result<Option<Key>> {
    let source = match (environment.get(PRIVATE_KEY_FILE), environment.get(PRIVATE_KEY)) {
        (Some(_), Some(_)) => return Err(conflict(PRIVATE_KEY_FILE, PRIVATE_KEY, "key")),
        (Some(path), None) => KeySource::File(environment.resolved(Path::new(""), path.trim())),
        (None, Some(text)) => KeySource::Text(Zeroizing::new(text)),
        (None, None) => return Ok(None),
    };
    let passphrase = passphrase_of_variables(environment)?;
    Ok(Some(Key { source, passphrase, kid: None, strict: false }))
}

fn passphrase_of_variables(environment: &Environment<'_>) -> Result<Option<PassphraseSource>> {
    match (environment.get(PASSPHRASE), environment.get(PASSWORD_COMMAND)) {
        (Some(_), Some(_)) => Err(conflict(PASSPHRASE, PASSWORD_COMMAND, "passphrase")),
        (Some(_), None) => Ok(Some(PassphraseSource::Variable)),
        (None, line) => Ok(line.map(|line| {
            PassphraseSource::Command(PasswordCommand { words: Value::Text(line), file: None })
        })),
    }
}

fn conflict(one: &str, other: &str, what: &str) -> Error {
    Error::new(Kind::ConfigError, format!("{one} and {other} are both set."))
        .with_hint(format!("Unset one, because only one {what} can be used."))
}

fn options_of_variables(
    environment: &Environment<'_>,
) -> Result<[(&'static str, Option<Value>); 3]> {
    Ok([
        ("scopes", environment.get(SCOPES).map(Value::Text)),
        (
            "daily_allowance",
            environment.get(DAILY_ALLOWANCE).map(|text| allowance(&text)).transpose()?,
        ),
        (
            "ledger",
            environment
                .get(LEDGER)
                .map(|path| Value::Path(environment.resolved(Path::new(""), path.trim()))),
        ),
    ])
}

fn allowance(text: &str) -> Result<Value> {
    text.trim().parse().map(Value::Whole).map_err(|_| {
        Error::new(Kind::ConfigError, format!("{DAILY_ALLOWANCE} is not a number of requests."))
            .with_hint("Set it to a whole number, such as 5000.")
    })
}

/// Describes every variable and the profile file without values.
fn looked_at(environment: &Environment<'_>, profile: &Profile) -> String {
    let mut places: Vec<String> = variables::ALL
        .iter()
        .map(|name| {
            format!("{name} ({})", if environment.get(name).is_some() { "set" } else { "not set" })
        })
        .collect();
    places.push(profile.described());
    format!("Looked at: {}.", places.join(", "))
}

#[cfg(test)]
mod tests;
