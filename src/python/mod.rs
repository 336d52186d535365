//! The Python layer.
use pyo3::prelude::*;

mod credential;
mod errors;
mod runtime;

#[pymodule(gil_used = false)]
mod _siteline {
    #[pymodule_export]
    use super::credential::{PyCredential, PyPrivateKey};
}
