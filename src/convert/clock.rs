use jiff::SignedDuration;

use crate::convert::asked_time::instant_before;
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

    fn step(&self, by: SignedDuration) {
        self.0.step(by);
    }

    fn machine(&self, wall: &Object<'_>) -> PyResult<Self> {
        Ok(Self(self.0.of_machine(on_clock(&self.0, wall, "wall")?)))
    }
}

pub(crate) fn on_clock(clock: &Clock, given: &Object<'_>, name: &str) -> PyResult<Timestamp> {
    instant_before(given, name, None, || Ok(clock.wall()))
}
