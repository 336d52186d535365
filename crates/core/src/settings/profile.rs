//! A table of the profile file, validated member by member. It contains no secret: the key is a
//! path, and a command prints the passphrase.

use std::io;
use std::path::{Path, PathBuf};

use toml::{Table, Value as Toml};

use super::environment::Environment;
use super::key::{PassphraseSource, PasswordCommand};
use super::options::{ASSERTION_OPTIONS, Form, OPTIONS, Options, Value};
use super::variables::{CONFIG, PROFILE};
use crate::error::{Error, Kind, Result, excerpt};
use crate::system;
use crate::written::unquoted;

/// The members of the credential and the address. All others are [`ASSERTION_OPTIONS`] and
/// [`OPTIONS`].
const CREDENTIAL: [(&str, Form); 8] = [
    ("base_url", Form::Text),
    ("subject", Form::Text),
    ("certificate_file", Form::Path),
    ("client_id", Form::Text),
    ("private_key_file", Form::Path),
    ("password_command", Form::Words),
    ("kid", Form::Text),
    ("strict", Form::Flag),
];

fn known_members() -> impl Iterator<Item = (&'static str, Form)> {
    CREDENTIAL.into_iter().chain(ASSERTION_OPTIONS).chain(OPTIONS)
}

/// Rejected members, and their replacements.
const REFUSED: [(&str, &str); 6] = [
    ("certificate", "the certificate must be in its own file: use certificate_file"),
    ("passphrase", "a profile cannot contain a passphrase: use password_command to print it"),
    ("password", "a profile cannot contain a passphrase: use password_command to print it"),
    ("private_key", "the key must be in its own file: use private_key_file"),
    ("signer", "a profile cannot contain a signer: pass credential= in the program"),
    ("clock", "a profile cannot contain a clock: pass clock= in the program"),
];

/// The similarity from which a known name is suggested.
const SIMILAR: f64 = 0.75;

/// A profile may be absent.
pub(super) struct Profile {
    name: String,
    file: Option<PathBuf>,
    file_found: bool,
    members: Option<Options>,
}

pub(super) struct NotFound {
    pub(super) error: Error,
    /// The file could not be read or parsed, perhaps because another user owns it.
    pub(super) is_of_file: bool,
}

impl NotFound {
    fn unread(error: Error) -> Self {
        Self { error, is_of_file: true }
    }
}

impl From<Error> for NotFound {
    fn from(error: Error) -> Self {
        Self { error, is_of_file: false }
    }
}

impl From<NotFound> for Error {
    fn from(not_found: NotFound) -> Self {
        not_found.error
    }
}

impl Profile {
    pub(super) fn without_file(name: &str) -> Self {
        Self { name: name.to_owned(), file: None, file_found: false, members: None }
    }

    /// The profile may be absent unless it is `needed`, and its file unless a variable names it.
    pub(super) fn find(
        name: &str,
        environment: &Environment<'_>,
        needed: bool,
    ) -> Result<Self, NotFound> {
        let mut profile = Self::without_file(name);
        let Some(file) = environment.config_file() else {
            return if needed {
                Err(profile.absent("there is no home folder"))?
            } else {
                Ok(profile)
            };
        };
        profile.file = Some(file.clone());
        let text = match (environment.read)(&file) {
            Ok(text) => text,
            Err(error) if is_absent(&error) => {
                let why = "SITELINE_CONFIG names a file that does not exist";
                let hint = format!("Correct {CONFIG}, or unset it: other variables need no file.");
                return match environment.get(CONFIG) {
                    Some(_) => Err(profile.absent(why).with_hint(hint))?,
                    None if needed => Err(profile.absent("the file does not exist"))?,
                    None => Ok(profile),
                };
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(NotFound::unread(profile.absent("the file is not UTF-8 text")));
            }
            Err(error) => {
                let why = format!("the file cannot be read: {}", system::reason(&error));
                return Err(NotFound::unread(profile.absent(&why).passing_as(&error)));
            }
        };
        profile.file_found = true;
        let profiles = parse(&text).map_err(|what| NotFound::unread(wrong(&file, &what)))?;
        if let Some((stray, _)) = profiles.iter().find(|(_, value)| !value.is_table()) {
            let stray = excerpt(stray);
            return Err(wrong(&file, &format!("{stray} is not in a profile"))
                .with_hint(format!("Write a line such as [{name}] above it.")))?;
        }
        match profiles.get(name).and_then(Toml::as_table) {
            Some(table) => profile.members = Some(members(table, &file, name, environment)?),
            None if needed => return Err(no_such_profile(&profiles, &file, name))?,
            None => {}
        }
        Ok(profile)
    }

    fn absent(&self, why: &str) -> Error {
        let place =
            self.file.as_deref().map_or_else(String::new, |file| format!(" ({})", file.display()));
        Error::new(
            Kind::ConfigError,
            format!("No profile {:?}: {why}{place}.", excerpt(&self.name)),
        )
        .with_hint(format!("Set {CONFIG} to the file and {PROFILE} to the name of the profile."))
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn path(&mut self, name: &str) -> Option<PathBuf> {
        match self.take(name) {
            Some(Value::Path(path)) => Some(path),
            _ => None,
        }
    }

    pub(super) fn is_strict(&mut self) -> bool {
        self.take("strict") == Some(Value::Flag(true))
    }

    pub(super) fn password_command(&mut self) -> Option<PassphraseSource> {
        let words = self.take("password_command")?;
        Some(PassphraseSource::Command(PasswordCommand { words, file: self.file.clone() }))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let members = self.members.as_mut()?;
        let at = members.iter().position(|(known, _)| *known == name)?;
        Some(members.swap_remove(at).1)
    }

    pub(super) fn assertion_options(&mut self) -> Options {
        ASSERTION_OPTIONS.iter().filter_map(|(name, _)| Some((*name, self.take(name)?))).collect()
    }

    pub(super) fn into_options(self) -> Options {
        let is_option = |name: &str| OPTIONS.iter().any(|(option, _)| *option == name);
        let members = self.members.unwrap_or_default();
        members.into_iter().filter(|(name, _)| is_option(name)).collect()
    }

    pub(super) fn written(&self) -> Vec<&'static str> {
        self.members.iter().flatten().map(|(name, _)| *name).collect()
    }

