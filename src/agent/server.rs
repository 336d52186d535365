//! [`Agent`]: an agent on its socket: one thread, a task for each connection.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use zeroize::Zeroizing;

use super::address::AgentAddress;
use super::lessor::Lessor;
use super::listener::{Bound, Listen, OwnSocket, Socket};
use super::message::{HEADER, SECRET_HEADER, State, VERSION};
use super::routes::{Answer, Routes, refusal};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::system;

/// The longest body of a request: reports of many pages.
const LONGEST_BODY: usize = 1 << 20;
/// The longest head of a request.
const LONGEST_HEAD: usize = 16 << 10;
/// Longest connection: a client waits no longer.
const LONGEST_CONNECTION: Duration = Duration::from_secs(120);
/// Longest handshake, head or body: those that say nothing must not keep the others out.
const LONGEST_REQUEST: Duration = Duration::from_secs(5);
/// Most connections at once.
const MOST_CONNECTIONS: usize = 512;
/// The length of a secret, in bytes.
const SECRET: usize = 32;

/// Runs each step of the agent's thread, so that a fork can wait for it.
pub(crate) type TakeStep = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// Who may ask an agent, and how its thread runs.
pub(crate) struct AgentOptions {
    /// Where it listens.
    pub(crate) listen: Listen,
    /// Users, besides the one that it runs as, who may use its socket.
    pub(crate) allowed_users: Vec<u32>,
    /// What its clients tell over TLS without a certificate; `None` makes one, where it is needed.
    pub(crate) secret: Option<Zeroizing<String>>,
    /// Runs each step.
    pub(crate) take_step: TakeStep,
}

/// A running agent. Dropping it ends it.
pub(crate) struct Agent {
    address: AgentAddress,
    secret: Option<Zeroizing<String>>,
    routes: Arc<Routes>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    socket: Option<OwnSocket>,
    /// A forked child has no such thread to join, and the socket is its parent's.
    process: u32,
}

/// What decides whether a request is heard.
struct Door {
    hosts: Vec<String>,
    users: Vec<u32>,
    secret: Option<Zeroizing<String>>,
}

impl Agent {
    /// Listens, and answers from now on.
    ///
    /// # Errors
    /// `ConfigError` where it cannot listen there, `CredentialError` for its certificates.
    pub(crate) fn start(lessor: Box<dyn Lessor>, options: AgentOptions) -> Result<Self> {
        let AgentOptions { listen, allowed_users, secret, take_step } = options;
        let Bound { socket, place, hosts, own } = listen.bind(!allowed_users.is_empty())?;
        let secret = match &listen {
            Listen::Tls(tls) if tls.client_authority.is_none() => {
                Some(secret.map_or_else(new_secret, checked)?)
            }
            _ => None,
        };
        let routes = Arc::new(Routes::new(lessor));
        let holder = routes.holder();
        let address =
            AgentAddress { place, base_url: Some(holder.base_url), subject: Some(holder.subject) };
        let mut users = allowed_users;
        users.push(own_user());
        let door = Arc::new(Door { hosts, users, secret: secret.clone() });
        let (stop, stopped) = watch::channel(false);
        let failed = |error: io::Error| {
            Error::system(Kind::TransportError, "The agent could not start", &error)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let answering = Answering { routes: Arc::clone(&routes), door, take_step };
        let serve = move || {
            #[expect(
                clippy::disallowed_methods,
                reason = "the agent's own thread: Python never waits on it"
            )]
            runtime.block_on(answering.clone().in_steps(answering.accept(socket, stopped)));
        };
        let thread = system::start("siteline-agent", serve);
        let (thread, process) = (Some(thread.map_err(failed)?), std::process::id());
        Ok(Self { address, secret, routes, stop, thread, socket: own, process })
    }

    /// The value of `SITELINE_AGENT`.
    pub(crate) fn address(&self) -> &AgentAddress {
        &self.address
    }

    /// The value of `SITELINE_AGENT_SECRET`, where clients need one.
    pub(crate) fn secret(&self) -> Option<&str> {
        self.secret.as_ref().map(|secret| secret.as_str())
    }

    /// What it tells of itself.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) fn state(&self) -> Result<State> {
        self.routes.state()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.process != std::process::id() {
            // Dropping the channel would wake its receiver on the runtime of the parent process, and
            // dropping the socket would remove the parent's.
            let stop = std::mem::replace(&mut self.stop, watch::channel(false).0);
            std::mem::forget((thread, stop, self.socket.take()));
        } else if let Some(thread) = thread {
            // Both fail only if the thread has ended already.
            let _ = self.stop.send(true);
            let _ = thread.join();
        }
    }
}

/// What the tasks of all connections share.
#[derive(Clone)]
struct Answering {
    routes: Arc<Routes>,
    door: Arc<Door>,
    take_step: TakeStep,
}

impl Answering {
    /// Wraps a future so that `take_step` runs each of its polls.
    fn in_steps<T>(self, future: impl Future<Output = T>) -> impl Future<Output = T> {
        let mut future = Box::pin(future);
        poll_fn(move |context| {
            let mut polled = Poll::Pending;
            (self.take_step)(&mut || polled = future.as_mut().poll(context));
            polled
        })
    }

