//! The complete Customer Data Service on loopback: strict, deterministic, and independent of the
//! client's code, so that it detects the client's errors. It serves a generated plant or the user's
//! own data, with late points and revisions, and injects the faults of real services on request.
//!
//! ```text
//! socket (server, tls) -> faults (injection) -> endpoints (service) -> token | discovery | page
//! page: query -> cursor -> snapshot (plant | dataset -> aggregation) -> body
//! load: frame (columns) -> dataset
//! ```
//!
//! It follows the interface document exactly. [`Options`] has a switch for everything that the
//! document leaves open.

mod aggregation;
mod assertion;
mod authority;
mod body;
mod certificates;
mod client;
mod cursor;
mod dataset;
mod enrollment;
mod error;
mod fault;
mod fault_args;
mod form;
mod frame;
mod identity;
mod injection;
mod options;
mod page;
mod plant;
mod query;
mod reply;
mod server;
mod service;
mod snapshot;
mod stats;
mod tls;
mod token;
mod truth;

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use siteline_base::clock::Clock;
use siteline_base::lock::Mutex;

pub use certificates::CertificateRequest;
pub use dataset::{Point, Reading};
pub use error::SandboxError;
pub use fault::{Effect, Endpoint, Fault, When};
pub use fault_args::FaultArgs;
pub use frame::Frame;
pub use identity::{Identity, Selection};
pub use options::{
    CertificateRefusal, ErrorBody, MutualMode, Options, PageCounts, PointOrder, TimestampForm,
    TlsOption, TlsVersion,
};
pub use stats::Stats;
pub use truth::AsOf;
pub use truth::Truth;

use authority::{Authority, ROOT};
use certificates::Certificates;
use dataset::{Dataset, Done};
use frame::Rows;
use server::{Server, Shared};
use service::Service;
use snapshot::DataSource;

/// The default scopes of an integration.
pub const DEFAULT_SCOPES: [&str; 2] = [enrollment::DISCOVERY_SCOPE, enrollment::DATA_SCOPE];

/// A running service. [`Sandbox::close`] or a drop stops the service and closes its connections.
pub struct Sandbox {
    base_url: String,
    clock: Clock,
    shared: Arc<Shared>,
    server: Mutex<Option<Server>>,
    /// The certificate of its authority, if the service uses TLS.
    ca: Option<String>,
    mutual_tls: Option<MutualMode>,
}

impl Sandbox {
    /// Starts a service on 127.0.0.1 with the time of `clock`. It uses the port of the options, or
    /// any free port.
    /// Fails if the options are invalid, the port is in use, or no socket or thread can be created.
    pub fn start(options: Options, clock: Clock) -> Result<Self, SandboxError> {
        options.check()?;
        let failed = |error: std::io::Error| SandboxError::system("cannot listen", error);
        let listener = listen(options.port.unwrap_or_default())?;
        listener.set_nonblocking(true).map_err(failed)?;
        let authority = if options.speaks_tls() { Some(Authority::new(ROOT, None)?) } else { None };
        let acceptor = authority.as_ref().map(|one| tls::acceptor(one, &options, &clock));
        let acceptor = acceptor.transpose()?;
        let scheme = if authority.is_some() { "https" } else { "http" };
        let base_url = format!("{scheme}://{}", listener.local_addr().map_err(failed)?);
        let ca = authority.as_ref().map(|authority| authority.pem().to_owned());
        let mutual_tls = options.mutual_tls;
        let certificates = mutual_tls
            .zip(authority)
            .map(|(mode, authority)| Certificates::new(mode, authority))
            .transpose()?;
        let service = Service::new(options, clock.clone(), &base_url, certificates)?;
        let shared = Arc::new(Shared::new(service));
        let server = Server::start(listener, Arc::clone(&shared), acceptor)?;
        let server = Mutex::new(Some(server));
        Ok(Self { base_url, clock, shared, server, ca, mutual_tls })
    }

    /// Returns the certificate of its authority (PEM), which clients must trust.
    /// Fails if the service has no TLS.
    pub fn ca(&self) -> Result<&str, SandboxError> {
        self.ca.as_deref().ok_or_else(|| {
            SandboxError::new(
                "this sandbox speaks plain HTTP: make it with tls=True or mutual_tls=.",
            )
        })
    }

    /// Returns the purpose of client certificates, if the service is platform-managed.
    pub fn mutual_tls(&self) -> Option<MutualMode> {
        self.mutual_tls
    }

    /// Issues a client certificate as PEM with its chain and private key. Earlier certificates with
    /// the same name stay registered.
    /// Fails if `mutual_tls` is off, or the name is not printable ASCII.
    pub fn certificate(
        &self,
        name: &str,
        request: &CertificateRequest,
    ) -> Result<String, SandboxError> {
        self.change_certificates(|certificates| certificates.issue(name, request, &self.clock))
    }

