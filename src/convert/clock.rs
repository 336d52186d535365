//! `siteline.Clock`: a clock that a test can move.

use jiff::{SignedDuration, Timestamp};
use pyo3::prelude::*;

use crate::convert::patching::methods_can_be_replaced;
use crate::convert::values::{duration, instant};
use siteline_base::clock::Clock;

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
#[pyclass(dict, frozen, weakref, name = "Clock", module = "siteline")]
pub(crate) struct PyClock(pub(crate) Clock);

methods_can_be_replaced!(PyClock);

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

    /// Set the wall clock forward by a ``timedelta``, or back by a negative one, as an administrator
    /// does: no time passes. On a sandbox's own clock the service's time jumps.
    fn step(&self, by: SignedDuration) {
        self.0.step(by);
    }

    /// The clock of a machine that was just started, whose wall clock shows ``wall``: time passes on
    /// it as on this one, and each is stepped on its own. For a client whose machine's clock is wrong.
    ///
    /// >>> clock = siteline.Clock("2026-11-08T00:00:00Z")
    /// >>> wrong = clock.machine("2000-01-01")
    /// >>> clock.advance("1d")
    /// >>> wrong.now().isoformat()
    /// '2000-01-02T00:00:00+00:00'
    fn machine(&self, wall: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(self.0.of_machine(instant(wall, "wall")?)))
    }

    fn __repr__(&self) -> String {
        format!("<Clock {}>", self.0.wall())
    }
}
