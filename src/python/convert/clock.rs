//! `siteline.Clock`: a clock that a test can move.

use jiff::Timestamp;
use pyo3::prelude::*;

use crate::clock::Clock;
use crate::python::convert::values::{duration, instant};

/// A clock that is moved instead of waited for.
///
/// A sandbox and every client that it hands out share one: ``sandbox.clock.advance("1d")`` moves
/// the service and the clients together, and whoever would sleep on it (a retry's pause) moves it
/// instead of waiting.
///
/// ``Clock()`` runs with the machine's clock underneath; ``Clock("2026-11-08T00:00:00Z")`` stands
/// still at that time until it is advanced.
///
/// >>> clock = siteline.Clock("2026-11-08T00:00:00Z")
/// >>> clock.advance("1d")
/// >>> clock.now().isoformat()
/// '2026-11-09T00:00:00+00:00'
#[pyclass(frozen, name = "Clock", module = "siteline")]
pub(crate) struct PyClock(pub(crate) Clock);

#[pymethods]
impl PyClock {
    #[new]
    #[pyo3(signature = (start=None), text_signature = "(start=None)")]
    fn new(start: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(Self(match start {
            Some(start) => Clock::frozen_at(instant(start, "start")?),
            None => Clock::running(),
        }))
    }

    /// The time that this clock shows, an aware ``datetime`` in UTC.
    fn now(&self) -> Timestamp {
        self.0.wall()
    }

    /// Move the clock forward by seconds, a ``timedelta`` or text such as ``"1d"``.
    fn advance(&self, by: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.advance(duration(by, "by")?);
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<Clock {}>", self.0.wall())
    }
}
