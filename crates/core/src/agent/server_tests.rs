use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rcgen::{CertificateParams, KeyPair};

use super::super::connection::Connection;
use super::super::listener::TlsListen;
use super::super::message::{AgentRequest, Ask, Holder, greeting};
use super::super::trust::ClientTls;
use super::*;
use crate::auth::ScopeSet;
use crate::auth::test_harness::noon;
use crate::http::LocalLedger;
use crate::http::test_server::TestFolder;

fn lessor() -> Lessor {
    Lessor {
        holder: Holder {
            base_url: "https://customer.example.com".to_owned(),
            subject: "integration-7".to_owned(),
        },
        scopes: ScopeSet::new(["customer.data.read"]).expect("a scope"),
        clock: noon(),
        ledger: Arc::new(LocalLedger::in_memory(crate::http::Terms::default())),
        lend: Box::new(|_, _, _| Box::pin(std::future::pending())),
    }
}

/// Starts an agent that accepts two connections, never has a token, and practically never times out
/// silent peers.
fn started(listen: Listen) -> Agent {
    with_patience(listen, Duration::from_secs(3_600))
}

fn with_patience(listen: Listen, patience: Duration) -> Agent {
    let options = AgentOptions {
        listen,
        allowed_users: Vec::new(),
        secret: None,
        take_step: Arc::new(|step| step()),
    };
    let limits = AgentLimits { connections: 2, patience, ..AgentLimits::default() };
    Agent::start_within(lessor(), options, limits).expect("an agent")
}

fn asked(agent: &Agent, tls: ClientTls) -> Result<AgentState> {
    let connection = Connection::new(agent.address().place.clone(), tls);
    connection.call(&AgentRequest::State, Duration::from_secs(60))
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
    let (host, name) = ("127.0.0.1".to_owned(), Some("localhost".to_owned()));
    let authority = certificate.clone();
    let listen = TlsListen { host, port: 0, certificate, key, client_authority: None, name };
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
fn without_the_secret_no_request_is_waited_for() {
    let folder = TestFolder::new();
    let (agent, tls, port) = tls_agent(&folder);
    let config = tls.config().expect("TLS");
    let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
    let tcp = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    let session = rustls::ClientConnection::new(config, name).expect("a session");
    let mut stream = rustls::StreamOwned::new(session, tcp);
    stream.write_all(&greeting("guessed")).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains("requires a secret"), "{answer}");
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
    fn a_client_that_disconnects_keeps_no_other_waiting() {
        let folder = TestFolder::new();
        let (agent, path) = local_agent(&folder);
        let Lessor { holder, scopes, .. } = lessor();
        let ask = Ask::Token { scopes: scopes.to_string(), must_remain: None, refused: None };
        let request = serde_json::to_vec(&AgentRequest::Of(holder, ask)).expect("JSON");
        for _ in 0..3 {
            let mut stream = UnixStream::connect(&path).expect("connected");
            stream.write_all(&[&greeting(""), &*request, b"\n"].concat()).expect("written");
        }
        assert_eq!(asked(&agent, ClientTls::default()).expect("served").leases, 0);
    }

    #[test]
    fn a_request_that_comes_too_slowly_may_be_repeated() {
        let folder = TestFolder::new();
        let path = folder.join("sockets").join("agent.sock");
        let _agent = with_patience(Listen::Unix(path.clone()), Duration::ZERO);
        let mut answer = String::new();
        let mut stream = UnixStream::connect(&path).expect("connected");
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains("AgentUnavailable"), "{answer}");
    }

    #[test]
    fn a_long_request_is_refused_before_it_is_read() {
        let folder = TestFolder::new();
        let (_agent, path) = local_agent(&folder);
        let mut stream = UnixStream::connect(&path).expect("connected");
        stream.write_all(&greeting("")).expect("written");
        let chunk = vec![b' '; 1 << 16];
        let sent = (0..1_000).take_while(|_| stream.write_all(&chunk).is_ok()).count();
        // The limit is above zero because some chunks fit into the socket buffers.
        assert!(sent < 40, "{sent} chunks of 64 KiB were read");
    }
}
