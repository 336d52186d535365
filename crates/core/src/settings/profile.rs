//! A table of the profile file, validated member by member. It contains no secret: the key is a
//! path, and a command prints the passphrase.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::{Table, Value as Toml};

use super::environment::Environment;
use super::members::{Members, ONE_MODE};
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

pub(super) fn form_of(name: &str) -> Form {
    known_members().find(|(known, _)| *known == name).map_or(Form::Text, |(_, form)| form)
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

impl Profile {
    /// The profile may be absent unless it is `named`, and its file unless a variable names it. A
    /// file that cannot be read or parsed, perhaps because another user owns it, is ignored unless
    /// it is `needed`.
    pub(super) fn find(
        name: &str,
        environment: &Environment<'_>,
        named: bool,
        needed: bool,
    ) -> Result<Self> {
        let of_file = |file| Self { name: name.to_owned(), file, file_found: false, members: None };
        let mut profile = of_file(environment.config_file());
        let Some(file) = profile.file.clone() else {
            let why = "there is no home folder";
            return if named { Err(profile.absent(why)) } else { Ok(profile) };
        };
        let profiles = match profile.read(&file, environment) {
            Ok(Some(profiles)) => profiles,
            Ok(None) if environment.get(CONFIG).is_some() => {
                let why = "SITELINE_CONFIG names a file that does not exist";
                let hint = format!("Correct {CONFIG}, or unset it: other variables need no file.");
                return Err(profile.absent(why).with_hint(hint));
            }
            Ok(None) if named => {
                let hint =
                    "`siteline profile init` creates it. SITELINE_CONFIG names another file.";
                return Err(profile.absent("the file does not exist").with_hint(hint));
            }
            Ok(None) => return Ok(profile),
            Err(error) if needed => return Err(error),
            Err(error) => {
                log::warn!(
                    target: "siteline::settings",
                    "The profile file is ignored: {}", error.context().message
                );
                return Ok(of_file(None));
            }
        };
        profile.file_found = true;
        if let Some((stray, _)) = profiles.iter().find(|(_, value)| !value.is_table()) {
            let stray = excerpt(stray);
            return Err(wrong(&file, &format!("{stray} is not in a profile"))
                .with_hint(format!("Write a line such as [{name}] above it.")));
        }
        match profiles.get(name).and_then(Toml::as_table) {
            Some(table) => profile.members = Some(members(table, &file, name, environment)?),
            None if named => return Err(no_such_profile(&profiles, &file, name)),
            None => {}
        }
        Ok(profile)
    }

    /// Reads the profiles of the file; `None` if it does not exist.
    fn read(&self, file: &Path, environment: &Environment<'_>) -> Result<Option<Table>> {
        match (environment.read)(file) {
            Ok(text) => parse(&text).map(Some).map_err(|what| wrong(file, &what)),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
                ErrorKind::InvalidData => Err(self.absent("the file is not UTF-8 text")),
                _ => {
                    let why = format!("the file cannot be read: {}", system::reason(&error));
                    Err(self.absent(&why).passing_as(&error))
                }
            },
        }
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

    /// The members that are set. With `has_credential`, those of the credential are not checked.
    pub(super) fn members(&self, has_credential: bool) -> Result<Members> {
        let members = Members::of_profile(self.members.clone().unwrap_or_default());
        match members.mixed_modes().filter(|_| !has_credential) {
            None => Ok(members),
            Some(what) => {
                Err(Error::new(Kind::ConfigError, format!("{what}, in {}.", self.described()))
                    .with_hint(ONE_MODE))
            }
        }
    }

    pub(super) fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
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
    pub(super) fn read(
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
