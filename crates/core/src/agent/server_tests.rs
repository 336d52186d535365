use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use futures_util::future::BoxFuture;
use rcgen::{CertificateParams, KeyPair};

use super::super::connection::Connection;
use super::super::listener::TlsListen;
use super::super::message::{HEADER, Holder, LOCAL_HOST, VERSION};
use super::super::trust::ClientTls;
use super::*;
use crate::auth::test_harness::noon;
use crate::auth::{AccessToken, ScopeSet};
use crate::http::test_server::TestFolder;
use crate::http::{Ledger, LocalLedger};

struct Fake {
    clock: Clock,
    ledger: LocalLedger,
}

impl Lessor for Fake {
    fn holder(&self) -> Holder {
        let base_url = "https://customer.example.com".to_owned();
        Holder { base_url, subject: "integration-7".to_owned() }
    }

    fn scopes(&self) -> ScopeSet {
        ScopeSet::new(["customer.data.read"]).expect("a scope")
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn ledger(&self) -> &dyn Ledger {
        &self.ledger
    }

    fn token<'a>(
        &'a self,
        _scopes: &'a ScopeSet,
        _must_remain: Option<u64>,
        _refused: Option<&'a str>,
    ) -> BoxFuture<'a, Result<AccessToken>> {
        Box::pin(async { Err(Error::new(Kind::ConfigError, "no token")) })
    }
}

/// Starts an agent that accepts few connections and practically never times out silent peers.
fn started(listen: Listen) -> Agent {
    let lessor =
        Fake { clock: noon(), ledger: LocalLedger::in_memory(crate::http::Terms::default()) };
    let options = AgentOptions {
        listen,
        allowed_users: Vec::new(),
        secret: None,
        take_step: Arc::new(|step| step()),
    };
    let patience = Duration::from_secs(3_600);
    let limits = AgentLimits { connections: 8, patience, ..AgentLimits::default() };
    Agent::start_within(Box::new(lessor), options, limits).expect("an agent")
}

fn asked(agent: &Agent, tls: ClientTls) -> Result<AgentState> {
    let connection = Connection::new(agent.address().place.clone(), tls);
    connection.call("/v1/state", None::<&()>, Duration::from_secs(60))
}

/// Starts a TLS agent with a secret. Returns the agent, the TLS settings for a client, and the
/// port.
fn tls_agent(folder: &TestFolder) -> (Agent, ClientTls, u16) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("names");
    let certificate = params.self_signed(&key).expect("a certificate");
    let files = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    for (file, text) in files.iter().zip([certificate.pem(), key.serialize_pem()]) {
        std::fs::write(file, text).expect("written");
    }
    let [certificate, key] = files;
    let (host, names) = ("127.0.0.1".to_owned(), vec!["localhost".to_owned()]);
    let authority = certificate.clone();
    let listen = TlsListen { host, port: 0, certificate, key, client_authority: None, names };
    let agent = started(Listen::Tls(listen));
    let secret = agent.secret().map(|secret| Zeroizing::new(secret.to_owned()));
    let tls = ClientTls { authority: Some(authority), identity: None, secret };
    let super::super::address::Place::Tls { port, .. } = agent.address().place else {
        panic!("a port")
    };
    (agent, tls, port)
}

#[test]
fn silent_strangers_keep_no_known_client_out() {
    let folder = TestFolder::new();
    let (agent, tls, port) = tls_agent(&folder);
    let mut idle: Vec<_> =
        (0..40).map(|_| TcpStream::connect(("127.0.0.1", port)).expect("connected")).collect();
    for _ in 0..3 {
        assert_eq!(asked(&agent, tls.clone()).expect("served").leases, 0);
    }
    // The agent closed the oldest connections without sending a byte.
    assert_eq!(idle[0].read(&mut [0; 16]).ok(), Some(0));
}

#[test]
fn without_the_secret_no_body_is_waited_for() {
    let folder = TestFolder::new();
    let (agent, tls, port) = tls_agent(&folder);
    let config = tls.config().expect("TLS");
    let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
    let tcp = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    let session = rustls::ClientConnection::new(config, name).expect("a session");
    let mut stream = rustls::StreamOwned::new(session, tcp);
    let head = format!(
        "POST /v1/page HTTP/1.1\r\nhost: localhost:{port}\r\n{HEADER}: {VERSION}\r\n\
         content-length: 60000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("written");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 409");
    assert_eq!(agent.state().expect("a state").leases, 0);
}

#[cfg(unix)]
mod local {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn local_agent(folder: &TestFolder) -> (Agent, std::path::PathBuf) {
        let path = folder.join("sockets").join("agent.sock");
        (started(Listen::Unix(path.clone())), path)
    }

    #[test]
    fn silent_connections_keep_no_allowed_user_out() {
        let folder = TestFolder::new();
        let (agent, path) = local_agent(&folder);
        let _idle: Vec<_> =
            (0..40).map(|_| UnixStream::connect(&path).expect("connected")).collect();
        assert_eq!(asked(&agent, ClientTls::default()).expect("served").leases, 0);
    }

    #[test]
    fn a_long_body_is_refused_before_it_is_read() {
        let folder = TestFolder::new();
        let (_agent, path) = local_agent(&folder);
        let mut stream = UnixStream::connect(&path).expect("connected");
        let head = format!(
            "POST /v1/page HTTP/1.1\r\nhost: {LOCAL_HOST}\r\n{HEADER}: {VERSION}\r\n\
             content-length: 100000000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("written");
        let chunk = vec![b' '; 1 << 16];
        let sent = (0..1_000).take_while(|_| stream.write_all(&chunk).is_ok()).count();
        // The limit is above zero because some chunks fit into the socket buffers.
        assert!(sent < 40, "{sent} chunks of 64 KiB were read");
    }
}