    /// Removes all certificates of this name from the service, and makes tokens that are bound to
    /// them invalid.
    /// Fails if `mutual_tls` is off, or there is no certificate of this name.
    pub fn unregister(&self, name: &str) -> Result<(), SandboxError> {
        self.change_certificates(|certificates| certificates.unregister(name))
    }

    fn change_certificates<T>(
        &self,
        change: impl FnOnce(&mut Certificates) -> Result<T, SandboxError>,
    ) -> Result<T, SandboxError> {
        match &mut self.shared.lock().certificates {
            Some(certificates) => change(certificates),
            None => Err(SandboxError::new(
                "this sandbox takes no client certificates: make it with mutual_tls=.",
            )),
        }
    }

    /// Returns `http://127.0.0.1:PORT`, or `https://…`, without a trailing slash.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the service's clock. If clients share it, one `advance` moves the time of all.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the value of `SITELINE_SANDBOX_CLOCK`: the address, `#`, and a file. Clients in
    /// other processes share this clock through the file. It exists until [`Sandbox::close`].
    /// Fails if the file cannot be created.
    pub fn shared_clock(&self) -> Result<String, SandboxError> {
        let folder = std::env::temp_dir();
        let what = format!("the clock cannot be shared by a file in {}", folder.display());
        let path = self.clock.share().map_err(|error| SandboxError::system(&what, error))?;
        let path = path
            .to_str()
            .ok_or_else(|| SandboxError::new(format!("{what}: the path is not UTF-8")))?;
        Ok(format!("{}#{path}", self.base_url))
    }

    /// Writes this text to a file that only this user can read, and returns its path. The file is
    /// next to the clock's file and is removed with it.
    /// Fails if the file cannot be created.
    pub fn shared_file(&self, name: &str, text: &str) -> Result<String, SandboxError> {
        let failed =
            |error: io::Error| SandboxError::system(format!("{name} cannot be written"), error);
        let path = self.clock.share().map_err(failed)?.with_file_name(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&path).and_then(|mut file| file.write_all(text.as_bytes())) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
        let path = path.to_str().ok_or_else(|| SandboxError::new("the path is not UTF-8"))?;
        Ok(path.to_owned())
    }

    /// Enrolls a public RSA key (a JWK as JSON text) with its allowed scopes; returns the subject
    /// (§1). The service approves it at once, except if the options require an approval.
    /// Fails if the text is not a public RSA JWK of at least 2048 bits, or a scope is invalid.
    pub fn enroll(&self, public_jwk: &str, scopes: &[&str]) -> Result<String, SandboxError> {
        let mut service = self.shared.lock();
        if service.certificates.is_some() {
            return Err(SandboxError::new(
                "with mutual_tls= there are no keys to enroll: use certificate().",
            ));
        }
        let approved = service.options.approved;
        service.token_endpoint.enrollments.add(public_jwk, scopes, approved)
    }

    /// Approves an integration, as an administrator does (§1).
    /// Fails if the subject was never enrolled.
    pub fn approve(&self, subject: &str) -> Result<(), SandboxError> {
        self.shared.lock().token_endpoint.enrollments.change(subject, |one| one.approved = true)
    }

    /// Revokes the approval: the integration gets no new tokens, and its tokens become invalid.
    /// Fails if the subject was never enrolled.
    pub fn revoke(&self, subject: &str) -> Result<(), SandboxError> {
        let mut service = self.shared.lock();
        service.token_endpoint.enrollments.change(subject, |one| one.approved = false)?;
        service.token_endpoint.forget_tokens_of(subject);
        Ok(())
    }

    /// Replaces the enrolled public key. Earlier tokens stay valid.
    /// Fails if the subject was never enrolled, or the text is not a public RSA JWK.
    pub fn replace_key(&self, subject: &str, public_jwk: &str) -> Result<(), SandboxError> {
        let key = enrollment::EnrolledKey::parse(public_jwk)?;
        self.shared.lock().token_endpoint.enrollments.change(subject, |one| one.key = key)
    }

    /// Serves aggregated points. The first load, even an empty one, replaces the generated plant;
    /// later loads add series and points. Points are re-aggregated for intervals that are multiples
    /// of `bucket_seconds`.
    /// Fails if a timestamp is off the grid of `bucket_seconds`, a series has another width, or a value
    /// is not finite. Then nothing is loaded.
    pub fn load_points(
        &self,
        bucket_seconds: u32,
        series: Vec<(Identity, Vec<Point>)>,
    ) -> Result<(), SandboxError> {
        self.change_dataset(|dataset| dataset.add_points(bucket_seconds, series))
    }

