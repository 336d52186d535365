//! Who may use a sandbox: its own clients, the integrations that are enrolled, the client certificates.

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyBytes, PyDict};

use super::PySandbox;
use super::arguments::{json_text, whole_seconds};
use super::integration::CLIENT;
use crate::auth::credential::PyCredential;
use crate::auth::mutual_tls::PyMutualTls;
use crate::auth::private_key::PyPrivateKey;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::runtime::step;
use crate::client::ClientArg;
use crate::convert::values::{Text, instant, optional};
use siteline_sandbox::{CertificateRequest, DEFAULT_SCOPES, MutualMode};

impl PySandbox {
    fn client_of_class<'py>(
        slf: &Bound<'py, Self>,
        (module, class): (&str, &str),
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let settings = PyDict::new(py);
        settings.set_item("credential", this.credential(py)?)?;
        settings.set_item("clock", this.clock.bind(py))?;
        if let Ok(ca) = this.sandbox.ca() {
            settings.set_item("ca_bundle", PyBytes::new(py, ca.as_bytes()))?;
        }
        settings.update(options.unwrap_or(&PyDict::new(py)).as_mapping())?;
        let class = py.import(module)?.getattr(class)?;
        let client = class.call((this.base_url(),), Some(&settings))?;
        let handle: ClientArg<'py> = client.extract()?;
        handle.0.get().sandbox.get_or_init(py, || slf.clone().into_any().unbind());
        Ok(client)
    }
}

