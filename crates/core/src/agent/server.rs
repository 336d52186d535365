//! [`Agent`]: an agent on its socket, with one thread and one task for each connection.

use std::future::poll_fn;
use std::io;
#[cfg(unix)]
use std::io::Write as _;
use std::sync::Arc;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, watch};
use zeroize::Zeroizing;

use super::address::AgentAddress;
use super::admission::{AgentLimits, Places, Visit};
use super::door::Door;
#[cfg(unix)]
use super::door::other_user;
use super::listener::{Accepted, Bound, Listen, OwnSocket, Socket};
use super::message::AgentState;
use super::routes::{Answer, Lessor, Routes, refusal};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::system;

/// Maximum length of a request head, in bytes.
const LONGEST_HEAD: usize = 16 << 10;
/// Maximum duration of a connection. No client waits longer.
const LONGEST_CONNECTION: Duration = Duration::from_secs(120);
/// How much of a refused request is read and dropped, so that a peer that is still sending can read
/// why.
const LONGEST_REST: u64 = 64 << 10;
/// The pause after accepting failed, for example without a free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// The length of a generated secret, in bytes.
const SECRET: usize = 32;

/// Runs each step of the agent's thread, so that a fork can wait for the step.
pub(crate) type TakeStep = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// Who may use an agent, and how its thread runs.
pub struct AgentOptions {
    pub listen: Listen,
    /// Users who may use the socket in addition to the agent's own user.
    pub allowed_users: Vec<u32>,
    /// The secret of TLS clients without a certificate; `None` generates one if it is needed.
    pub secret: Option<Zeroizing<String>>,
    pub take_step: TakeStep,
}

/// A running agent. Dropping it stops it.
pub struct Agent {
    address: AgentAddress,
    secret: Option<Zeroizing<String>>,
    routes: Arc<Routes>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    socket: Option<OwnSocket>,
    /// The process that started the agent. A forked child has no thread to join and does not own
    /// the socket.
    process: u32,
}

impl Agent {
    /// Listens and starts the agent's thread.
    pub fn start(lessor: Box<dyn Lessor>, options: AgentOptions) -> Result<Self> {
        Self::start_within(lessor, options, AgentLimits::default())
    }

