pub(crate) use std::path::PathBuf;
pub(crate) use std::sync::Arc;
pub(crate) use std::time::Duration;

pub(crate) use arrow_array::RecordBatch;
pub(crate) use jiff::Timestamp;
pub(crate) use pyo3::exceptions::{PyTypeError, PyValueError};
pub(crate) use pyo3::gc::{PyTraverseError, PyVisit};
pub(crate) use pyo3::intern;
pub(crate) use pyo3::prelude::*;
pub(crate) use pyo3::sync::PyOnceLock;
pub(crate) use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

pub(crate) use crate::bridge::call::Call;
pub(crate) use crate::bridge::errors::{IntoPyErr, OrRaise, raise, warn};
pub(crate) use crate::bridge::events::Events;
pub(crate) use crate::bridge::process::{attached, detached, guarded, without_fork};
pub(crate) use crate::bridge::runtime::{step, step_in_runtime};
pub(crate) use crate::convert::state::{dict, restore};
pub(crate) use crate::convert::values::{
    Given, Text, count, described, duration, handle_of, optional, path_of, quoted, refuse,
};
pub(crate) use siteline_base::clock::Clock;
pub(crate) use siteline_base::lock::Mutex;
pub(crate) use siteline_core::error::{Error, Kind, Result, excerpt};

/// Any Python object.
pub(crate) type Object<'py> = Bound<'py, PyAny>;
