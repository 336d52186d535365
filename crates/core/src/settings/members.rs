//! The settings by their names in a profile, each from the profile or from a variable.

use std::path::{Path, PathBuf};

use toml::Value as Toml;

use super::credential::CredentialSettings;
use super::environment::Environment;
use super::options::{ASSERTION_OPTIONS, Form, OPTIONS, Options, Value};
use super::profile::form_of;
use super::variables::{
    AUDIENCE, BASE_URL, CERTIFICATE_FILE, CLIENT_ID, CONFIG, DAILY_ALLOWANCE, LEDGER, PASSPHRASE,
    PASSWORD_COMMAND, PRIVATE_KEY, PRIVATE_KEY_FILE, PROFILE, SCOPES, SUBJECT,
};
use crate::error::{Error, Kind, Result};

/// A setting, and the variable that set it; `None` for the profile.
pub type Source = (&'static str, Option<&'static str>);

/// The settings that variables can set, each by only one of its variables. A certificate or a
/// subject selects the mode, so the settings of the other mode are removed first.
const BY_VARIABLES: [(&str, &[&str]); 10] = [
    ("base_url", &[BASE_URL]),
    ("certificate_file", &[CERTIFICATE_FILE]),
    ("subject", &[SUBJECT]),
    ("private_key_file", &[PRIVATE_KEY_FILE, PRIVATE_KEY]),
    ("password_command", &[PASSPHRASE, PASSWORD_COMMAND]),
    ("client_id", &[CLIENT_ID]),
    ("scopes", &[SCOPES]),
    ("audience", &[AUDIENCE]),
    ("daily_allowance", &[DAILY_ALLOWANCE]),
    ("ledger", &[LEDGER]),
];

/// The names of all variables that are settings.
pub(super) fn variables() -> impl Iterator<Item = &'static str> {
    let names = BY_VARIABLES.into_iter().flat_map(|(_, names)| names);
    names.copied().chain([CONFIG, PROFILE])
}

pub(super) const ONE_MODE: &str = "A subject and key sign assertions, and a client certificate is for \
                        platform-managed integrations. Set only one of them.";

struct Member {
    name: &'static str,
    /// The name of the variable for a secret, which remains in it.
    value: Value,
    variable: Option<&'static str>,
}

pub(super) struct Members(Vec<Member>);

impl Members {
    pub(super) fn of_profile(options: Options) -> Self {
        let member = |(name, value)| Member { name, value, variable: None };
        Self(options.into_iter().map(member).collect())
    }

    /// Returns what is wrong if the members mix the two modes.
    pub(super) fn mixed_modes(&self) -> Option<String> {
        if !self.has("certificate_file") {
            let has_id = self.has("client_id");
            return has_id.then(|| "client_id belongs to certificate_file".to_owned());
        }
        if self.has("subject") {
            return Some("subject and certificate_file are both set".to_owned());
        }
        let name = self.0.iter().map(|member| member.name).find(|name| is_of_assertions(name))?;
        Some(format!("{name} belongs to subject, not to certificate_file"))
    }

    /// The variables that are set replace the members of the profile. `has_credential` leaves out
    /// the variables of the credential.
    pub(super) fn replace(
        &mut self,
        environment: &Environment<'_>,
        has_credential: bool,
    ) -> Result<()> {
        for (name, variables) in BY_VARIABLES {
            let is_read = !has_credential || name == "base_url" || is_option(name);
            let mut set = variables.iter().filter(|name| environment.get(name).is_some());
            let Some(variable) = set.next().filter(|_| is_read) else { continue };
            if let Some(other) = set.next() {
                let what = if name == "private_key_file" { "key" } else { "passphrase" };
                let hint = format!("Unset one, because only one {what} can be used.");
                return Err(both_set(other, variable, &hint));
            }
            self.make_room(name)?;
            let value = value_of(name, variable, environment)?;
            self.0.push(Member { name, value, variable: Some(variable) });
        }
        if !has_credential && self.has("certificate_file") {
            self.0.retain(|member| !is_of_assertions(member.name));
        }
        Ok(())
    }