    /// Accepts connections until the agent is stopped; dropping the runtime then closes all of them.
    async fn accept(self, socket: Socket, mut stopped: watch::Receiver<bool>) {
        let slots = Arc::new(tokio::sync::Semaphore::new(MOST_CONNECTIONS));
        let Ok(listener) = Listener::new(socket) else { return };
        loop {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopped.changed() => return,
            };
            // For example out of file descriptors: open connections continue.
            let Ok(stream) = accepted else {
                Clock::system().sleep(Duration::from_millis(10)).await;
                continue;
            };
            let answering = self.clone();
            let served = async move {
                let _slot = slot;
                let _ended =
                    tokio::time::timeout(LONGEST_CONNECTION, answering.serve(stream)).await;
            };
            tokio::spawn(self.clone().in_steps(served));
        }
    }

    async fn serve(self, stream: Accepted) {
        match stream {
            #[cfg(unix)]
            Accepted::Unix(stream) => {
                let user = stream.peer_cred().ok().map(|peer| peer.uid());
                let is_allowed = user.is_some_and(|user| self.door.users.contains(&user));
                self.answer_on(stream, is_allowed).await;
            }
            Accepted::Tls(stream, acceptor) => {
                let accepted = tokio::time::timeout(LONGEST_REQUEST, acceptor.accept(stream)).await;
                if let Ok(Ok(stream)) = accepted {
                    self.answer_on(stream, true).await;
                }
            }
        }
    }

    async fn answer_on(self, stream: impl AsyncRead + AsyncWrite + Unpin, is_allowed: bool) {
        let service = service_fn(|request| {
            let answering = &self;
            Box::pin(async move {
                let (status, body) = answering.answer(request, is_allowed).await;
                Response::builder()
                    .status(status)
                    .header(CONTENT_TYPE, "application/json")
                    .body(Full::new(Bytes::from(body)))
            })
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(LONGEST_REQUEST);
        builder.max_buf_size(LONGEST_HEAD).keep_alive(false);
        // Fails where the client has disconnected.
        let _ended = builder.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, request: Request<Incoming>, is_allowed: bool) -> Answer {
        let (head, body) = request.into_parts();
        // Before it is refused: whoever is still sending would not read why.
        let body = Limited::new(body, LONGEST_BODY).collect();
        let Ok(Ok(body)) = tokio::time::timeout(LONGEST_REQUEST, body).await else {
            return refusal(&Error::new(Kind::ConfigError, "the request is too long or was cut"));
        };
        if let Err(error) = self.door.check(&head.headers, is_allowed) {
            return refusal(&error);
        }
        self.routes.answer(head.method.as_str(), head.uri.path(), &body.to_bytes()).await
    }
}

impl Door {
    /// Refuses other users, browsers, and whoever does not know the secret.
    fn check(&self, headers: &HeaderMap, is_allowed: bool) -> Result<()> {
        let header = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
        let refused = |what: &str| Err(Error::new(Kind::ConfigError, what));
        if !is_allowed {
            return refused(
                "the agent is another user's, and does not allow this one (--allow-uid)",
            );
        }
        if header(HEADER) != Some(VERSION.as_bytes()) {
            return refused("the request has no header of siteline's in this version");
        }
        let host = header(HOST.as_str()).unwrap_or_default();
        if !self.hosts.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(host)) {
            return refused("the agent is not known by the name that the request has (Host)");
        }
        let told = header(SECRET_HEADER).unwrap_or_default();
        match &self.secret {
            Some(secret) if verify_slices_are_equal(secret.as_bytes(), told).is_err() => {
                refused("the agent asks for a secret: set SITELINE_AGENT_SECRET as it printed it")
            }
            _ => Ok(()),
        }
    }
}

/// A socket in the thread's runtime.
enum Listener {
    #[cfg(unix)]
    Unix(tokio::net::UnixListener),
    Tls(tokio::net::TcpListener, TlsAcceptor),
}

/// A connection before its handshake.
enum Accepted {
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
    Tls(tokio::net::TcpStream, TlsAcceptor),
}

impl Listener {
    fn new(socket: Socket) -> io::Result<Self> {
        Ok(match socket {
            #[cfg(unix)]
            Socket::Unix(listener) => Self::Unix(tokio::net::UnixListener::from_std(listener)?),
            Socket::Tls(listener, config) => {
                Self::Tls(tokio::net::TcpListener::from_std(listener)?, config.into())
            }
        })
    }

    async fn accept(&self) -> io::Result<Accepted> {
        Ok(match self {
            #[cfg(unix)]
            Self::Unix(listener) => Accepted::Unix(listener.accept().await?.0),
            Self::Tls(listener, acceptor) => {
                let stream = listener.accept().await?.0;
                // A failure only delays answers.
                let _ = stream.set_nodelay(true);
                Accepted::Tls(stream, acceptor.clone())
            }
        })
    }
}

#[cfg(unix)]
fn own_user() -> u32 {
    nix::unistd::Uid::effective().as_raw()
}

/// No socket of this system tells who is at its other end.
#[cfg(windows)]
fn own_user() -> u32 {
    0
}

/// 256 bits that nobody can guess.
fn new_secret() -> Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new([0; SECRET]);
    aws_lc_rs::rand::fill(&mut *bytes)
        .map_err(|_| Error::new(Kind::InternalError, "the system has no random bytes"))?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes)))
}

/// A secret that a user chose.
fn checked(secret: Zeroizing<String>) -> Result<Zeroizing<String>> {
    let is_long =
        URL_SAFE_NO_PAD.decode(secret.as_bytes()).is_ok_and(|bytes| bytes.len() >= SECRET);
    if is_long {
        return Ok(secret);
    }
    Err(Error::new(Kind::ConfigError, "SITELINE_AGENT_SECRET is shorter than 256 bits.")
        .with_hint("It is base64url of 32 random bytes; without it the agent makes one."))
}
