use crate::auth::called;
use crate::auth::key::{KeyHandle, text_or_json, wrong};
use crate::auth::signer::PySigner;
use crate::convert::values::duration_or;
use crate::prelude::*;
use siteline_core::auth::{
    AssertionSettings, Checked, Credential, PrivateKey, PublicJwk, Signer, Signing, check_kid,
};
use siteline_core::fork::Owned;

#[pyclass(frozen, module = "siteline._core")]
pub(crate) struct CredentialHandle(pub(crate) Credential);

#[pymethods]
impl CredentialHandle {
    /// Without `public_jwk`, `key` is a [`KeyHandle`]. With it and `is_async`, `key` is a signer. With
    /// `public_jwk` only, it is a function that reads the key for the first assertion.
    #[new]
    #[pyo3(signature = (subject, key, kid, assertions, public_jwk=None, is_async=None))]
    fn new(
        subject: Text<'_>,
        key: Object<'_>,
        kid: Option<Text<'_>>,
        assertions: Assertions<'_>,
        public_jwk: Option<&Object<'_>>,
        is_async: Option<bool>,
    ) -> PyResult<Self> {
        let (py, kid) = (key.py(), kid.map(|kid| kid.0));
        guarded(|| {
            let made = match (public_jwk.map(public_key).transpose()?, is_async) {
                (None, _) => {
                    Credential::with_key(subject.0, key.cast::<KeyHandle>()?.get().0.clone(), kid)
                }
                (Some(public), Some(is_async)) => {
                    let signer = PySigner { function: Arc::new(key.unbind()), is_async };
                    let signing = Signing::Awaited(Arc::new(signer));
                    Credential::with_signer(subject.0, signing, public, kid)
                }
                (Some(public), None) => {
                    let kid = public.thumbprint().to_owned();
                    let signer = DeferredKey { read: key.unbind(), kid, key: Owned::empty() };
                    let signing = Signing::Blocking(Arc::new(signer));
                    Credential::with_signer(subject.0, signing, public, None)
                }
            };
            let Checked { value, warnings } = made.or_raise()?;
            let credential = value.with_assertions(assertions.settings()?).or_raise()?;
            warn(py, &warnings)?;
            Ok(Self(credential))
        })
    }

    /// Subject, key id, public JWK and assertion settings.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Facts<'_, 'py>> {
        let AssertionSettings { audience, lifetime, tolerance, typ } = self.0.assertion();
        let assertions = (audience.as_deref(), *lifetime, *tolerance, *typ);
        Ok((self.0.subject(), self.0.kid(), dict(py, self.0.public_jwk())?, assertions))
    }
}

type Facts<'a, 'py> = (&'a str, &'a str, Object<'py>, (Option<&'a str>, Duration, Duration, bool));

/// `audience`, `assertion_lifetime`, `clock_tolerance` and `typ`.
#[derive(FromPyObject)]
struct Assertions<'py>(Option<String>, Object<'py>, Object<'py>, bool);

impl Assertions<'_> {
    fn settings(self) -> PyResult<AssertionSettings> {
        let Self(audience, lifetime, tolerance, typ) = self;
        let lifetime = duration_or(&lifetime, "assertion_lifetime", Kind::ConfigError)?;
        let tolerance = duration_or(&tolerance, "clock_tolerance", Kind::ConfigError)?;
        Ok(AssertionSettings { audience, lifetime, tolerance, typ })
    }
}

/// The key of a pickled `password_command`: loading a pickle must not run a command.
struct DeferredKey {
    read: Py<PyAny>,
    kid: String,
    key: Owned<Mutex<Option<PrivateKey>>>,
}

impl Signer for DeferredKey {
    fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>> {
        let mut key = self.key.get_or_init(Mutex::default).lock();
        let key = if let Some(key) = &mut *key {
            key
        } else {
            let convert = |read: Object<'_>| Ok(read.cast::<KeyHandle>()?.get().0.clone());
            let read = called(&self.read, convert)?;
            check_kid(&self.kid, &read.public_jwk())?;
            key.insert(read)
        };
        key.sign(signing_input)
    }
}

fn public_key(value: &Object<'_>) -> PyResult<PublicJwk> {
    let text = text_or_json(value)?;
    let text = text.ok_or_else(|| wrong("public_jwk= is a dict or JSON text", value))?;
    PublicJwk::parse(&String::from_utf8_lossy(&text)).or_raise()
}
