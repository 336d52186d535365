//! One attempt: one request, and one reply with its complete body. The redirects, retries and
//! decompression of the HTTP library are off.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AGE, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap,
    HeaderName, HeaderValue, LOCATION, TRANSFER_ENCODING,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;
use zeroize::Zeroizing;

use super::base_url::BaseUrl;
use super::body;
use super::buffers::Buffers;
use super::client_certificate::ClientCertificate;
use super::connections::Connections;
use super::failure;
use super::note::{Observer, PointCount};
use super::path_probe;
use super::retry_after::{date, single};
use super::transport_settings::TransportSettings;
use crate::clock::{CORRECTED_SKEW, Moment, NOTICED_SKEW, Reading, ServiceTime};
use crate::error::{Error, Kind, Phase, Result, excerpt};
use crate::fork::Owned;
use crate::lock::Mutex;

/// Maximum length of a URL in the HTTP library.
const LONGEST_URL: usize = 65_534;

/// Maximum length of the body of a token reply, decompressed.
const LONGEST_TOKEN_REPLY: usize = 64 * 1024;
/// Maximum length of the body of an error, decompressed.
pub(super) const LONGEST_ERROR: usize = 64 * 1024;

/// One request, built for one attempt and consumed by it.
pub(crate) struct Request {
    pub url: Url,
    /// The value of `Authorization`. Its creator has marked it as sensitive.
    pub authorization: Option<HeaderValue>,
    /// The URL-encoded fields of a POST; `None` makes it a GET.
    pub form: Option<Zeroizing<String>>,
    /// The certificate to present if the service requests one.
    pub certificate: Option<Arc<ClientCertificate>>,
    /// Headers for tracing. They cannot replace the headers that are set here.
    pub trace: Option<Arc<HeaderMap>>,
}

#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The bytes of the body before decompression.
    pub received: u64,
    /// Why the body could not be read. The status and the headers may be sufficient.
    pub broken_body: Option<Error>,
    /// The service's time in `Date`, unless a proxy may have produced or cached the reply.
    pub reading: Option<Reading>,
    /// Whether the connection had a client certificate to present.
    pub presented: bool,
    /// Receives the number of points when the page is parsed.
    pub(crate) points: PointCount,
}

impl Reply {
    /// The reply, if its body could be read or its status is 400 or higher.
    pub(crate) fn readable(self) -> Result<Self> {
        match &self.broken_body {
            Some(error) if self.status < 400 => Err(error.clone()),
            _ => Ok(self),
        }
    }

    pub fn request_id(&self) -> Option<String> {
        request_id(&self.headers)
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reply({}, {} bytes)", self.status, self.body.len())
    }
}

/// The connections of one client to one service.
pub(crate) struct Transport {
    base: BaseUrl,
    settings: TransportSettings,
    /// Created at the first request, so that a missing certificate store is no error before it.
    http: Mutex<Owned<Result<Connections>>>,
    /// The free part of `max_connections`. A forked child has no requests of its parent.
    slots: Owned<Arc<Semaphore>>,
    skew_logged: AtomicBool,
    /// Whether the port is known not to speak TLS. Used only for plain HTTP.
    without_tls: AtomicBool,
    buffers: Buffers,
}

impl Transport {
    /// Checks the settings without opening or loading anything.
    pub(crate) fn new(base: BaseUrl, settings: TransportSettings) -> Result<Self> {
        settings.check()?;
        Ok(Self {
            base,
            settings,
            http: Mutex::default(),
            slots: Owned::empty(),
            skew_logged: AtomicBool::new(false),
            without_tls: AtomicBool::new(false),
            buffers: Buffers::default(),
        })
    }

    pub(crate) fn base_url(&self) -> &BaseUrl {
        &self.base
    }

    pub(super) fn settings(&self) -> &TransportSettings {
        &self.settings
    }

    pub(crate) fn observer(&self) -> Option<&dyn Observer> {
        self.settings.observer.as_deref()
    }

    /// Waits until fewer than `max_connections` requests are in flight, in the order of the calls.
    /// The returned permit is released on drop.
    pub(crate) async fn slot(&self) -> Result<OwnedSemaphorePermit> {
        let all = self.settings.max_connections.clamp(1, Semaphore::MAX_PERMITS);
        let slots = self.slots.get_or_init(|| Arc::new(Semaphore::new(all)));
        let slot = Arc::clone(slots).acquire_owned().await;
        // Acquiring fails only on a closed semaphore, and this one is never closed.
        slot.map_err(|_| Error::new(Kind::ClosedError, "the client was closed"))
    }

