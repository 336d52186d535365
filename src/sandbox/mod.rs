//! The handle of `siteline.Sandbox`.

mod arguments;
mod expected;
mod frame;

use crate::client::PyClient;
use crate::convert::clock::{PyClock, on_clock};
use crate::convert::state::keywords;
use crate::frame::Frame;
use crate::prelude::*;
use siteline_core::auth::PrivateKey;
use siteline_core::data::Ids;
use siteline_sandbox::{AsOf, CertificateRequest, DEFAULT_SCOPES, Point, Sandbox};

use arguments::{identity, microseconds, whole_seconds};

#[pyclass(frozen, name = "SandboxHandle", module = "siteline._core")]
pub(crate) struct PySandbox {
    sandbox: Sandbox,
    key: PyOnceLock<(String, String)>,
    certificate: PyOnceLock<String>,
}

impl PySandbox {
    fn own_certificate(&self, py: Python<'_>, name: &str) -> PyResult<&String> {
        self.certificate.get_or_try_init(py, || {
            let begins = "1971-01-01T00:00:00Z".parse().ok();
            let usual = CertificateRequest::default();
            let request = CertificateRequest { begins, lifetime_seconds: u32::MAX, ..usual };
            self.sandbox.certificate(name, &request).or_raise()
        })
    }
}

#[pymethods]
impl PySandbox {
    #[new]
    fn new(now: Option<&Object<'_>>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let clock = now.map(|now| on_clock(&Clock::running(), now, "now")).transpose()?;
        let clock = clock.map_or_else(Clock::running, Clock::frozen_at);
        let mut options = arguments::options(options)?;
        options.take_step = |step| without_fork(step);
        let sandbox = Sandbox::start(options, clock).or_raise()?;
        Ok(Self { sandbox, key: PyOnceLock::new(), certificate: PyOnceLock::new() })
    }

    #[getter]
    fn base_url(&self) -> &str {
        self.sandbox.base_url()
    }

    #[getter]
    fn clock(&self) -> PyClock {
        PyClock(self.sandbox.clock().clone())
    }

    fn is_closed(&self) -> bool {
        self.sandbox.is_closed()
    }

    /// The key as PEM, and the subject. The first call enrolls it.
    fn key(&self, py: Python<'_>) -> PyResult<&(String, String)> {
        self.key.get_or_try_init(py, || {
            let key = step(py, PrivateKey::of_sandboxes)?.or_raise()?;
            let subject = self.sandbox.enroll(&key.public_jwk().to_json(), &DEFAULT_SCOPES);
            Ok((key.to_pkcs8_pem(None).or_raise()?.to_string(), subject.or_raise()?))
        })
    }

    /// The service runs as long as this client exists.
    fn serve_while_exists(slf: Py<Self>, py: Python<'_>, client: &Bound<'_, PyClient>) {
        client.get().sandbox.get_or_init(py, || slf.into_any());
    }

    fn shared_file(&self, name: &str, text: &str) -> PyResult<String> {
        self.sandbox.shared_file(name, text).or_raise()
    }

    fn certificate(
        &self,
        py: Python<'_>,
        name: &str,
        lifetime: &Object<'_>,
        begins: Option<&Object<'_>>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<String> {
        let request = CertificateRequest {
            begins: begins.map(|at| on_clock(self.sandbox.clock(), at, "begins")).transpose()?,
            lifetime_seconds: whole_seconds(lifetime, "lifetime")?,
            ..keywords(options)?
        };
        step(py, || self.sandbox.certificate(name, &request))?.or_raise()
    }

    fn enroll(&self, public_jwk: Text<'_>, scopes: Option<Vec<String>>) -> PyResult<String> {
        let scopes = scopes.unwrap_or_else(|| DEFAULT_SCOPES.map(str::to_owned).to_vec());
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        self.sandbox.enroll(public_jwk.0, &scopes).or_raise()
    }