    /// [`start`](Self::start) with other limits.
    fn start_within(
        lessor: Box<dyn Lessor>,
        options: AgentOptions,
        limits: AgentLimits,
    ) -> Result<Self> {
        let AgentOptions { listen, allowed_users, secret, take_step } = options;
        let failed = |error: io::Error| {
            Error::system(Kind::TransportError, "The agent could not start", &error)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let in_runtime = runtime.enter();
        let Bound { socket, place, hosts, own } = listen.bind(!allowed_users.is_empty())?;
        let secret = match &listen {
            Listen::Tls(tls) if tls.client_authority.is_none() => {
                Some(secret.map_or_else(new_secret, checked)?)
            }
            _ => None,
        };
        let address = lessor.holder().address(place);
        let routes = Arc::new(Routes::new(lessor));
        let door = Arc::new(Door {
            hosts,
            #[cfg(unix)]
            allowed_users,
            secret: secret.clone(),
        });
        drop(in_runtime);
        let (stop, stopped) = watch::channel(false);
        let places = Arc::new(Places::new(limits));
        let answering = Answering { routes: Arc::clone(&routes), door, take_step, places, limits };
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
    #[must_use]
    pub fn address(&self) -> &AgentAddress {
        &self.address
    }

    /// The value of `SITELINE_AGENT_SECRET`, if clients need one.
    #[must_use]
    pub fn secret(&self) -> Option<&str> {
        self.secret.as_ref().map(|secret| secret.as_str())
    }

    pub fn state(&self) -> Result<AgentState> {
        self.routes.state()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.process != std::process::id() {
            // Dropping the channel would wake its receiver on the parent's runtime, and dropping
            // the socket would remove the parent's.
            let stop = std::mem::replace(&mut self.stop, watch::channel(false).0);
            std::mem::forget((thread, stop, self.socket.take()));
        } else if let Some(thread) = thread {
            // Both fail only if the thread has already ended.
            let _ = self.stop.send(true);
            let _ = thread.join();
        }
    }
}

/// The parts that the tasks of all connections share.
#[derive(Clone)]
struct Answering {
    routes: Arc<Routes>,
    door: Arc<Door>,
    take_step: TakeStep,
    places: Arc<Places>,
    limits: AgentLimits,
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

    /// Accepts connections until the agent is stopped; dropping the runtime then closes all of
    /// them.
    async fn accept(self, socket: Socket, mut stopped: watch::Receiver<bool>) {
        let accepting = async {
            for number in 0.. {
                self.places.room().await;
                match socket.accept().await {
                    Ok(stream) => self.begin(number, stream),
                    Err(error) => self.after_failed_accept(&error).await,
                }
            }
        };
        tokio::select! {
            () = accepting => {}
            _ = stopped.changed() => {}
        }
    }

    fn begin(&self, number: u64, stream: Accepted) {
        #[cfg(unix)]
        let stream = match stream {
            Accepted::Unix(stream) if !self.door.lets_in(&stream) => return turn_away(stream),
            stream => stream,
        };
        let visit = self.places.enter(number, stream.rank());
        let answering = self.clone();
        let served = async move {
            let whole = tokio::time::timeout(LONGEST_CONNECTION, answering.serve(stream, &visit));
            tokio::select! {
                _ended = whole => {}
                () = visit.closed() => {}
            }
        };
        tokio::spawn(self.clone().in_steps(served));
    }

    /// Ignores a peer that has disconnected. After other failures, closes an idle connection to
    /// free a descriptor.
    async fn after_failed_accept(&self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return;
        }
        self.places.close_oldest();
        Clock::system().sleep(ACCEPT_PAUSE).await;
    }

    async fn serve(self, stream: Accepted, visit: &Visit) {
        match stream {
            #[cfg(unix)]
            Accepted::Unix(stream) => self.answer_on(stream, visit).await,
            Accepted::Tls(stream, acceptor) => {
                let shaken = acceptor.accept(stream);
                let shaken = tokio::time::timeout(self.limits.patience, shaken).await;
                let Ok(Ok(stream)) = shaken else { return };
                // Without a secret, the handshake has verified a client certificate.
                if self.door.secret.is_none() {
                    visit.prove();
                }
                self.answer_on(stream, visit).await;
            }
        }
    }

    async fn answer_on(&self, stream: impl AsyncRead + AsyncWrite + Unpin, visit: &Visit) {
        let answered = Notify::new();
        let service = service_fn(|request| {
            let answered = &answered;
            Box::pin(async move {
                let (status, body) = self.answer(request, visit).await;
                answered.notify_one();
                Response::builder()
                    .status(status)
                    .header(CONTENT_TYPE, "application/json")
                    .body(Full::new(Bytes::from(body)))
            })
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(self.limits.patience);
        builder.max_buf_size(LONGEST_HEAD).keep_alive(false);
        let connection = builder.serve_connection(TokioIo::new(stream), service).without_shutdown();
        let unread = async {
            answered.notified().await;
            Clock::system().sleep(self.limits.patience).await;
        };
        tokio::select! {
            // Fails if the client has disconnected.
            ended = connection => if let Ok(parts) = ended {
                visit.leave_answer();
                self.close(parts.io.into_inner()).await;
            },
            () = unread => {}
        }
    }

    /// Closes a connection so that its peer can read the response. Unread bytes would reset it, so
    /// a limited number of them is read and dropped.
    async fn close(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let rest = async {
            // Both fail if the client has disconnected.
            let _ = stream.shutdown().await;
            let _ = tokio::io::copy(&mut stream.take(LONGEST_REST), &mut tokio::io::sink()).await;
        };
        let _late = tokio::time::timeout(self.limits.patience, rest).await;
    }

    /// Reads the body only after the peer was checked.
    async fn answer(&self, request: Request<Incoming>, visit: &Visit) -> Answer {
        let (head, body) = request.into_parts();
        if let Err(error) = self.door.check(&head.headers) {
            return refusal(&error);
        }
        if self.door.secret.is_some() {
            visit.prove();
        }
        let body = Limited::new(body, self.limits.body).collect();
        let Ok(Ok(body)) = tokio::time::timeout(self.limits.patience, body).await else {
            return refusal(&Error::new(
                Kind::ConfigError,
                "the request is too long or incomplete",
            ));
        };
        visit.answer().await;
        self.routes.answer(head.method.as_str(), head.uri.path(), &body.to_bytes()).await
    }
}

/// Responds to a user who is not allowed, without reading the request. Fails if the client has
/// disconnected, and never waits: the buffer of a new socket has room.
#[cfg(unix)]
fn turn_away(stream: tokio::net::UnixStream) {
    let _ = stream.into_std().and_then(|mut stream| stream.write_all(&other_user()));
}

/// Returns a random secret of 256 bits.
fn new_secret() -> Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new([0; SECRET]);
    aws_lc_rs::rand::fill(&mut *bytes)
        .map_err(|_| Error::new(Kind::InternalError, "the system provides no random bytes"))?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes)))
}

/// Checks a secret that a user chose.
fn checked(secret: Zeroizing<String>) -> Result<Zeroizing<String>> {
    let is_long =
        URL_SAFE_NO_PAD.decode(secret.as_bytes()).is_ok_and(|bytes| bytes.len() >= SECRET);
    if is_long {
        return Ok(secret);
    }
    Err(Error::new(Kind::ConfigError, "SITELINE_AGENT_SECRET is shorter than 256 bits.")
        .with_hint("Use base64url of 32 random bytes, or unset it: the agent then generates one."))
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
