//! Where another process finds the key of a pickled credential.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::auth::passphrase::printed;
use crate::auth::private_key::{Passphrase, Source, read};
use crate::bridge::errors::OrRaise as _;
use crate::bridge::errors::error_of;
use crate::bridge::modules::import_for_commands;
use crate::bridge::process::attached;
use siteline_base::lock::Mutex;
use siteline_core::auth::{PrivateKey, Signer, check_kid};
use siteline_core::error::{Error, Kind, Result};
use siteline_core::fork::Owned;
use siteline_core::settings::{PASSPHRASE, PRIVATE_KEY, variable_of_pickle};

/// Where a key is. Nothing secret.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct KeyPlace {
    /// `None`: the key is in `SITELINE_PRIVATE_KEY`.
    pub path: Option<PathBuf>,
    pub strict: bool,
    pub opener: Option<Opener>,
}

/// The source of a key's passphrase, if it was not passed as an argument.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Opener {
    Command(Vec<String>),
    /// `SITELINE_PASSPHRASE`.
    Variable,
}

impl Opener {
    /// Prepares [`Opener::passphrase`], which a call may need after it has waited.
    pub(super) fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            Self::Command(_) => import_for_commands(py),
            Self::Variable => Ok(()),
        }
    }

    pub(super) fn passphrase(&self, py: Python<'_>) -> PyResult<Passphrase> {
        match self {
            Self::Command(words) => Ok(Passphrase(printed(py, words)?)),
            Self::Variable => {
                Ok(Passphrase::from(variable_of_pickle(PASSPHRASE).or_raise()?.as_str()))
            }
        }
    }
}

impl KeyPlace {
    pub(super) fn read(&self, py: Python<'_>) -> PyResult<PrivateKey> {
        let source = match &self.path {
            Some(path) => Source::Path(path.clone()),
            None => Source::Variable(variable_of_pickle(PRIVATE_KEY).or_raise()?),
        };
        let passphrase = self.opener.as_ref().map(|opener| opener.passphrase(py)).transpose()?;
        read(py, &source, passphrase, self.strict)
    }
}

/// The key of a credential that was pickled with its `password_command`. It is read, and the command
/// runs, when the first assertion is signed: to load a pickle runs nothing.
pub(super) struct DeferredKey {
    place: KeyPlace,
    kid: String,
    key: Owned<Mutex<Option<PrivateKey>>>,
}

impl DeferredKey {
    pub(super) fn new(place: KeyPlace, kid: &str) -> Self {
        Self { place, kid: kid.to_owned(), key: Owned::empty() }
    }

    fn load(&self) -> Result<PrivateKey> {
        let read = attached(|py| self.place.read(py).map_err(|raised| error_of(py, raised)));
        let key = read.unwrap_or_else(|| {
            Err(Error::new(Kind::ClosedError, "Python is shutting down: no command can run."))
        })?;
        check_kid(&self.kid, &key.public_jwk())?;
        Ok(key)
    }
}

impl Signer for DeferredKey {
    fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>> {
        // One command, however many wait for it.
        let mut key = self.key.get_or_init(Mutex::default).lock();
        let key = match &mut *key {
            Some(key) => key,
            none => none.insert(self.load()?),
        };
        key.sign(signing_input)
    }
}
