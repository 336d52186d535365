//! The service on a socket: one thread, a task for each connection, and the faults that need the
//! socket itself.

use std::future::poll_fn;
use std::io;
use std::net::TcpListener as StdListener;
use std::sync::{Arc, MutexGuard};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::io::InspectReader;

use super::error::SandboxError;
use super::fault::Effect;
use super::reply::{ConnectionEnd, Outcome, Reply};
use super::service::{Request, Service};
use super::tls::{self, Presented};
use siteline_base::clock::Clock;
use siteline_base::lock::Mutex;

/// The longest request body; no client of this interface needs a longer one.
const LARGEST_REQUEST_BODY: usize = 64 << 10;
/// The pause after a failure to accept, such as no free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// The longest request head, as a cursor in a URL may be long; hyper refuses a longer one.
const LARGEST_HEAD: usize = 1 << 20;

/// The bytes that a connection has received since its last complete request.
type WireRecord = Arc<Mutex<Vec<u8>>>;

/// The state that the thread and its owner share: the service and the recorded requests.
pub(super) struct Shared {
    service: Mutex<Service>,
    /// The bytes of complete requests, in the order of arrival.
    wire: Option<Mutex<Vec<Vec<u8>>>>,
}

impl Shared {
    pub(super) fn new(service: Service) -> Self {
        let wire = service.options.record_wire.then(Mutex::default);
        Self { service: Mutex::new(service), wire }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Service> {
        self.service.lock()
    }

    pub(super) fn wire(&self) -> Vec<Vec<u8>> {
        self.wire.as_ref().map(|wire| wire.lock().clone()).unwrap_or_default()
    }

    fn record(&self, record: Option<&WireRecord>) {
        if let (Some(wire), Some(record)) = (&self.wire, record) {
            wire.lock().push(std::mem::take(&mut *record.lock()));
        }
    }
}

/// Dropping it stops the service.
pub(super) struct Server {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    /// The process that started the thread: a forked child has no such thread to join.
    process: u32,
}

impl Server {
    /// With an acceptor each connection begins with its handshake.
    pub(super) fn start(
        listener: StdListener,
        shared: Arc<Shared>,
        tls: Option<TlsAcceptor>,
    ) -> Result<Self, SandboxError> {
        let failed = |error: io::Error| SandboxError::system("cannot start", error);
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let take_step = shared.lock().options.take_step;
        let serve = move || {
            #[expect(
                clippy::disallowed_methods,
                reason = "the sandbox's own thread: Python never waits on it"
            )]
            runtime.block_on(in_steps(take_step, accept(listener, shared, tls, stopped)));
        };
        let thread = thread::Builder::new().name("siteline-sandbox".to_owned()).spawn(serve);
        let thread = Some(thread.map_err(failed)?);
        Ok(Self { stop, thread, process: std::process::id() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.process != std::process::id() {
            // Dropping the channel would wake its receiver on the runtime of the parent process.
            std::mem::forget((thread, std::mem::replace(&mut self.stop, watch::channel(false).0)));
        } else if let Some(thread) = thread {
            // Both fail only if the thread has ended already.
            let _ = self.stop.send(true);
            let _ = thread.join();
        }
    }
}

/// Wraps a future so that `take_step` runs each of its polls.
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

/// Accepts connections until the server stops; dropping the runtime then closes all of them.
async fn accept(
    listener: StdListener,
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let take_step = shared.lock().options.take_step;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(in_steps(take_step, serve(stream, tls.clone(), Arc::clone(&shared))));
            }
            // For example out of file descriptors: open connections continue.
            Err(_) => Clock::system().sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one connection until it ends, or until a fault needs the socket.
async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    // A failure only delays replies.
    let _ = stream.set_nodelay(true);
    let Ok(stream) = tls::begin(stream, tls).await else { return };
    let presented = tls::presented(&stream);
    let record = shared.wire.as_ref().map(|_| WireRecord::default());
    let received = record.clone();
    let stream = InspectReader::new(stream, move |bytes: &[u8]| {
        if let Some(record) = &received {
            record.lock().extend_from_slice(bytes);
        }
    });
    let raw_reply: Arc<Mutex<Option<RawReply>>> = Arc::default();
    let service = service_fn(|request| {
        let (shared, raw_reply) = (Arc::clone(&shared), Arc::clone(&raw_reply));
        let (record, presented) = (record.clone(), presented.clone());
        Box::pin(async move {
            match answer(request, presented, &shared, record.as_ref()).await {
                Outcome::Reply(reply) => response(reply),
                Outcome::Bytes(bytes, end) => {
                    *raw_reply.lock() = Some((bytes, end));
                    Err(EndedByFault)
                }
            }
        })
    });
    let mut builder = http1::Builder::new();
    builder.auto_date_header(false).max_buf_size(LARGEST_HEAD);
    let mut connection = builder.serve_connection(TokioIo::new(stream), service);
    let ended = poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let mut stream = connection.into_parts().io.into_inner().into_inner();
    let raw_reply = raw_reply.lock().take();
    let Some((bytes, end)) = raw_reply else {
        if ended.is_ok() {
            let _ = stream.shutdown().await;
        }
        return;
    };
    // Fails if the client has disconnected.
    let _ = stream.write_all(&bytes).await;
    let _ = stream.flush().await;
    match end {
        ConnectionEnd::Close => {
            let _ = stream.shutdown().await;
        }
        ConnectionEnd::Reset => tls::reset(&stream),
        ConnectionEnd::Hang => std::future::pending().await,
    }
}

/// The last bytes of a connection that a fault ends, and how it is closed.
type RawReply = (Vec<u8>, ConnectionEnd);

/// Makes hyper stop serving a connection, on which a fault sends its own bytes.
#[derive(Debug, thiserror::Error)]
#[error("a fault ends this connection")]
struct EndedByFault;

/// Reads a request; the service handles it with the effects of the faults that match it.
async fn answer(
    request: hyper::Request<Incoming>,
    presented: Presented,
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
        Err(_) => return Outcome::Bytes(Vec::new(), ConnectionEnd::Close),
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
        presented,
    };
    let effects = shared.lock().receive(&request);
    for effect in &effects {
        if let Effect::Delay(delay) = effect {
            let clock = shared.lock().clock.clone();
            clock.sleep(*delay).await;
        }
    }
    shared.lock().handle(&request, &effects)
}

fn response(reply: Reply) -> Result<hyper::Response<Full<Bytes>>, EndedByFault> {
    let mut response = hyper::Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    response.body(Full::new(reply.body)).map_err(|_| EndedByFault)
}