#[pymethods]
impl PySandbox {
    /// A :class:`Client` of this service, enrolled and on its clock.
    ///
    /// The service runs until :meth:`close`, else as long as the sandbox, a client that it handed out,
    /// or a scan or an iterator of that client exists: ``siteline.Sandbox().client()`` works.
    ///
    /// Keywords are those of :class:`Client` and override the sandbox's. All clients of a sandbox are
    /// one integration: they share the subject, the token and the allowance, but each counts only its
    /// own requests unless ``ledger`` is given.
    ///
    /// >>> sandbox.client(daily_allowance=50).allowance
    /// <Allowance 0 of 50 used, 50 left; 0 token requests>
    #[pyo3(signature = (**options))]
    fn client<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::client_of_class(slf, ("siteline.client", "Client"), options)
    }

    /// An :class:`AsyncClient` of the same integration, with the keywords of :meth:`client`.
    ///
    /// >>> import asyncio
    /// >>> async def main():
    /// ...     async with sandbox.async_client() as client:
    /// ...         return len(await client.discover())
    /// >>> asyncio.run(main())
    /// 2
    #[pyo3(signature = (**options))]
    fn async_client<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::client_of_class(slf, ("siteline.aio", "AsyncClient"), options)
    }

    /// The variables for code that makes its own client, in this process or another:
    /// ``subprocess.run(..., env={**os.environ, **sandbox.env()})``.
    ///
    /// A dict of ``SITELINE_BASE_URL``, ``SITELINE_SUBJECT``, ``SITELINE_PRIVATE_KEY`` (PEM text) for
    /// :class:`Client`, and ``SITELINE_SANDBOX_CLOCK``: by it each client of this ``base_url``
    /// has this :attr:`clock`, so that a move of it in one process is seen in all. It is a file that
    /// :meth:`close` removes. ``datetime.now()`` is the machine's time everywhere.
    ///
    /// With ``tls`` also ``SSL_CERT_FILE``; with ``mutual_tls`` ``SITELINE_CERTIFICATE_FILE``, and
    /// ``SITELINE_CLIENT_ID`` where there are tokens, in the place of subject and key: files that
    /// :meth:`close` removes too.
    ///
    /// >>> print(*sorted(sandbox.env()))
    /// SITELINE_BASE_URL SITELINE_PRIVATE_KEY SITELINE_SANDBOX_CLOCK SITELINE_SUBJECT
    fn env<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut variables = vec![
            ("SITELINE_BASE_URL", self.sandbox.base_url().to_owned()),
            ("SITELINE_SANDBOX_CLOCK", self.sandbox.shared_clock().or_raise()?),
        ];
        if let Ok(ca) = self.sandbox.ca() {
            variables.push(("SSL_CERT_FILE", self.sandbox.shared_file("ca.pem", ca).or_raise()?));
        }
        if let Some(mode) = self.sandbox.mutual_tls() {
            let certificate = self.integration.certificate(&self.sandbox)?;
            let file = self.sandbox.shared_file("client.pem", &certificate).or_raise()?;
            variables.push(("SITELINE_CERTIFICATE_FILE", file));
            if mode == MutualMode::Token {
                variables.push(("SITELINE_CLIENT_ID", CLIENT.to_owned()));
            }
        } else {
            let (key, subject) = self.integration.credential(py, &self.sandbox)?;
            variables.push(("SITELINE_SUBJECT", subject));
            variables
                .push(("SITELINE_PRIVATE_KEY", key.to_pkcs8_pem(None).or_raise()?.to_string()));
        }
        variables.into_py_dict(py)
    }

    /// With ``tls`` or ``mutual_tls``: the certificate of the sandbox's own authority, PEM ``bytes`` for
    /// ``Client(..., ca_bundle=sandbox.ca)``.
    ///
    /// Without, it raises :class:`ConfigError`.
    #[getter]
    fn ca<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.sandbox.ca().or_raise()?.as_bytes()))
    }

    /// Issue a client certificate, for :class:`MutualTls`: PEM ``bytes`` with its private key.
    ///
    /// Its subject is ``CN=<name>,O=siteline sandbox``; ``name`` is also the ``client_id``. It is valid
    /// from ``begins`` (an instant; five minutes ago by :attr:`clock`) for ``lifetime``. By default the
    /// service accepts it. One of the same name renews a former one, which stays valid.
    ///
    /// What it refuses: a certificate that is not for clients (``client_auth=False``), not of its
    /// authority (``trusted=False``), or not ``registered``. ``chain=True``: an intermediate authority
    /// signs it, whose certificate follows in the PEM.
    ///
    /// >>> with siteline.Sandbox(mutual_tls="data") as service:
    /// ...     stale = siteline.MutualTls(service.certificate("plant-7", lifetime="1h"))
    /// ...     service.clock.advance("2h")
    /// ...     service.client(credential=stale).discover()  # doctest: +ELLIPSIS
    /// Traceback (most recent call last):
    /// ...
    /// siteline.errors.CredentialError: The client certificate "CN=plant-7,O=...
    #[pyo3(signature = (
        name="plant", *, lifetime=None, begins=None, client_auth=true, trusted=true, registered=true,
        chain=false
    ), text_signature = "($self, name='plant', *, lifetime='30d', begins=None, client_auth=True, \
        trusted=True, registered=True, chain=False)")]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python method")]
    #[expect(clippy::fn_params_excessive_bools, reason = "each is a keyword of the Python method")]
    fn certificate<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        lifetime: Option<&Bound<'py, PyAny>>,
        begins: Option<&Bound<'py, PyAny>>,
        client_auth: bool,
        trusted: bool,
        registered: bool,
        chain: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let usual = CertificateRequest::default();
        let lifetime = optional(lifetime, "lifetime", whole_seconds)?;
        let request = CertificateRequest {
            begins: optional(begins, "begins", instant)?,
            lifetime_seconds: lifetime.unwrap_or(usual.lifetime_seconds),
            client_auth,
            trusted,
            registered,
            chain,
        };
        let pem = step(py, || self.sandbox.certificate(name, &request))?.or_raise()?;
        Ok(PyBytes::new(py, pem.as_bytes()))
    }

    /// Forget all certificates of a name: requests with them get 401, and so do tokens that are bound to
    /// them.
    fn unregister(&self, name: Text<'_>) -> PyResult<()> {
        self.sandbox.unregister(name.0).or_raise()
    }

    /// Enroll a public RSA key and return the subject (§1).
    ///
    /// ``public_jwk`` is a mapping or JSON text, such as ``PrivateKey.public_jwk``; ``scopes`` are its
    /// allowed scopes, by default both of the document. :class:`ConfigError` for anything but a public
    /// RSA key of 2048 bits or more.
    #[pyo3(signature = (public_jwk, scopes=None))]
    fn enroll(
        &self,
        public_jwk: &Bound<'_, PyAny>,
        scopes: Option<Vec<String>>,
    ) -> PyResult<String> {
        let scopes = scopes.unwrap_or_else(|| DEFAULT_SCOPES.map(str::to_owned).to_vec());
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        self.sandbox.enroll(&json_text(public_jwk)?, &scopes).or_raise()
    }

    /// Approve an integration of a sandbox that was made with ``approved=False`` (§1).
    fn approve(&self, subject: Text<'_>) -> PyResult<()> {
        self.sandbox.approve(subject.0).or_raise()
    }

    /// Revoke the approval: no new token is issued, and tokens that were issued are refused.
    fn revoke(&self, subject: Text<'_>) -> PyResult<()> {
        self.sandbox.revoke(subject.0).or_raise()
    }

    /// Replace the enrolled public key; tokens that were issued stay valid.
    fn replace_key(&self, subject: Text<'_>, public_jwk: &Bound<'_, PyAny>) -> PyResult<()> {
        self.sandbox.replace_key(subject.0, &json_text(public_jwk)?).or_raise()
    }
}

impl PySandbox {
    /// The credential of its own clients.
    fn credential<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(mode) = self.sandbox.mutual_tls() else {
            let (key, subject) = self.integration.credential(py, &self.sandbox)?;
            return py.get_type::<PyCredential>().call1((subject, PyPrivateKey(key)));
        };
        let certificate = self.integration.certificate(&self.sandbox)?;
        let client_id = (mode == MutualMode::Token).then_some(CLIENT);
        let keywords = [("client_id", client_id)].into_py_dict(py)?;
        let certificate = (PyBytes::new(py, certificate.as_bytes()),);
        py.get_type::<PyMutualTls>().call(certificate, Some(&keywords))
    }
}