    /// Sends one request and reads the complete reply. Updates the estimate of the service's time.
    ///
    /// An error of the body is in [`Reply::broken_body`], next to the status.
    ///
    /// # Errors
    /// `TransportError`, `TransportTimeout` (with its phase), `TlsError`, `ProxyError`,
    /// `RedirectRefused`, and `ProtocolError` for broken framing of the headers. `unsent` is set if
    /// no byte was sent.
    pub(crate) async fn send(&self, request: Request, time: &ServiceTime) -> Result<Reply> {
        let method = if request.form.is_some() { "POST" } else { "GET" };
        let path = request.url.path().to_owned();
        let began = time.clock().monotonic();
        let outcome = self.exchange(request, time).await;
        let took = time.clock().monotonic().saturating_sub(began).as_millis();
        let milliseconds = u64::try_from(took).unwrap_or(u64::MAX);
        let error = match &outcome {
            Ok(Reply { status, body, broken_body: None, .. }) => {
                log::debug!(
                    target: "siteline::http", status, milliseconds;
                    "{method} {path}: {status}, {} bytes, {took} ms", body.len()
                );
                return outcome;
            }
            Ok(Reply { broken_body: Some(error), .. }) | Err(error) => error,
        };
        log::debug!(
            target: "siteline::http", status = error.context().status, milliseconds;
            "{method} {path}: {}, {took} ms", error.kind()
        );
        outcome
    }

    async fn exchange(&self, request: Request, time: &ServiceTime) -> Result<Reply> {
        let connections = self.connections(request.certificate.as_ref())?;
        let path = request.url.path().to_owned();
        if request.url.as_str().len() > LONGEST_URL {
            return Err(failure::too_long_url(&request.url));
        }
        let is_token = request.form.is_some();
        // The body of a token reply must not stay in the pool.
        let buffers = if is_token { Buffers::default() } else { self.buffers.clone() };
        let request = build_request(request);
        let sent = time.clock().moment();
        let waiting =
            tokio::time::timeout(self.settings.response_timeout, connections.http.execute(request));
        let response = match waiting.await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                let error = failure::from_request(
                    error,
                    &self.base,
                    connections.proxy_address(),
                    &connections.presenter,
                );
                // Boxed, because each request would have the size of this probe.
                let probe = path_probe::explained(error, self, &connections, &self.without_tls);
                return Err(Box::pin(probe).await);
            }
            Err(_) => return Err(no_response(&path, self.settings.response_timeout)),
        };
        self.without_tls.store(true, Ordering::Relaxed);
        connections.presenter.settle();
        let reading = self.learn_time(response.headers(), sent, time);
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        if status == 407
            && let Some(proxy) = connections.proxy_address().filter(|_| self.base.is_plain())
        {
            return Err(failure::proxy_refused(proxy, self.base.host(), status));
        }
        if is_redirect(status) {
            return Err(redirect_refused(status, &headers, &self.base));
        }
        let mut received = 0;
        let cap = self.longest_body(is_token, status);
        let read = body::read(response, cap, &self.settings, &buffers, &mut received).await;
        let (body, error) = match read {
            Ok(body) => (body, None),
            Err(error) => (Bytes::new(), Some(error)),
        };
        if has_two_lengths(&headers) {
            self.forget_connections();
        }
        let broken_body = error.map(|error| {
            error.with(|context| {
                context.status = Some(status);
                context.request_id = request_id(&headers);
            })
        });
        let presented = connections.presenter.certificate.is_some();
        let points = PointCount::default();
        Ok(Reply { status, headers, body, received, broken_body, reading, presented, points })
    }

    /// The connections with this certificate. Requests in flight with another one are not affected.
    pub(super) fn connections(
        &self,
        certificate: Option<&Arc<ClientCertificate>>,
    ) -> Result<Connections> {
        let mut pool = self.http.lock();
        let presents = |open: &Connections| open.presenter.presents(certificate);
        if let Some(known) = pool.get().filter(|known| known.as_ref().ok().is_none_or(presents)) {
            return known.clone();
        }
        pool.take();
        let open = || Connections::new(&self.base, &self.settings, certificate.cloned());
        pool.get_or_init(open).clone()
    }

    /// Makes the next request open a new connection. Requests in flight are not affected.
    fn forget_connections(&self) {
        self.http.lock().take();
    }

    fn longest_body(&self, is_token: bool, status: u16) -> usize {
        let longest = match (is_token, status) {
            (true, _) => LONGEST_TOKEN_REPLY,
            (false, 400..) => LONGEST_ERROR,
            (false, _) => usize::MAX,
        };
        self.settings.body_cap.min(longest)
    }

    /// Estimates the service's time, unless a proxy may have produced or cached the reply.
    fn learn_time(&self, headers: &HeaderMap, sent: Moment, time: &ServiceTime) -> Option<Reading> {
        let trusted = !self.base.is_plain() || self.base.is_loopback();
        let date = date(headers).filter(|_| trusted && !headers.contains_key(AGE))?;
        let received = time.clock().moment();
        time.learn(date, sent.wall, received.wall);
        self.warn_of_skew(time);
        Reading::of_reply(date, sent, received)
    }

    /// Logs one warning if the machine's clock differs from the service's.
    fn warn_of_skew(&self, time: &ServiceTime) {
        let Some(skew) = time.skew().filter(|skew| skew.abs() > NOTICED_SKEW) else { return };
        if !self.skew_logged.swap(true, Ordering::Relaxed) {
            let (seconds, direction) =
                (skew.abs().as_secs(), if skew.is_negative() { "ahead of" } else { "behind" });
            let done = if skew.abs() > CORRECTED_SKEW {
                "too much to be corrected for: set this machine's clock"
            } else {
                "siteline corrects for it, but the clock should be set"
            };
            let sandbox = if self.base.is_loopback() {
                " (for a siteline.Sandbox: all variables of sandbox.env(), or clock=sandbox.clock)"
            } else {
                ""
            };
            log::warn!(
                target: "siteline::http",
                "this machine's clock is {seconds} s {direction} the service's: {done}{sandbox}"
            );
        }
    }
}

