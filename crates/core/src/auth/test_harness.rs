//! A token exchange for tests: a scripted server, a frozen clock, and a credential that no other
//! test uses, so that tests do not share a token.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

use super::{
    AccessToken, Credential, Exchange, PrivateKey, Proof, ScopeSet, TokenKey, TokenSource,
};
use crate::clock::{Clock, ServiceTime};
use crate::error::Result;
use crate::http::test_server::{Act, TestServer, token_body};
use crate::http::{Deadline, Ledger, LocalLedger, Policy, Terms, Transport, TransportSettings};
use crate::test_kit::at;

pub(crate) const DATA_SCOPE: &str = "customer.data.read";
pub(crate) const BOTH_SCOPES: &str = "customer.discovery.read customer.data.read";

pub(crate) struct Harness {
    pub(crate) server: TestServer,
    pub(crate) clock: Clock,
    pub(crate) credential: Credential,
    pub(crate) transport: Transport,
    pub(crate) time: ServiceTime,
    token_url: String,
    pub(crate) policy: Policy,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) source: Arc<TokenSource>,
}

/// A credential that no other test uses.
pub(crate) fn credential() -> Credential {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let subject = format!("subject-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    credential_of(&subject, include_bytes!("../../../../tests/keys/pkcs8.pem"))
}

pub(crate) fn credential_of(subject: &str, pem: &[u8]) -> Credential {
    let key = PrivateKey::parse(pem, None).expect("a key");
    Credential::with_key(subject, key, None).expect("a credential").value
}

/// A frozen clock at noon.
pub(crate) fn noon() -> Clock {
    Clock::frozen_at(at("2026-11-01T12:00:00Z"))
}

/// A valid token reply.
pub(crate) fn good(token: &str) -> Act {
    Act::json(200, &token_body(token))
}

thread_local! {
    static WARNINGS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

struct Listener;

impl log::Log for Listener {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn && metadata.target().starts_with("siteline")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            WARNINGS.with_borrow_mut(|kept| kept.push(record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

/// The warnings of this thread since the previous call; for tests that run on one thread.
pub(crate) fn warnings() -> Vec<String> {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        log::set_logger(&Listener).expect("no other logger");
        log::set_max_level(log::LevelFilter::Warn);
    });
    WARNINGS.take()
}

impl Harness {
    /// The server sends these replies to token requests, and then valid tokens.
    pub(crate) async fn new(tokens: Vec<Act>) -> Self {
        Self::of(TestServer::scripted(tokens, Vec::new()).await, noon())
    }

    pub(crate) fn of(server: TestServer, clock: Clock) -> Self {
        let (credential, base) = (credential(), server.base_url());
        let transport = Transport::new(base.clone(), TransportSettings::default());
        let token_url = base.token_url();
        let source = TokenSource::shared(key(&token_url, &credential, BOTH_SCOPES), &clock);
        Self {
            time: ServiceTime::new(clock.clone()),
            transport: transport.expect("settings"),
            policy: Policy::token(),
            ledger: Arc::new(LocalLedger::in_memory(Terms::default())),
            server,
            clock,
            credential,
            token_url,
            source,
        }
    }

    pub(crate) fn source_for(&self, scopes: &str) -> Arc<TokenSource> {
        TokenSource::shared(key(&self.token_url, &self.credential, scopes), &self.clock)
    }

    pub(crate) fn exchange(&self) -> Exchange<'_> {
        Exchange {
            transport: &self.transport,
            time: &self.time,
            proof: Proof::Assertion { credential: &self.credential, token_url: &self.token_url },
            policy: &self.policy,
            deadline: Deadline::NEVER,
            ledger: &*self.ledger,
        }
    }

    pub(crate) async fn token(&self) -> Result<AccessToken> {
        self.source.token(&self.exchange()).await
    }

    /// Another caller that needs a token, in a separate task with its own connections.
    pub(crate) fn spawn(&self) -> tokio::task::JoinHandle<Result<AccessToken>> {
        let base = self.transport.base_url().clone();
        let transport = Transport::new(base, TransportSettings::default()).expect("settings");
        let (source, time) = (Arc::clone(&self.source), self.time.clone());
        let (credential, token_url) = (self.credential.clone(), self.token_url.clone());
        let (policy, ledger) = (self.policy.clone(), Arc::clone(&self.ledger));
        tokio::spawn(async move {
            let exchange = Exchange {
                transport: &transport,
                time: &time,
                proof: Proof::Assertion { credential: &credential, token_url: &token_url },
                policy: &policy,
                deadline: Deadline::NEVER,
                ledger: &*ledger,
            };
            source.token(&exchange).await
        })
    }

    /// Runs `count` callers at once and returns the outcome of each.
    pub(crate) async fn at_once(&self, count: usize) -> Vec<Result<AccessToken>> {
        let tasks: Vec<_> = (0..count).map(|_| self.spawn()).collect();
        let mut outcomes = Vec::with_capacity(count);
        for task in tasks {
            outcomes.push(task.await.expect("no panic"));
        }
        outcomes
    }
}

fn key(token_url: &str, credential: &Credential, scopes: &str) -> TokenKey {
    TokenKey {
        token_url: token_url.to_owned(),
        audience: token_url.to_owned(),
        subject: credential.subject().to_owned(),
        kid: credential.kid().to_owned(),
        client_id: None,
        scopes: ScopeSet::granted(scopes),
    }
}
