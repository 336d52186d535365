//! Settings from outside the program: `SITELINE_*` variables, and a profile in a TOML file. Whoever
//! reads them gives the [`Surroundings`], so that tests need no process environment and no file.
//!
//! | file | noun |
//! |---|---|
//! | this | what variables and profile say together |
//! | [`options`] | the options of a client: one list |
//! | `profile` | one table of the file, and which members it may have |
//! | `key` | where a key and its passphrase come from |
//! | `variables` | the names of the variables |
//! | `surroundings` | where the file is, and what else lies around a program |
//!
//! Arguments win over variables, these over the profile, member by member; only what opens a key
//! comes from where the key comes from, or from a variable.

mod key;
pub mod options;
mod profile;
mod surroundings;
mod variables;

use std::fmt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

pub use self::key::{Key, KeySource, PassphraseSource};
pub use self::options::{Form, OPTIONS, Options, Value};
use self::profile::Profile;
#[cfg(feature = "python")]
pub(crate) use self::surroundings::read_file;
pub use self::surroundings::{Platform, Surroundings};
pub use self::variables::{
    AUDIENCE, BASE_URL, CONFIG, DAILY_ALLOWANCE, LEDGER, PASSPHRASE, PASSWORD_COMMAND, PRIVATE_KEY,
    PRIVATE_KEY_FILE, PROFILE, SCOPES, SUBJECT,
};
use crate::error::{Error, Kind, Result};

/// The profile that is read where none is named.
pub const DEFAULT_PROFILE: &str = "default";

/// What the arguments bring already, so that it is neither needed nor looked at here.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given {
    /// The address of the service.
    pub base_url: bool,
    /// Subject and key.
    pub credential: bool,
}

/// What a client is made of, as it stands outside the program.
pub struct Settings {
    /// The address of the service; `None` only where it was given.
    pub base_url: Option<String>,
    /// The subject as it stands there, and the key; `None` only where a credential was given.
    pub credential: Option<(String, Key)>,
    /// All else, by the names of the client's keywords.
    pub options: Options,
    /// The file and the profile that took part, for errors about their contents.
    pub profile: Option<(PathBuf, String)>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing is checked yet: a password may stand in an address.
        let options: Vec<&str> = self.options.iter().map(|(name, _)| *name).collect();
        f.debug_struct("Settings").field("options", &options).finish_non_exhaustive()
    }
}

impl Settings {
    /// What the variables say, then the profile. The profile is that of [`PROFILE`], else
    /// [`DEFAULT_PROFILE`]; it need not exist unless a variable names it or its file. A variable that
    /// is set but empty counts as not set.
    ///
    /// # Errors
    /// `ConfigError` listing all that was looked at where something needed is missing; and for two
    /// keys, two passphrases, a value that cannot be read, a wrong file or profile.
    pub fn from_variables(around: &Surroundings<'_>, given: Given) -> Result<Self> {
        let name =
            around.get(PROFILE).map_or(DEFAULT_PROFILE.to_owned(), |name| name.trim().into());
        let mut profile = Profile::find(&name, around, around.get(PROFILE).is_some())?;
        let base_url = around.get(BASE_URL).map(|text| text.trim().to_owned());
        let base_url = base_url.or_else(|| profile.text("base_url"));
        let subject = around.get(SUBJECT).or_else(|| profile.text("subject"));
        let key = if given.credential {
            None
        } else {
            key_of_variables(around)?.or(key_of_profile(&mut profile, around)?)
        };
        let found = profile.found();
        let settings =
            Found { base_url, subject, key }.settings(given, || looked_at(around, &profile))?;
        let mut options = profile.into_options();
        let variables = [
            ("scopes", around.get(SCOPES).map(Value::Text)),
            ("audience", around.get(AUDIENCE).map(|text| Value::Text(text.trim().to_owned()))),
            (
                "daily_allowance",
                around.get(DAILY_ALLOWANCE).map(|text| allowance(&text)).transpose()?,
            ),
            (
                "ledger",
                around
                    .get(LEDGER)
                    .map(|path| Value::Path(around.resolved(Path::new(""), path.trim()))),
            ),
        ];
        for (name, value) in variables {
            if let Some(value) = value {
                options.retain(|(known, _)| *known != name);
                options.push((name, value));
            }
        }
        Ok(Self { options, profile: found, ..settings })
    }

