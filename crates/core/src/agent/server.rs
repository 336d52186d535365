//! [`Agent`]: an agent on its socket, with one thread and one task for each connection.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader,
};
use tokio::sync::watch;
use zeroize::Zeroizing;

use super::address::AgentAddress;
use super::admission::{AgentLimits, Places, Visit};
use super::listener::{Accepted, Bound, Listen, OwnSocket, Socket};
use super::message::{AgentState, GREETING};
use super::routes::{Lessor, Routes, refusal, refused};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::fork::Owned;
use crate::system;

/// Maximum length of a greeting, in bytes.
const LONGEST_GREETING: usize = 16 << 10;
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
    /// Stays with the process that started the agent.
    _running: Owned<RunningAgent>,
}

/// The thread of an agent and its socket.
struct RunningAgent {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    _socket: Option<OwnSocket>,
}

impl Agent {
    /// Listens and starts the agent's thread.
    pub fn start(lessor: Lessor, options: AgentOptions) -> Result<Self> {
        Self::start_within(lessor, options, AgentLimits::default())
    }

    /// [`start`](Self::start) with other limits.
    fn start_within(lessor: Lessor, options: AgentOptions, limits: AgentLimits) -> Result<Self> {
        let AgentOptions { listen, allowed_users, secret, take_step } = options;
        let failed = |error: io::Error| {
            Error::system(Kind::TransportError, "The agent could not start", &error)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let in_runtime = runtime.enter();
        let Bound { socket, place, own } = listen.bind(!allowed_users.is_empty())?;
        let secret = match &listen {
            Listen::Tls(tls) if tls.client_authority.is_none() => {
                Some(secret.map_or_else(new_secret, checked)?)
            }
            _ => None,
        };
        let address = lessor.holder.clone().address(place);
        let routes = Arc::new(Routes::new(lessor));
        drop(in_runtime);
        let (stop, stopped) = watch::channel(false);
        let answering = Arc::new(Answering {
            routes: Arc::clone(&routes),
            #[cfg(unix)]
            allowed_users,
            secret: secret.clone(),
            take_step,
            places: Arc::new(Places::new(limits.connections)),
            limits,
        });
        let serve = move || {
            #[expect(
                clippy::disallowed_methods,
                reason = "the agent's own thread: Python never waits on it"
            )]
            runtime.block_on(answering.clone().in_steps(answering.accept(socket, stopped)));
        };
        let thread = Some(system::start("siteline-agent", serve).map_err(failed)?);
        let running = Owned::new(RunningAgent { stop, thread, _socket: own });
        Ok(Self { address, secret, routes, _running: running })
    }

    /// The value of `SITELINE_AGENT`.
    pub fn address(&self) -> &AgentAddress {
        &self.address
    }

    /// The value of `SITELINE_AGENT_SECRET`, if clients need one.
    pub fn secret(&self) -> Option<&str> {
        self.secret.as_ref().map(|secret| secret.as_str())
    }

    pub fn state(&self) -> Result<AgentState> {
        self.routes.state()
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        // Both fail only if the thread has already ended.
        let _ = self.stop.send(true);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The parts that the tasks of all connections share.
struct Answering {
    routes: Arc<Routes>,
    /// Users other than the agent's own.
    #[cfg(unix)]
    allowed_users: Vec<u32>,
    secret: Option<Zeroizing<String>>,
    take_step: TakeStep,
    places: Arc<Places>,
    limits: AgentLimits,
}

impl Answering {
    /// Wraps a future so that `take_step` runs each of its polls.
    fn in_steps<T>(self: Arc<Self>, future: impl Future<Output = T>) -> impl Future<Output = T> {
        let mut future = Box::pin(future);
        poll_fn(move |context| {
            let mut polled = Poll::Pending;
            (self.take_step)(&mut || polled = future.as_mut().poll(context));
            polled
        })
    }

    /// Accepts connections until the agent is stopped; dropping the runtime then closes all of
    /// them.
    async fn accept(self: Arc<Self>, socket: Socket, mut stopped: watch::Receiver<bool>) {
        let accepting = async {
            for number in 0.. {
                let Some(place) = self.places.free().await else { return };
                match socket.accept().await {
                    Ok(stream) => self.begin(self.places.enter(number, place), stream),
                    Err(error) => self.after_failed_accept(&error).await,
                }
            }
        };
        tokio::select! {
            () = accepting => {}
            _ = stopped.changed() => {}
        }
    }

    fn begin(self: &Arc<Self>, visit: Visit, stream: Accepted) {
        let answering = Arc::clone(self);
        let served = async move {
            let whole = tokio::time::timeout(LONGEST_CONNECTION, answering.serve(stream, &visit));
            tokio::select! {
                _ended = whole => {}
                () = visit.closed() => {}
            }
        };
        tokio::spawn(Arc::clone(self).in_steps(served));
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

    async fn serve(&self, stream: Accepted, visit: &Visit) {
        match stream {
            #[cfg(unix)]
            Accepted::Unix(mut stream) if !self.lets_in(&stream) => {
                let why = "the agent belongs to another user and does not allow this one \
                           (--allow-uid)";
                self.write(&mut stream, &refusal(&refused(why))).await;
            }
            #[cfg(unix)]
            Accepted::Unix(stream) => self.answer_on(stream, visit).await,
            Accepted::Tls(stream, acceptor) => {
                let shaken = acceptor.accept(stream);
                let shaken = tokio::time::timeout(self.limits.patience, shaken).await;
                let Ok(Ok(stream)) = shaken else { return };
                self.answer_on(stream, visit).await;
            }
        }
    }

    async fn answer_on(&self, stream: impl AsyncRead + AsyncWrite + Unpin, visit: &Visit) {
        let mut stream = BufReader::new(stream);
        match self.request(&mut stream).await {
            Ok(request) => {
                visit.keep();
                let answer = tokio::select! {
                    biased;
                    answer = self.routes.answer(&request) => answer,
                    // The client has disconnected, so no other client waits for its answer.
                    _ = stream.fill_buf() => return,
                };
                let answer = answer.unwrap_or_else(|error| refusal(&error));
                self.write(&mut stream, &answer).await;
            }
            Err(error) => {
                self.write(&mut stream, &refusal(&error)).await;
                // Unread bytes would reset the connection before the client reads the answer.
                let (mut rest, mut nowhere) = (stream.take(LONGEST_REST), tokio::io::sink());
                let dropped = tokio::io::copy(&mut rest, &mut nowhere);
                let _ = tokio::time::timeout(self.limits.patience, dropped).await;
            }
        }
    }

    /// Reads the request only after the peer was checked.
    async fn request(
        &self,
        stream: &mut (impl AsyncBufRead + Unpin),
    ) -> Result<Zeroizing<Vec<u8>>> {
        self.check(&self.line(stream, LONGEST_GREETING).await?)?;
        self.line(stream, self.limits.request).await
    }

    /// Writes the whole answer. Fails if the client has disconnected or does not read.
    async fn write(&self, stream: &mut (impl AsyncWrite + Unpin), answer: &[u8]) {
        let written = async {
            stream.write_all(answer).await?;
            stream.shutdown().await
        };
        let _ = tokio::time::timeout(self.limits.patience, written).await;
    }

    /// Reads a line of at most `longest` bytes.
    async fn line(
        &self,
        stream: &mut (impl AsyncBufRead + Unpin),
        longest: usize,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let mut line = Zeroizing::new(Vec::new());
        let mut limited = stream.take(longest as u64);
        let read = limited.read_until(b'\n', &mut line);
        let read = tokio::time::timeout(self.limits.patience, read).await;
        match (read, line.pop()) {
            (Ok(Ok(_)), Some(b'\n')) => Ok(line),
            // The client repeats it.
            (Err(_), _) => Err(Error::new(Kind::AgentUnavailable, "the request came too slowly")),
            _ => Err(refused("the request is too long or incomplete")),
        }
    }

    /// Rejects a peer that is no client of this version, such as a browser, or lacks the secret.
    fn check(&self, greeting: &[u8]) -> Result<()> {
        let Some(given) = greeting.strip_prefix(GREETING) else {
            return Err(refused("the agent does not understand the peer: it has another version"));
        };
        match &self.secret {
            Some(secret) if verify_slices_are_equal(secret.as_bytes(), given).is_err() => Err(
                refused("the agent requires a secret: set SITELINE_AGENT_SECRET as it printed it"),
            ),
            _ => Ok(()),
        }
    }

    /// Whether the system user of the peer is allowed.
    #[cfg(unix)]
    fn lets_in(&self, stream: &tokio::net::UnixStream) -> bool {
        let own_user = nix::unistd::Uid::effective().as_raw();
        let is_allowed = |user| user == own_user || self.allowed_users.contains(&user);
        stream.peer_cred().is_ok_and(|peer| is_allowed(peer.uid()))
    }
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
