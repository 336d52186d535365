//! Settings from `SITELINE_*` environment variables and from a profile in a TOML file.
//! [`Environment`] is a parameter for tests.
//!
//! Arguments override variables, and variables override the profile, member by member. A passphrase
//! has the same source as its key, or is a variable.

mod credential;
mod environment;
mod members;
pub mod options;
mod profile;
mod variables;

use std::fmt;
use std::path::PathBuf;

pub use self::credential::CredentialSettings;
pub use self::environment::{Environment, read_certificates, read_profiles, variable_of_pickle};
use self::members::Members;
pub use self::members::Source;
pub use self::options::{ASSERTION_OPTIONS, OPTIONS, Options, Value};
use self::profile::Profile;
pub use self::variables::{
    AGENT, AGENT_CA, AGENT_CERTIFICATE_FILE, AGENT_KEY_FILE, AGENT_SECRET, PASSPHRASE, PRIVATE_KEY,
    SANDBOX_CLOCK,
};
pub(crate) use self::variables::{BASE_URL, PRIVATE_KEY_FILE, PROFILE};
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
    /// Why they do not suffice without an agent. Then the credential may be incomplete.
    pub missing: Option<Error>,
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
    pub fn complete(mut self) -> Result<Self> {
        match self.missing.take() {
            Some(missing) => Err(missing),
            None => Ok(self),
        }
    }

    /// `None` unless the credential signs.
    pub fn subject(&self) -> Option<&str> {
        self.credential.as_ref()?.subject.as_deref()
    }

    /// Reads the variables, then the profile that [`PROFILE`] names, by default
    /// [`DEFAULT_PROFILE`]. The default profile may be absent unless a variable names its file. An
    /// unreadable file is then ignored if the other sources are sufficient. An empty variable
    /// counts as unset. The error in `missing` names all sources.
    pub fn from_variables(environment: &Environment<'_>, given: Given) -> Result<Self> {
        environment.check(members::variables())?;
        let named = environment.get(PROFILE);
        let is_named = named.is_some() || environment.get(variables::CONFIG).is_some();
        let is_needed = is_named || !environment.suffices(given);
        let name = named.as_deref().unwrap_or(DEFAULT_PROFILE);
        let profile = Profile::find(name, environment, named.is_some(), is_needed)?;
        let mut members = profile.members(given.credential)?;
        members.replace(environment, given.credential)?;
        let looked_at = || looked_at(environment, &profile);
        Ok(Self::of_members(members, &profile, given, looked_at))
    }

    /// The settings of this profile only. The variable [`CONFIG`] names its file.
    pub fn from_profile(name: &str, environment: &Environment<'_>, given: Given) -> Result<Self> {
        let profile = Profile::find(name, environment, true, true)?;
        let looked_at = || format!("Looked at: {}.", profile.described());
        Ok(Self::of_members(profile.members(given.credential)?, &profile, given, looked_at))
    }

    fn of_members(
        mut members: Members,
        profile: &Profile,
        given: Given,
        looked_at: impl Fn() -> String,
    ) -> Self {
        let (sources, base_url) = (members.sources(), members.text("base_url"));
        let is_missing = base_url.is_none() && !given.base_url;
        let mut missing: Vec<_> = is_missing.then_some("base_url").into_iter().collect();
        let credential =
            (!given.credential).then(|| members.credential(profile.file(), &mut missing));
        let missing = (!missing.is_empty()).then(|| {
            let message = format!("The client cannot be created: {} missing.", listed(&missing));
            let hint = format!(
                "{} Set a variable, or add it to a profile: siteline profile init creates one.",
                looked_at()
            );
            Error::new(Kind::ConfigError, message).with_hint(hint)
        });
        let (options, profile) = (members.options(&OPTIONS), profile.found());
        Self { base_url, credential, options, profile, sources, missing }
    }
}

/// `a is`, `a and b are`, `a, b and c are`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => format!("{one} is"),
        [first @ .., last] => format!("{} and {last} are", first.join(", ")),
    }
}

/// Describes every variable and the profile file without values.
fn looked_at(environment: &Environment<'_>, profile: &Profile) -> String {
    let place = |name: &str| {
        format!("{name} ({})", if environment.get(name).is_some() { "set" } else { "not set" })
    };
    let places: Vec<String> =
        members::variables().map(place).chain([profile.described()]).collect();
    format!("Looked at: {}.", places.join(", "))
}

#[cfg(test)]
mod tests;