    /// Serves raw readings, aggregated to the interval of each query: mean, minimum, maximum and
    /// count over `[t, t + interval)`, on a grid from the Unix epoch. Readings can be unsorted and
    /// can repeat timestamps; all are counted. `bucket_seconds` is the default interval of queries.
    /// Fails if the width is zero, a series already has points, or a value is not finite. Then nothing is
    /// loaded.
    pub fn load_readings(
        &self,
        bucket_seconds: u32,
        series: Vec<(Identity, Vec<Reading>)>,
    ) -> Result<(), SandboxError> {
        self.change_dataset(|dataset| dataset.add_readings(bucket_seconds, series))
    }

    /// Serves the rows of a frame, and its names in discovery; returns the number of rows.
    /// [`Sandbox::load_points`] loads aggregated points, by default with the widest bucket that fits
    /// all timestamps, up to a day. [`Sandbox::load_readings`] loads other rows. Fails if readings
    /// have no `bucket_seconds`, or points are not on a grid of whole seconds.
    pub fn load_frame(
        &self,
        mut frame: Frame,
        bucket_seconds: Option<u32>,
    ) -> Result<usize, SandboxError> {
        let (count, names) = (frame.rows(), frame.take_names());
        match frame.into_rows(bucket_seconds)? {
            Rows::Points(width, series) => self.load_points(width, series)?,
            Rows::Readings(width, series) => self.load_readings(width, series)?,
        }
        self.change_dataset(|dataset| {
            dataset.add_names(names);
            Ok(())
        })?;
        Ok(count)
    }

    /// Adds a new version of a point, or a new point, to a loaded series. The service sends it from
    /// `point.available_at` on; `None` means now.
    /// Fails if this series of points is not loaded, or the timestamp is off its grid.
    pub fn revise(&self, identity: &Identity, point: Point) -> Result<(), SandboxError> {
        self.add_version(identity, point, true)
    }

    /// Withdraws a loaded point from `at` on; `None` means now.
    pub fn withdraw(
        &self,
        identity: &Identity,
        timestamp: i64,
        at: Option<i64>,
    ) -> Result<(), SandboxError> {
        let point = Point { timestamp, available_at: at, ..Point::default() };
        self.add_version(identity, point, false)
    }

    fn add_version(&self, identity: &Identity, mut point: Point, present: bool) -> Done {
        let now = self.clock.wall().as_microsecond();
        point.available_at.get_or_insert(now);
        self.change_dataset(|dataset| dataset.revise(identity, &point, present))
    }

    fn change_dataset(&self, change: impl FnOnce(&mut Dataset) -> Done) -> Done {
        let mut service = self.shared.lock();
        service.snapshots.clear();
        if let DataSource::Loaded(dataset) = &mut service.source {
            return change(dataset);
        }
        let mut dataset = Dataset::default();
        change(&mut dataset)?;
        service.source = DataSource::Loaded(dataset);
        Ok(())
    }

    /// Sets a fault. It counts the requests after this call.
    pub fn fault(&self, fault: Fault) {
        self.shared.lock().faults.add(fault);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// Makes every access token invalid. Requests with these tokens get 401.
    pub fn forget_tokens(&self) {
        self.shared.lock().token_endpoint.forget_tokens();
    }

    /// Makes all earlier cursors invalid, as after a restart of the service.
    pub fn forget_cursors(&self) {
        self.shared.lock().forget_cursors();
    }

    /// Returns the counts and the log of the service.
    pub fn stats(&self) -> Stats {
        self.shared.lock().stats.clone()
    }

    /// Returns the bytes of each request in order of arrival, if `record_wire` is on. They contain
    /// assertions and access tokens.
    pub fn wire(&self) -> Vec<Vec<u8>> {
        self.shared.wire()
    }

    /// Stops the service, closes its connections, and no longer shares its clock. Statistics and
    /// truth stay available. A second call does nothing.
    pub fn close(&self) {
        let server = self.server.lock().take();
        drop(server);
        self.clock.unshare();
    }

    /// Returns true after [`Sandbox::close`].
    pub fn is_closed(&self) -> bool {
        self.server.lock().is_none()
    }
}

/// Opens a listener on loopback. Port 0 selects any free port.
fn listen(port: u16) -> Result<TcpListener, SandboxError> {
    TcpListener::bind(("127.0.0.1", port)).map_err(|error| match (port, error.kind()) {
        (_, ErrorKind::AddrInUse) if port > 0 => SandboxError::new(format!(
            "port={port} is taken on 127.0.0.1: end what listens there, or leave out port= for a \
                 free one."
        )),
        (0, _) => SandboxError::system("cannot listen", error),
        _ => SandboxError::system(
            format!("cannot listen on port={port} (leave out port= for a free one)"),
            error,
        ),
    })
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_closed() { ", closed" } else { "" };
        write!(f, "Sandbox({}{state}, {:?})", self.base_url, self.clock)
    }
}