    /// Removes the members that a variable for `name` replaces.
    fn make_room(&mut self, name: &str) -> Result<()> {
        let is_certificate = self.has("certificate_file");
        match name {
            "certificate_file" => self.0.retain(|member| !is_of_credential(member.name)),
            "subject" if self.variable_of("certificate_file").is_some() => {
                return Err(both_set(SUBJECT, CERTIFICATE_FILE, ONE_MODE));
            }
            "subject" if is_certificate => {
                self.0.retain(|member| !is_of_credential(member.name));
            }
            "private_key_file" => {
                self.remove(&["password_command", "kid"]);
                if !is_certificate {
                    self.remove(&["strict"]);
                }
            }
            "client_id" if !is_certificate => {
                let message = format!("{CLIENT_ID} is set without {CERTIFICATE_FILE}.");
                return Err(Error::new(Kind::ConfigError, message).with_hint(ONE_MODE));
            }
            _ => {}
        }
        self.remove(&[name]);
        Ok(())
    }

    pub(super) fn sources(&self) -> Vec<Source> {
        self.0.iter().map(|member| (member.name, member.variable)).collect()
    }

    /// Adds the parts that are not set to `missing`. `file` is the file of the profile.
    pub(super) fn credential(
        &mut self,
        file: Option<&PathBuf>,
        missing: &mut Vec<&'static str>,
    ) -> CredentialSettings {
        let (subject, kid) = (self.text("subject"), self.text("kid"));
        if !self.has("certificate_file") {
            missing.extend(subject.is_none().then_some("subject"));
            missing.extend((!self.has("private_key_file")).then_some("the private key"));
        }
        let has_command =
            |member: &Member| (member.name, member.variable) == ("password_command", None);
        let command_file = file.filter(|_| self.0.iter().any(has_command)).cloned();
        let options = self.options(&ASSERTION_OPTIONS);
        let part = |Member { name, value, variable }| match (name, variable) {
            ("private_key_file", Some(PRIVATE_KEY)) => ("key_variable", value),
            ("private_key_file", _) => ("key", value),
            ("password_command", Some(PASSPHRASE)) => ("passphrase_variable", value),
            ("certificate_file", _) => ("certificate", value),
            _ => (name, value),
        };
        let parts =
            self.0.extract_if(.., |member| is_of_credential(member.name)).map(part).collect();
        CredentialSettings { subject, kid, parts, options, command_file }
    }

    /// Removes the `known` options.
    pub(super) fn options(&mut self, known: &[(&str, Form)]) -> Options {
        let is_known = |member: &mut Member| known.iter().any(|(name, _)| *name == member.name);
        self.0.extract_if(.., is_known).map(|member| (member.name, member.value)).collect()
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|member| member.name == name)?;
        match self.0.remove(at).value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn remove(&mut self, names: &[&str]) {
        self.0.retain(|member| !names.contains(&member.name));
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|member| member.name == name)
    }

    fn variable_of(&self, name: &str) -> Option<&'static str> {
        self.0.iter().find(|member| member.name == name)?.variable
    }
}

fn value_of(name: &str, variable: &str, environment: &Environment<'_>) -> Result<Value> {
    if variable == PRIVATE_KEY || variable == PASSPHRASE {
        return Ok(Value::Text(variable.to_owned()));
    }
    let (form, text) = (form_of(name), environment.get(variable).unwrap_or_default());
    let number = text.parse().ok().filter(|_| form == Form::Whole);
    let written = number.map_or(Toml::String(text), Toml::Integer);
    form.read(&written, Path::new(""), environment)
        .map_err(|expected| Error::new(Kind::ConfigError, format!("{variable} is not {expected}.")))
}

fn is_option(name: &str) -> bool {
    OPTIONS.iter().any(|(option, _)| *option == name)
}

fn is_of_assertions(name: &str) -> bool {
    name == "kid" || ASSERTION_OPTIONS.iter().any(|(option, _)| *option == name)
}

fn is_of_credential(name: &str) -> bool {
    name != "base_url" && !is_option(name)
}

fn both_set(one: &str, other: &str, hint: &str) -> Error {
    Error::new(Kind::ConfigError, format!("{one} and {other} are both set.")).with_hint(hint)
}