    /// `None` if the profile does not exist.
    pub(super) fn found(&self) -> Option<(PathBuf, String)> {
        self.members.as_ref()?;
        Some((self.file.clone()?, self.name.clone()))
    }

    /// The file and profile that were searched, for an error.
    pub(super) fn described(&self) -> String {
        let name = excerpt(&self.name);
        let Some(file) = &self.file else {
            return "no profile file (there is no home folder)".to_owned();
        };
        let file = file.display();
        match (self.file_found, &self.members) {
            (false, _) => format!("the file {file} (not found)"),
            (true, None) => {
                format!("the file {file} (found), the profile {name:?} in it (not found)")
            }
            (true, Some(_)) => {
                format!("the file {file} (found), the profile {name:?} in it (found)")
            }
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The parser's message may quote the file, so only the line number is used.
fn parse(text: &str) -> Result<Table, String> {
    text.trim_start_matches('\u{feff}').parse::<Table>().map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        format!("line {} is not TOML", before.matches('\n').count() + 1)
    })
}

fn wrong(file: &Path, what: &str) -> Error {
    Error::new(Kind::ConfigError, format!("{what}, in the file {}.", file.display()))
}

fn no_such_profile(profiles: &Table, file: &Path, name: &str) -> Error {
    let names: Vec<String> = profiles.keys().map(|name| format!("{:?}", excerpt(name))).collect();
    let hint = match similar(name, profiles.keys().map(String::as_str)) {
        Some(near) => format!("Did you mean {near:?}? "),
        None => String::new(),
    };
    let known = match names.as_slice() {
        [] => "The file contains no profiles.".to_owned(),
        names => format!("The file contains {}.", names.join(", ")),
    };
    wrong(file, &format!("there is no profile {:?}", excerpt(name)))
        .with_hint(format!("{hint}{known}"))
}

fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (strsim::normalized_damerau_levenshtein(name, known), known))
        .filter(|(likeness, _)| *likeness >= SIMILAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known)
}

fn members(
    table: &Table,
    file: &Path,
    profile: &str,
    environment: &Environment<'_>,
) -> Result<Options> {
    let place = format!("in the profile {:?}", excerpt(profile));
    let unknown: Vec<&str> = table
        .keys()
        .map(String::as_str)
        .filter(|name| known_members().all(|(known, _)| known != *name))
        .collect();
    if let Some((_, instead)) = REFUSED.iter().find(|(refused, _)| unknown.contains(refused)) {
        return Err(wrong(file, &format!("{instead}; found {place}")));
    }
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| excerpt(name)).collect();
        let meant: Vec<String> = unknown
            .iter()
            .filter_map(|name| similar(name, known_members().map(|(known, _)| known)))
            .map(|near| format!("Did you mean {near}? "))
            .collect();
        let all: Vec<&str> = known_members().map(|(known, _)| known).collect();
        return Err(wrong(file, &format!("unknown {place}: {}", names.join(", ")))
            .with_hint(format!("{}Known members are {}.", meant.concat(), all.join(", "))));
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    known_members()
        .filter_map(|(name, form)| Some((name, form, table.get(name)?)))
        .map(|(name, form, given)| match form.read(given, folder, environment) {
            Ok(value) => Ok((name, value)),
            Err(expected) => Err(wrong(file, &format!("{name} is not {expected}, {place}"))),
        })
        .collect()
}

impl Form {
    /// Returns the value, or a description of the expected form.
    fn read(
        self,
        given: &Toml,
        folder: &Path,
        environment: &Environment<'_>,
    ) -> Result<Value, &'static str> {
        // A command may begin and end with a quoted word.
        let within = |text| if self == Self::Words { text } else { unquoted(text) };
        let text = given.as_str().map(|text| within(text).to_owned());
        match self {
            Self::Text | Self::TimeOfDay => text.map(Value::Text).ok_or("text"),
            // A ledger in memory is named like a file.
            Self::Ledger if text.as_deref() == Some("memory") => Ok(Value::Path("memory".into())),
            Self::Path | Self::Ledger | Self::Certificates => {
                text.map(|path| Value::Path(environment.resolved(folder, &path))).ok_or("a path")
            }
            Self::Words => {
                let list = given.as_array().map(|list| {
                    list.iter().map(|word| word.as_str().map(ToOwned::to_owned)).collect()
                });
                let list = list.and_then(|words: Option<Vec<String>>| words.map(Value::Words));
                text.map(Value::Text).or(list).ok_or("text or a list of texts")
            }
            Self::Table => given.as_table().cloned().map(Value::Table).ok_or("a table"),
            Self::Whole => given.as_integer().map(Value::Whole).ok_or("a whole number"),
            Self::Flag => given.as_bool().map(Value::Flag).ok_or("true or false"),
            Self::Duration => {
                let number = given.as_integer().map(Value::Whole);
                let number = number.or_else(|| given.as_float().map(Value::Number));
                text.map(Value::Text).or(number).ok_or("a duration, such as \"5m\" or 300")
            }
        }
    }
}
