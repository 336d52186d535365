//! K15: another crate of the process brings a second crypto library. This test has a process of its own,
//! in which rustls is built with both, and ring is the default for everybody who does not choose.

#![expect(clippy::disallowed_methods, reason = "the test has its own runtime")]

use std::future::ready;

use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, ring};
use siteline_base::clock::Clock;
use siteline_core::Result;
use siteline_core::auth::{Credential, PrivateKey};
use siteline_core::client::{Client, ClientSettings, DATA_PATH, Spending};
use siteline_core::http::{BaseUrl, Deadline};
use siteline_sandbox::{DEFAULT_SCOPES, Options, Sandbox, TlsOption};

/// One page over TLS, with a token of its own.
async fn one_page() -> Result<()> {
    let options = Options { tls: TlsOption::Switch(true), ..Options::default() };
    let clock = Clock::frozen_at("2026-11-20T12:00:00Z".parse().expect("a time"));
    let sandbox = Sandbox::start(options, clock.clone()).expect("a sandbox");
    let key = PrivateKey::parse(include_bytes!("../../tests/keys/pkcs8.pem"), None)?;
    let subject = sandbox.enroll(&key.public_jwk().to_json(), &DEFAULT_SCOPES).expect("a subject");
    let credential = Credential::with_key(&subject, key, None)?.value;
    let base_url = BaseUrl::parse(sandbox.base_url(), false)?;
    let mut settings = ClientSettings::new(base_url, credential);
    settings.clock = clock;
    settings.transport.trust.ca_bundle = Some(sandbox.ca().expect("TLS").as_bytes().to_vec());
    let client = Client::new(settings)?;
    let query = "siteId=S1&from=2026-11-01T00%3A00%3A00Z&to=2026-11-01T01%3A00%3A00Z\
                 &aggregationIntervalSeconds=3600";
    let spending = Spending::default();
    let unread = |_: &_| ready(Ok(()));
    client.get(DATA_PATH, query, Deadline::NEVER, &spending, unread).await
}

#[tokio::test]
async fn k15_a_second_crypto_library_and_its_default_change_nothing() {
    // With both compiled in and none installed, whoever leaves the choice to rustls panics.
    assert!(std::panic::catch_unwind(ClientConfig::builder).is_err());
    one_page().await.expect("a page");
    assert!(CryptoProvider::get_default().is_none(), "the choice is left to others");

    ring::default_provider().install_default().expect("no other");
    one_page().await.expect("a page");
}
