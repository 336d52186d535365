//! The source of each setting of a client, without values, for a diagnosis.

use super::CredentialSettings;
use super::environment::Environment;
use super::options::ASSERTION_OPTIONS;
use super::variables::{
    AUDIENCE, BASE_URL, CERTIFICATE_FILE, CLIENT_ID, DAILY_ALLOWANCE, LEDGER, PASSPHRASE,
    PASSWORD_COMMAND, PRIVATE_KEY, PRIVATE_KEY_FILE, SCOPES, SUBJECT,
};

/// A setting, and the variable that set it; `None` for the profile.
pub type Source = (&'static str, Option<&'static str>);

/// The settings that variables can set, by their names in a profile.
const BY_VARIABLES: [(&str, &[&str]); 10] = [
    ("base_url", &[BASE_URL]),
    ("subject", &[SUBJECT]),
    ("certificate_file", &[CERTIFICATE_FILE]),
    ("private_key_file", &[PRIVATE_KEY_FILE, PRIVATE_KEY]),
    ("password_command", &[PASSPHRASE, PASSWORD_COMMAND]),
    ("client_id", &[CLIENT_ID]),
    ("scopes", &[SCOPES]),
    ("audience", &[AUDIENCE]),
    ("daily_allowance", &[DAILY_ALLOWANCE]),
    ("ledger", &[LEDGER]),
];

/// `written` are the members of the profile. Without an environment, the variables are ignored.
pub(super) fn list(
    written: &[&'static str],
    environment: Option<&Environment<'_>>,
    credential: Option<&CredentialSettings>,
) -> Vec<Source> {
    let variable_of = |name: &str| {
        let environment = environment?;
        let (_, names) = BY_VARIABLES.iter().find(|(known, _)| *known == name)?;
        names.iter().copied().find(|variable| environment.get(variable).is_some())
    };
    // A variable replaces all members of the profile's key or certificate.
    let is_replaced = |name: &str| match name {
        "password_command" | "kid" | "strict" => {
            variable_of("private_key_file").or(variable_of("certificate_file")).is_some()
        }
        "private_key_file" | "client_id" => variable_of("certificate_file").is_some(),
        _ => false,
    };
    let mut sources: Vec<Source> = BY_VARIABLES
        .iter()
        .filter_map(|(name, _)| Some((*name, Some(variable_of(name)?))))
        .collect();
    let by_profile = |name: &&&str| variable_of(name).is_none() && !is_replaced(name);
    sources.extend(written.iter().filter(by_profile).map(|name| (*name, None)));
    sources.retain(|(name, _)| is_used(name, credential));
    sources
}

fn is_used(name: &str, credential: Option<&CredentialSettings>) -> bool {
    match credential {
        Some(CredentialSettings::Assertion { .. }) => {
            !matches!(name, "certificate_file" | "client_id")
        }
        Some(CredentialSettings::MutualTls(_)) => {
            !matches!(name, "subject" | "kid")
                && ASSERTION_OPTIONS.iter().all(|(option, _)| *option != name)
        }
        None => true,
    }
}
