use std::io;
use std::path::Path;

use super::environment::Platform;
use super::variables::{
    AUDIENCE, CERTIFICATE_FILE, CLIENT_ID, CONFIG, DAILY_ALLOWANCE, LEDGER, PASSWORD_COMMAND,
    SCOPES, SUBJECT,
};
use super::*;

const FILE: &str = "/etc/plants/config.toml";
const PROFILES: &str = r#"
[default]
base_url = "https://default.example.com"
subject = "subject-of-default"
private_key_file = "keys/default.pem"
password_command = ["pass", "show", "plant"]
daily_allowance = 100
settle_lag = "10m"
scopes = ["customer.data.read"]

[plant-a]
base_url = "https://a.example.com"
subject = "subject-a"
private_key_file = "~/a.pem"
strict = true
"#;

fn environment(
    pairs: &[(&str, &str)],
    read: impl Fn(&Path) -> io::Result<String>,
    load: impl FnOnce(&Environment<'_>) -> Result<Settings>,
) -> Result<Settings> {
    let variable = |name: &str| {
        pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    };
    let (home, platform) = (|| None, Platform::Unix);
    load(&Environment { variable: &variable, read: &read, home: &home, platform })
        .and_then(Settings::complete)
}

/// Reads this text from `FILE`, which is the only file.
fn only(text: Option<&str>) -> impl Fn(&Path) -> io::Result<String> {
    move |path| match text {
        Some(text) if path == Path::new(FILE) => Ok(text.to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

fn variables(pairs: &[(&str, &str)], file: Option<&str>) -> Result<Settings> {
    environment(pairs, only(file), |found| Settings::from_variables(found, Given::default()))
}

fn profile(name: &str, pairs: &[(&str, &str)], file: Option<&str>) -> Result<Settings> {
    environment(pairs, only(file), |found| Settings::from_profile(name, found, Given::default()))
}

fn refused(outcome: Result<Settings>) -> String {
    let error = outcome.expect_err("refused");
    assert_eq!(error.kind(), Kind::ConfigError);
    let text = error.to_string();
    assert!(!text.contains("hunter2") && !text.contains("BEGIN"), "{text}");
    text
}

fn option<'a>(settings: &'a Settings, name: &str) -> Option<&'a Value> {
    settings.options.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn signing(settings: &Settings) -> (&str, &CredentialSettings) {
    let credential = settings.credential.as_ref().expect("a credential");
    (settings.subject().expect("a subject"), credential)
}

fn part<'a>(credential: &'a CredentialSettings, name: &str) -> Option<&'a Value> {
    credential.parts.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn path(credential: &CredentialSettings, name: &str) -> PathBuf {
    match part(credential, name) {
        Some(Value::Path(path)) => path.clone(),
        _ => panic!("no path: {name}"),
    }
}

#[test]
fn an_error_lists_all_sources_and_shows_no_value() {
    let text = refused(variables(
        &[(BASE_URL, "https://u:hunter2@a"), (PRIVATE_KEY, "-----BEGIN"), ("HOME", "/home/ada")],
        None,
    ))
    .replace('\\', "/");
    assert!(text.contains("subject is missing"), "{text}");
    for place in [
        "SITELINE_BASE_URL (set)",
        "SITELINE_SUBJECT (not set)",
        "SITELINE_PRIVATE_KEY (set)",
        "SITELINE_PRIVATE_KEY_FILE (not set)",
        "SITELINE_PASSWORD_COMMAND (not set)",
        "SITELINE_PROFILE (not set)",
        "/home/ada/.config/siteline/config.toml (not found)",
    ] {
        assert!(text.contains(place), "{place}: {text}");
    }
    let text = refused(variables(&[(CONFIG, FILE)], Some("[plant-a]\n")));
    assert!(text.contains("base_url, subject and the private key are missing"), "{text}");
    assert!(
        text.contains("config.toml (found), the profile \"default\" in it (not found)"),
        "{text}"
    );
    assert!(refused(variables(&[], None)).contains("no home folder"));
}

#[test]
fn a_passphrase_has_the_source_of_its_key() {
    let credential = |pairs: &[(&str, &str)]| {
        let all = [&[(CONFIG, FILE)], pairs].concat();
        variables(&all, Some(PROFILES)).unwrap().credential.expect("a credential")
    };
    let found = credential(&[]);
    assert!(matches!(part(&found, "password_command"), Some(Value::Words(_))));
    assert_eq!(found.command_file.as_deref(), Some(Path::new(FILE)));
    let found = credential(&[(PRIVATE_KEY_FILE, "other.pem")]);
    assert!(part(&found, "password_command").is_none() && found.command_file.is_none());
    let found = credential(&[(PASSPHRASE, "hunter2")]);
    assert!(part(&found, "passphrase_variable") == Some(&Value::Text(PASSPHRASE.to_owned())));
    assert!(part(&found, "password_command").is_none() && found.command_file.is_none());
    let found = credential(&[(PRIVATE_KEY_FILE, "other.pem"), (PASSWORD_COMMAND, "pass show it")]);
    assert!(matches!(part(&found, "password_command"), Some(Value::Text(_))));
    assert!(found.command_file.is_none());
}

#[test]
fn two_keys_or_two_passphrases_are_refused() {
    for (one, other) in [(PRIVATE_KEY, PRIVATE_KEY_FILE), (PASSPHRASE, PASSWORD_COMMAND)] {
        let pairs = [(PRIVATE_KEY, "-----BEGIN hunter2"), (one, "hunter2"), (other, "hunter2")];
        assert!(refused(variables(&pairs, None)).contains("both set"), "{one}");
    }
}

#[test]
fn the_error_for_a_missing_profile_lists_the_existing_ones() {
    let text = refused(profile("plant_a", &[(CONFIG, FILE)], Some(PROFILES)));
    assert!(text.contains("Did you mean \"plant-a\"?") && text.contains("\"default\""), "{text}");
    assert!(
        refused(variables(&[(CONFIG, FILE), (PROFILE, "b")], Some(PROFILES))).contains("\"b\"")
    );
    assert!(
        refused(variables(&[(CONFIG, "absent.toml")], None)).contains("Correct SITELINE_CONFIG")
    );
    assert!(refused(profile("a", &[], None)).contains("no home folder"));
}

#[test]
fn an_invalid_member_is_named_without_its_value() {
    for (text, expected) in [
        ("[a]\nbase_url = \"hunter2", "line 2"),
        ("[a]\nbaseurl = \"hunter2\"", "Did you mean base_url?"),
        ("[a]\npassphrase = \"hunter2\"", "password_command"),
        ("[a]\nprivate_key = \"-----BEGIN\"", "private_key_file"),
        ("[a]\ntries = \"hunter2\"", "tries is not a whole number"),
        ("[a]\nscopes = [1]", "scopes is not text or a list of texts"),
        ("[a]\nsettle_lag = true", "settle_lag is not a duration"),
        ("base_url = \"hunter2\"", "Write a line such as [a]"),
    ] {
        let message = refused(profile("a", &[(CONFIG, FILE)], Some(text)));
        assert!(message.contains(expected) && message.contains(FILE), "{expected}: {message}");
    }
}

#[test]
fn settings_given_as_arguments_are_not_read() {
    let given = Given { base_url: true, credential: true };
    let pairs = [(PRIVATE_KEY, "x"), (PRIVATE_KEY_FILE, "y"), (SCOPES, "customer.data.read")];
    let settings =
        environment(&pairs, only(None), |found| Settings::from_variables(found, given)).unwrap();
    assert!(settings.base_url.is_none() && settings.credential.is_none());
    assert_eq!(settings.options.len(), 1);
}

fn certificate(settings: Settings) -> (PathBuf, CredentialSettings) {
    let found = settings.credential.expect("a credential");
    assert!(found.subject.is_none());
    (path(&found, "certificate"), found)
}

const PLATFORM: &str = "[default]\nbase_url = \"https://a.example.com\"\n\
    certificate_file = \"plant.p12\"\npassword_command = [\"pass\", \"plant\"]\n\
    client_id = \"integration-7\"\nstrict = true\n";

#[test]
fn a_certificate_file_replaces_subject_and_key() {
    // A named profile ignores the variables.
    let variables_of_another = [(CONFIG, FILE), (SUBJECT, "mine"), (CLIENT_ID, "8")];
    let settings = profile("default", &variables_of_another, Some(PLATFORM)).unwrap();
    let (file, found) = certificate(settings);
    assert_eq!(file, Path::new("/etc/plants/plant.p12"));
    let id = |id: &str| Some(Value::Text(id.to_owned()));
    assert!(part(&found, "client_id") == id("integration-7").as_ref());
    assert!(part(&found, "strict") == Some(&Value::Flag(true)) && part(&found, "key").is_none());
    assert!(matches!(part(&found, "password_command"), Some(Value::Words(_))));

    let base = (BASE_URL, "https://a.example.com");
    let own = [base, (CERTIFICATE_FILE, "~/plant.pem"), ("HOME", "/home/ada")];
    let (file, found) = certificate(variables(&own, None).unwrap());
    assert_eq!(file, Path::new("/home/ada/plant.pem"));
    let names: Vec<_> = found.parts.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["certificate"]);
    let with_key = [&own[..], &[(PRIVATE_KEY_FILE, "key.pem"), (PASSPHRASE, "hunter2")]].concat();
    let (_, found) = certificate(variables(&with_key, None).unwrap());
    assert_eq!(path(&found, "key"), Path::new("key.pem"));
    assert!(part(&found, "passphrase_variable").is_some());

    // Variables override the profile's members, and select the mode.
    let other = [(CONFIG, FILE), (CERTIFICATE_FILE, "other.pem"), (CLIENT_ID, " 8 ")];
    let (file, found) = certificate(variables(&other, Some(PLATFORM)).unwrap());
    assert_eq!(file, Path::new("other.pem"));
    assert!(part(&found, "client_id") == id("8").as_ref() && found.parts.len() == 2);
    let signed = [(CONFIG, FILE), (SUBJECT, "mine"), (PRIVATE_KEY_FILE, "key.pem")];
    assert_eq!(signing(&variables(&signed, Some(PLATFORM)).unwrap()).0, "mine");
}

#[test]
fn a_subject_and_a_certificate_are_refused() {
    let both = [(SUBJECT, "mine"), (CERTIFICATE_FILE, "plant.pem")];
    assert!(refused(variables(&both, None)).contains("SITELINE_CERTIFICATE_FILE are both set"));
    for (member, expected) in [
        ("subject = \"mine\"", "subject and certificate_file are both set"),
        ("kid = \"k\"", "kid belongs to subject"),
        ("audience = \"https://a\"", "audience belongs to subject"),
    ] {
        let text = format!("{PLATFORM}{member}\n");
        assert!(refused(profile("default", &[(CONFIG, FILE)], Some(&text))).contains(expected));
    }
    let without = "[default]\nbase_url = \"https://a\"\nclient_id = \"7\"\n";
    let text = refused(profile("default", &[(CONFIG, FILE)], Some(without)));
    assert!(text.contains("client_id belongs to certificate_file"), "{text}");
}

fn sources(settings: &Settings) -> Vec<(&'static str, Option<&'static str>)> {
    let mut sources = settings.sources.clone();
    sources.sort_unstable();
    sources
}

#[test]
fn the_source_of_each_setting_is_listed() {
    let settings = variables(
        &[(CONFIG, FILE), (BASE_URL, "https://b.example.com"), (SCOPES, "a.read")],
        Some(PROFILES),
    );
    let settings = settings.expect("the profile has the rest");
    assert_eq!(
        sources(&settings),
        [
            ("base_url", Some(BASE_URL)),
            ("daily_allowance", None),
            ("password_command", None),
            ("private_key_file", None),
            ("scopes", Some(SCOPES)),
            ("settle_lag", None),
            ("subject", None),
        ]
    );
    assert_eq!(settings.subject(), Some("subject-of-default"));
    assert_eq!(path(signing(&settings).1, "key"), Path::new("/etc/plants/keys/default.pem"));
    assert!(option(&settings, "settle_lag") == Some(&Value::Text("10m".to_owned())));
    // A key in the variables replaces the profile's key with its settings.
    let pairs = [(CONFIG, FILE), (PROFILE, "plant-a"), (PRIVATE_KEY_FILE, "k.pem")];
    let settings = variables(&pairs, Some(PROFILES)).expect("settings");
    assert!(sources(&settings).contains(&("private_key_file", Some(PRIVATE_KEY_FILE))));
    assert!(!sources(&settings).contains(&("strict", None)));
    // A certificate in the variables replaces the profile's subject and key.
    let pairs = [(CONFIG, FILE), (CERTIFICATE_FILE, "plant.pem"), (CLIENT_ID, "plant-7")];
    let settings = variables(&pairs, Some(PROFILES)).expect("settings");
    let named: Vec<_> = sources(&settings).into_iter().map(|(name, _)| name).collect();
    let expected = ["base_url", "certificate_file", "client_id", "daily_allowance", "scopes"];
    assert_eq!(named, [&expected[..], &["settle_lag"]].concat());
    assert_eq!(settings.subject(), None);
}

#[test]
fn a_variable_is_read_without_quotes_and_white_space() {
    let frames: [fn(&str) -> String; 3] =
        [|value| format!("\"{value}\""), |value| format!(" {value} \r\n"), str::to_owned];
    for frame in frames {
        let [base, allowance, ledger, file, name] =
            ["https://a.example.com", "5000", "~/plant.ledger", FILE, "empty"].map(frame);
        let pairs = [
            (BASE_URL, &*base),
            (SUBJECT, "subject-1"),
            (PRIVATE_KEY_FILE, "key.pem"),
            (DAILY_ALLOWANCE, &allowance),
            (LEDGER, &ledger),
            (CONFIG, &file),
            (PROFILE, &name),
            ("HOME", "/home/ada"),
        ];
        let settings = variables(&pairs, Some("[empty]\n")).expect("settings");
        assert_eq!(settings.base_url.as_deref(), Some("https://a.example.com"));
        assert!(option(&settings, "daily_allowance") == Some(&Value::Whole(5000)));
        let ledger = Value::Path("/home/ada/plant.ledger".into());
        assert!(option(&settings, "ledger") == Some(&ledger));
        assert_eq!(settings.profile.map(|(_, name)| name).as_deref(), Some("empty"));
    }
}

#[test]
fn a_key_in_a_variable_has_its_lines() {
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----";
    for written in [KEY.to_owned(), KEY.replace('\n', "\\n"), format!("\"{KEY}\"\n")] {
        let pairs = [(BASE_URL, "https://a"), (SUBJECT, "s"), (PRIVATE_KEY, written.as_str())];
        let settings = environment(&pairs, only(None), |found| {
            assert_eq!(found.get(PRIVATE_KEY).as_deref(), Some(KEY), "{written:?}");
            Settings::from_variables(found, Given::default())
        });
        let settings = settings.expect("settings");
        let variable = Value::Text(PRIVATE_KEY.to_owned());
        assert!(part(signing(&settings).1, "key_variable") == Some(&variable));
        assert!(!format!("{settings:?}").contains("AAAA"));
    }
}

#[test]
fn an_impossible_variable_is_named_without_its_value() {
    for name in [BASE_URL, SUBJECT, PRIVATE_KEY_FILE, AUDIENCE, LEDGER, PROFILE, SCOPES] {
        for value in
            ["\"hunter2", "hunter2'", "hunter2\nhunter2", "hunter2\u{0}x", "hunter2\u{fffd}"]
        {
            let text = refused(variables(&[(name, value)], None));
            assert!(text.contains(&format!("{name} cannot be used")), "{name} {value:?}: {text}");
        }
    }
}

#[test]
fn a_file_that_is_not_needed_may_be_unreadable() {
    let complete =
        [(BASE_URL, "https://a"), (SUBJECT, "s"), (PRIVATE_KEY_FILE, "k.pem"), ("HOME", "/root")];
    let certificate = [(BASE_URL, "https://a"), (CERTIFICATE_FILE, "c.pem"), ("HOME", "/root")];
    let failures = [Err(io::ErrorKind::PermissionDenied.into()), Ok("= not TOML")];
    let with_file = |pairs: &[(&str, &str)], failure: &io::Result<&str>| {
        let read = |_: &Path| match failure {
            Ok(text) => Ok((*text).to_owned()),
            Err(error) => Err(error.kind().into()),
        };
        environment(pairs, read, |found| Settings::from_variables(found, Given::default()))
    };
    for failure in failures {
        for pairs in [&complete[..], &certificate[..]] {
            let settings = with_file(pairs, &failure).expect("the file is not needed");
            assert!(settings.profile.is_none() && settings.options.is_empty());
            let named = [pairs, &[(CONFIG, FILE)]].concat();
            assert!(with_file(&named, &failure).is_err(), "named: {failure:?}");
            let named = [pairs, &[(PROFILE, "a")]].concat();
            assert!(with_file(&named, &failure).is_err(), "named: {failure:?}");
            assert!(with_file(&pairs[1..], &failure).is_err(), "needed: {failure:?}");
        }
    }
    // A readable file is checked.
    assert!(with_file(&complete, &Ok("[default]\nbaseurl = \"x\"\n")).is_err());
}
