use std::ops::Neg as _;

use jiff::SignedDuration;
use jiff::tz::TimeZone;

use crate::convert::asked_time::instant_before;
use crate::convert::values::seconds;
use crate::prelude::*;

#[pyclass(frozen, name = "ClockHandle", module = "siteline._core")]
pub(crate) struct PyClock(pub(crate) Clock);

#[pymethods]
impl PyClock {
    #[new]
    fn new(start: Option<&Object<'_>>) -> PyResult<Self> {
        let running = Clock::running();
        let Some(start) = start else { return Ok(Self(running)) };
        Ok(Self(Clock::frozen_at(on_clock(&running, start, "start")?)))
    }

    fn now(&self) -> Timestamp {
        self.0.wall()
    }

    fn advance(&self, by: &Object<'_>) -> PyResult<()> {
        self.0.advance(duration(by, "by")?);
        Ok(())
    }

    /// A step back is negative.
    fn step(&self, by: &Object<'_>) -> PyResult<()> {
        let is_back = seconds(by)?.is_some_and(|seconds| seconds < 0.0);
        let length = if is_back { duration(&by.neg()?, "by") } else { duration(by, "by") }?;
        let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
        self.0.step(if is_back { length.neg() } else { length });
        Ok(())
    }

    fn machine(&self, wall: &Object<'_>) -> PyResult<Self> {
        Ok(Self(self.0.of_machine(on_clock(&self.0, wall, "wall")?)))
    }
}

pub(crate) fn on_clock(clock: &Clock, given: &Object<'_>, name: &str) -> PyResult<Timestamp> {
    instant_before(given, name, &TimeZone::UTC, || Ok(clock.wall()))
}
