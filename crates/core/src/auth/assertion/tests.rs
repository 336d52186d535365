use serde_json::{Map, Value, json};

use super::super::tests::{KEY, credential, finished, verified_claims};
use super::*;
use crate::http::test_server::assert_error;

const AUDIENCE: &str = "https://customer.example.com/api/customer/oauth/token";

fn make(credential: &Credential, settings: AssertionSettings, now: Timestamp) -> Result<Assertion> {
    finished(super::make(&credential.clone().with_assertions(settings)?, AUDIENCE, now))
}

fn settings() -> AssertionSettings {
    AssertionSettings::default()
}

fn now() -> Timestamp {
    "2026-11-01T12:00:00.987654321Z".parse().expect("a timestamp")
}

/// The header and claims of an assertion, verified with jsonwebtoken.
fn opened(assertion: Assertion) -> (Map<String, Value>, Map<String, Value>) {
    let text = assertion.into_form_value();
    let claims = verified_claims(&text, &KEY.public_jwk().to_json(), AUDIENCE);
    let (header, _) = text.split_once('.').expect("three parts");
    let header = URL_SAFE_NO_PAD.decode(header).expect("base64url without padding");
    (serde_json::from_slice(&header).expect("a JSON object"), claims)
}

#[test]
fn the_header_has_alg_and_kid_and_typ_only_if_configured() {
    let kid = KEY.thumbprint();
    for (typ, expected) in [
        (false, json!({"alg": "RS256", "kid": kid})),
        (true, json!({"alg": "RS256", "typ": "JWT", "kid": kid})),
    ] {
        let settings = AssertionSettings { typ, ..settings() };
        let (header, _) = opened(make(&credential(), settings, now()).expect("an assertion"));
        assert_eq!(Value::from(header), expected);
    }
}

#[test]
fn the_claims_are_those_of_the_interface_with_whole_seconds() {
    let settings = AssertionSettings { tolerance: Duration::from_secs(7), ..settings() };
    let (_, mut claims) = opened(make(&credential(), settings, now()).expect("an assertion"));
    let jti = claims.remove("jti").expect("a jti");
    assert_eq!(jti.as_str().map(str::len), Some(32));
    let iat = 1_793_534_400;
    assert_eq!(
        Value::from(claims.clone()),
        json!({
            "iss": "customer-7", "sub": "customer-7", "aud": AUDIENCE,
            "iat": iat, "nbf": iat - 7, "exp": iat + 120,
        })
    );
    for name in ["iat", "nbf", "exp"] {
        assert!(claims[name].is_i64(), "{name} is written as an integer");
    }
}

#[test]
fn a_subject_with_quotes_stays_one_claim() {
    let subject = "a\",\"jku\":\"x";
    let credential =
        super::super::Credential::with_key(subject, KEY.clone(), None).expect("a credential").value;
    let (_, claims) = opened(make(&credential, settings(), now()).expect("an assertion"));
    assert_eq!(claims["iss"], subject);
    assert_eq!(claims.len(), 7);
}

#[test]
fn a_lifetime_over_five_minutes_or_under_a_second_is_refused() {
    let with = |lifetime| AssertionSettings { lifetime, ..settings() };
    for seconds in [1, 120, 300] {
        let made = make(&credential(), with(Duration::from_secs(seconds)), now());
        let (_, claims) = opened(made.expect("an assertion"));
        let span = claims["exp"].as_i64().zip(claims["iat"].as_i64()).map(|(exp, iat)| exp - iat);
        assert_eq!(span, i64::try_from(seconds).ok());
    }
    for milliseconds in [0, 999, 1_500, 300_001, 301_000] {
        let made = make(&credential(), with(Duration::from_millis(milliseconds)), now());
        assert_error(made, Kind::ConfigError, "1 to 300");
    }
}

#[test]
fn a_tolerance_over_a_minute_is_refused() {
    for (milliseconds, fits) in [(0, true), (60_000, true), (500, false), (61_000, false)] {
        let tolerance = Duration::from_millis(milliseconds);
        let checked = AssertionSettings { tolerance, ..settings() }.check();
        assert_eq!(checked.is_ok(), fits, "{milliseconds}");
    }
}

#[test]
fn an_audience_with_unexpected_white_space_is_refused() {
    for audience in ["", " https://a", "https://a\n", "https://a\nb"] {
        let error = AssertionSettings { audience: Some(audience.to_owned()), ..settings() }
            .check()
            .expect_err("refused");
        assert_eq!(error.kind(), Kind::ConfigError, "{audience:?}");
    }
}
