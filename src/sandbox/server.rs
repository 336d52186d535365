//! The service on a socket: a thread of its own, a connection at a time to each task, and the
//! faults that need the socket itself.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::TcpListener as StdListener;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::error::SandboxError;
use super::fault::Act;
use super::reply::{End, Outcome, Reply};
use super::service::{Request, Service};

/// No client of this interface sends more.
const LARGEST_REQUEST_BODY: usize = 1 << 20;
/// A cursor in a URL may be long: hyper's own limit is meant to answer only beyond this.
const LARGEST_HEAD: usize = 1 << 20;

/// What one connection has sent since its last whole request, if that is recorded.
type WireRecord = Arc<Mutex<Vec<u8>>>;

/// What the thread and its owner share.
pub(super) struct Shared {
    service: Mutex<Service>,
    /// Whole requests in the order of their arrival, byte for byte.
    wire: Option<Mutex<Vec<Vec<u8>>>>,
}

impl Shared {
    pub(super) fn new(service: Service) -> Self {
        let wire = service.options.record_wire.then(Mutex::default);
        Self { service: Mutex::new(service), wire }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Service> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests that came in so far.
    pub(super) fn wire(&self) -> Vec<Vec<u8>> {
        self.wire.as_ref().map(|wire| locked(wire).clone()).unwrap_or_default()
    }

    /// A request has been read to its end.
    fn record(&self, record: Option<&WireRecord>) {
        if let (Some(wire), Some(record)) = (&self.wire, record) {
            locked(wire).push(std::mem::take(&mut *locked(record)));
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The running thread. Dropping it stops the service.
pub(super) struct Server {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    /// The process that started it: a forked child has no such thread to wait for.
    process: u32,
}

impl Server {
    pub(super) fn start(listener: StdListener, shared: Arc<Shared>) -> Result<Self, SandboxError> {
        let failed = |error: io::Error| SandboxError::new(format!("cannot start: {error}"));
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let take_step = shared.lock().options.take_step;
        let serve = move || {
            #[expect(
                clippy::disallowed_methods,
                reason = "the sandbox's own thread: Python never waits on it"
            )]
            runtime.block_on(in_steps(take_step, accept(listener, shared, stopped)));
        };
        let thread = std::thread::Builder::new().name("siteline-sandbox".to_owned()).spawn(serve);
        let thread = Some(thread.map_err(failed)?);
        Ok(Self { stop, thread, process: std::process::id() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.process != std::process::id() {
            // To drop a channel wakes who waits at its other end, on a runtime that is not here.
            std::mem::forget((thread, std::mem::replace(&mut self.stop, watch::channel(false).0)));
        } else if let Some(thread) = thread {
            // Both fail only if the thread is gone already.
            let _ = self.stop.send(true);
            let _ = thread.join();
        }
    }
}

/// A future whose steps are taken so.
fn in_steps<T>(
    take_step: fn(&mut dyn FnMut()),
    future: impl Future<Output = T>,
) -> impl Future<Output = T> {
    let mut future = Box::pin(future);
    poll_fn(move |context| {
        let mut polled = Poll::Pending;
        take_step(&mut || polled = future.as_mut().poll(context));
        polled
    })
}

/// Takes connections until told to stop; then all of them end with the runtime.
async fn accept(listener: StdListener, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let take_step = shared.lock().options.take_step;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(in_steps(take_step, serve(stream, Arc::clone(&shared))));
            }
            // Out of file descriptors, say: what is open goes on.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Serves one connection until it ends, or until a fault takes the socket.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // A page goes out at once; without it there is only the delay.
    let _ = stream.set_nodelay(true);
    let record = shared.wire.as_ref().map(|_| WireRecord::default());
    let taken: Arc<Mutex<Option<LastBytes>>> = Arc::default();
    let service = service_fn(|request| {
        let (shared, taken) = (Arc::clone(&shared), Arc::clone(&taken));
        let record = record.clone();
        Box::pin(async move {
            match answer(request, &shared, record.as_ref()).await {
                Outcome::Reply(reply) => response(reply),
                Outcome::Bytes(bytes, end) => {
                    *locked(&taken) = Some((bytes, end));
                    Err(Taken)
                }
            }
        })
    });
    let mut builder = http1::Builder::new();
    builder.auto_date_header(false).max_buf_size(LARGEST_HEAD);
    let io = TokioIo::new(Tapped { stream, record: record.clone() });
    let mut connection = builder.serve_connection(io, service);
    let ended = poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let mut stream = connection.into_parts().io.into_inner().stream;
    let taken = locked(&taken).take();
    let Some((bytes, end)) = taken else {
        if ended.is_ok() {
            let _ = stream.shutdown().await;
        }
        return;
    };
    // The client may be gone: that is its matter.
    let _ = stream.write_all(&bytes).await;
    match end {
        End::Close => {
            let _ = stream.shutdown().await;
        }
        End::Reset => {
            let _ = stream.set_zero_linger();
        }
        End::Hang => std::future::pending().await,
    }
}

/// What goes out on a connection that a fault took, and how it ends.
type LastBytes = (Vec<u8>, End);

/// A fault took the connection away from HTTP.
#[derive(Debug)]
struct Taken;

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fault ends this connection")
    }
}

impl std::error::Error for Taken {}

/// Takes a request through faults and service.
async fn answer(
    request: hyper::Request<Incoming>,
    shared: &Shared,
    record: Option<&WireRecord>,
) -> Outcome {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, LARGEST_REQUEST_BODY).collect().await;
    shared.record(record);
    let body = match body {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Outcome::Reply(Reply::token_error(413, "invalid_request"));
        }
        Err(_) => return Outcome::Bytes(Vec::new(), End::Close),
    };
    let headers = head.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let request = Request {
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: headers.collect(),
        body,
    };
    let faults = shared.lock().arrived(&request);
    for act in &faults {
        if let Act::Delay(delay) = act {
            let clock = shared.lock().clock.clone();
            clock.sleep(*delay).await;
        }
    }
    shared.lock().work(&request, &faults)
}

fn response(reply: Reply) -> Result<hyper::Response<Full<Bytes>>, Taken> {
    let mut response = hyper::Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    response.body(Full::new(reply.body)).map_err(|_| Taken)
}

/// A stream whose incoming bytes are written down on their way.
struct Tapped {
    stream: TcpStream,
    record: Option<WireRecord>,
}

impl AsyncRead for Tapped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Some(record) = &self.record {
            locked(record).extend_from_slice(&buffer.filled()[before..]);
        }
        polled
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