    /// What the profile of this name says, and nothing else: of the variables only [`CONFIG`] is
    /// looked at, which says where the file is.
    ///
    /// # Errors
    /// `ConfigError` for a file or profile that is not there or wrong, and where something needed is
    /// missing.
    pub fn from_profile(name: &str, around: &Surroundings<'_>, given: Given) -> Result<Self> {
        let mut profile = Profile::find(name, around, true)?;
        let base_url = profile.text("base_url");
        let subject = profile.text("subject");
        let key = if given.credential { None } else { profile.key() };
        let found = profile.found();
        let looked_at = || format!("Looked at: {}.", profile.described());
        let settings = Found { base_url, subject, key }.settings(given, looked_at)?;
        Ok(Self { options: profile.into_options(), profile: found, ..settings })
    }
}

/// What was found of the things that a client cannot be made without.
struct Found {
    base_url: Option<String>,
    subject: Option<String>,
    key: Option<Key>,
}

impl Found {
    fn settings(self, given: Given, looked_at: impl Fn() -> String) -> Result<Settings> {
        let missing: Vec<&str> = [
            ("base_url", self.base_url.is_some() || given.base_url),
            ("subject", self.subject.is_some() || given.credential),
            ("the private key", self.key.is_some() || given.credential),
        ]
        .into_iter()
        .filter_map(|(what, is_there)| (!is_there).then_some(what))
        .collect();
        if !missing.is_empty() {
            let message = format!("No client can be made: {} missing.", listed(&missing));
            return Err(Error::new(Kind::ConfigError, message).with_hint(looked_at()));
        }
        Ok(Settings {
            base_url: self.base_url.filter(|_| !given.base_url),
            credential: self.subject.zip(self.key).filter(|_| !given.credential),
            options: Vec::new(),
            profile: None,
        })
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

fn key_of_variables(around: &Surroundings<'_>) -> Result<Option<Key>> {
    let source = match (around.get(PRIVATE_KEY_FILE), around.get(PRIVATE_KEY)) {
        (Some(_), Some(_)) => return Err(conflict(PRIVATE_KEY_FILE, PRIVATE_KEY, "key")),
        (Some(path), None) => KeySource::File(around.resolved(Path::new(""), path.trim())),
        (None, Some(text)) => KeySource::Text(Zeroizing::new(text)),
        (None, None) => return Ok(None),
    };
    let passphrase = passphrase_of_variables(around)?;
    Ok(Some(Key { source, passphrase, kid: None, strict: false }))
}

/// The key of the profile. A passphrase in the variables goes before its own command.
fn key_of_profile(profile: &mut Profile, around: &Surroundings<'_>) -> Result<Option<Key>> {
    let Some(key) = profile.key() else { return Ok(None) };
    let passphrase = passphrase_of_variables(around)?.or(key.passphrase);
    Ok(Some(Key { passphrase, ..key }))
}

fn passphrase_of_variables(around: &Surroundings<'_>) -> Result<Option<PassphraseSource>> {
    match (around.get(PASSPHRASE), around.get(PASSWORD_COMMAND)) {
        (Some(_), Some(_)) => Err(conflict(PASSPHRASE, PASSWORD_COMMAND, "passphrase")),
        (Some(text), None) => Ok(Some(PassphraseSource::Text(Zeroizing::new(text)))),
        (None, command) => Ok(command.map(|line| PassphraseSource::Command(Value::Text(line)))),
    }
}

fn conflict(one: &str, other: &str, what: &str) -> Error {
    Error::new(Kind::ConfigError, format!("{one} and {other} are both set."))
        .with_hint(format!("Unset one: nobody can say which {what} is meant."))
}

fn allowance(text: &str) -> Result<Value> {
    text.trim().parse().map(Value::Whole).map_err(|_| {
        Error::new(Kind::ConfigError, format!("{DAILY_ALLOWANCE} is not a number of requests."))
            .with_hint("It is a whole number, such as 5000.")
    })
}

/// Of every variable whether it is set, of the file whether it was found: never what they hold.
fn looked_at(around: &Surroundings<'_>, profile: &Profile) -> String {
    let mut places: Vec<String> = variables::ALL
        .iter()
        .map(|name| {
            format!("{name} ({})", if around.get(name).is_some() { "set" } else { "not set" })
        })
        .collect();
    places.push(profile.described());
    format!("Looked at: {}.", places.join(", "))
}

#[cfg(test)]
mod tests;