    /// `own_certificate` returns a certificate with its key, as PEM.
    #[pyo3(signature = (action, name=Text(""), public_jwk=Text("")))]
    fn control(
        &self,
        py: Python<'_>,
        action: &str,
        name: Text<'_>,
        public_jwk: Text<'_>,
    ) -> PyResult<String> {
        match action {
            "ca" => return Ok(self.sandbox.ca().or_raise()?.to_owned()),
            "own_certificate" => return self.own_certificate(py, name.0).cloned(),
            "shared_clock" => return self.sandbox.shared_clock().or_raise(),
            "unregister" => self.sandbox.unregister(name.0).or_raise()?,
            "approve" => self.sandbox.approve(name.0).or_raise()?,
            "revoke" => self.sandbox.revoke(name.0).or_raise()?,
            "replace_key" => self.sandbox.replace_key(name.0, public_jwk.0).or_raise()?,
            "forget_tokens" => self.sandbox.forget_tokens(),
            "forget_cursors" => self.sandbox.forget_cursors(),
            _ => self.sandbox.clear_faults(),
        }
        Ok(String::new())
    }

    fn load(
        &self,
        py: Python<'_>,
        frame: &Object<'_>,
        bucket: Option<&Object<'_>>,
        ids: Ids,
    ) -> PyResult<usize> {
        let bucket = optional(bucket, "bucket", whole_seconds)?;
        let frame = frame::read(frame, identity(ids))?;
        step(py, || self.sandbox.load_frame(frame, bucket))?.or_raise()
    }

    /// Without numbers the point is withdrawn.
    fn change(
        &self,
        timestamp: &Object<'_>,
        numbers: Option<[Option<f64>; 3]>,
        sample_count: Option<i64>,
        at: Option<&Object<'_>>,
        ids: Ids,
    ) -> PyResult<()> {
        let instant = microseconds(self.sandbox.clock());
        let timestamp = instant(timestamp, "timestamp")?;
        let (available_at, series) = (optional(at, "at", instant)?, identity(ids));
        let Some([value, minimum, maximum]) = numbers else {
            return self.sandbox.withdraw(&series, timestamp, available_at).or_raise();
        };
        let point = Point { timestamp, value, minimum, maximum, sample_count, available_at };
        self.sandbox.revise(&series, point).or_raise()
    }

    /// `times`: start, end and the time of the read.
    fn expected<'py>(
        &self,
        py: Python<'py>,
        selection: expected::Asked,
        times: [Given<'py>; 3],
        interval: Option<&Object<'py>>,
    ) -> PyResult<Frame> {
        let selection = expected::selection(selection)?;
        let instant = microseconds(self.sandbox.clock());
        let [start, end, at] = times.each_ref().map(Option::as_ref);
        let start = optional(start, "start", &instant)?;
        let end = optional(end, "end", &instant)?;
        let interval = optional(interval, "interval", whole_seconds)?;
        let as_of = at.map(|at| expected::as_of(self.sandbox.clock(), at)).transpose()?;
        let as_of = as_of.unwrap_or(AsOf::Now);
        let truth = step(py, || self.sandbox.truth(selection, start, end, interval, as_of))?;
        let points = expected::points(&truth.or_raise()?).or_raise()?;
        Ok(Frame::unread(points))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        dict(py, &self.sandbox.stats())
    }

    fn wire(&self) -> Vec<String> {
        let requests = self.sandbox.wire();
        requests.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    fn fault(
        &self,
        on: &Object<'_>,
        delay: Option<&Object<'_>>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        arguments::faults(on, delay, options)?.into_iter().for_each(|one| self.sandbox.fault(one));
        Ok(())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.sandbox.close())
    }
}

impl Drop for PySandbox {
    fn drop(&mut self) {
        // The service cannot run while another thread forks, and that thread may need the interpreter.
        attached(|py| detached(py, || self.sandbox.close()));
    }
}