fn build_request(request: Request) -> reqwest::Request {
    let method = if request.form.is_some() { Method::POST } else { Method::GET };
    let mut built = reqwest::Request::new(method, request.url);
    let headers = built.headers_mut();
    if let Some(trace) = request.trace {
        headers.extend(trace.as_ref().clone());
    }
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    if let Some(authorization) = request.authorization {
        headers.insert(AUTHORIZATION, authorization);
    }
    if let Some(form) = request.form {
        let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, form_type);
        *built.body_mut() = Some(form.as_bytes().to_vec().into());
    }
    built
}

fn no_response(path: &str, limit: Duration) -> Error {
    Error::new(Kind::TransportTimeout, format!("no reply to {path} within {limit:?}"))
        .with(|context| context.phase = Some(Phase::Response))
}

/// Whether two headers contain the length of the body. A proxy may have framed it differently, so
/// the connection is not reused.
fn has_two_lengths(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH)
}

/// Status 304 is no redirect: it replies to a conditional request, and siteline sends none.
fn is_redirect(status: u16) -> bool {
    (300..400).contains(&status) && status != 304
}

fn redirect_refused(status: u16, headers: &HeaderMap, base: &BaseUrl) -> Error {
    let target = single(headers, &LOCATION)
        .and_then(|location| base.join("/", None).join(location).ok())
        .and_then(|target| target.host_str().map(|host| format!("{}://{host}", target.scheme())));
    let target = target.map_or_else(String::new, |target| format!(" to {}", excerpt(&target)));
    Error::new(
        Kind::RedirectRefused,
        format!("the service replied with {status}, a redirect{target}; siteline follows none"),
    )
    .with_hint("a proxy or a login page may intercept requests, or base_url= is wrong")
    .with(|context| {
        context.status = Some(status);
        context.request_id = request_id(headers);
    })
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    ["x-request-id", "request-id", "x-correlation-id", "x-amzn-requestid", "x-ms-request-id"]
        .into_iter()
        .find_map(|name| single(headers, &HeaderName::from_static(name)))
        .map(|id| excerpt(id).chars().take(100).collect())
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
