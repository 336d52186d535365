//! [`BootTime`]: the time since the machine started. Steps of the wall clock do not change it, and all
//! processes of the machine share it.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The time since a machine started, including sleep. Times of the same start can be compared, across
/// processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootTime {
    /// Identifies the machine and its start.
    pub start: u128,
    pub elapsed: Duration,
}

impl BootTime {
    /// The time of this machine, or since the start of the process if the system does not provide it.
    pub(super) fn of_system() -> Self {
        static START: LazyLock<(u128, Instant)> =
            LazyLock::new(|| (system::start().unwrap_or_else(new_start), Instant::now()));
        let (start, begun) = &*START;
        Self { start: *start, elapsed: system::elapsed().unwrap_or_else(|| begun.elapsed()) }
    }

    /// The nanoseconds from another time of the same start to this one; negative if the other is later.
    /// `None` for times of different starts.
    #[must_use]
    pub fn since(self, earlier: Self) -> Option<i128> {
        let nanoseconds = |time: Self| i128::try_from(time.elapsed.as_nanos()).unwrap_or(i128::MAX);
        (self.start == earlier.start).then(|| nanoseconds(self) - nanoseconds(earlier))
    }
}

pub(super) fn new_start() -> u128 {
    Uuid::new_v4().as_u128()
}

#[cfg(target_os = "linux")]
mod system {
    use std::time::Duration;

    use nix::time::{ClockId, clock_gettime};
    use uuid::Uuid;

    /// The kernel's name for this start. A namespace may shift the time, so it has its own start.
    pub(super) fn start() -> Option<u128> {
        elapsed()?;
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let boot = Uuid::parse_str(text.trim()).ok()?.as_u128();
        let namespace = std::fs::read_link("/proc/self/ns/time").ok();
        let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
        let namespace = namespace.and_then(|name| digits(&name.to_string_lossy()).parse().ok());
        Some(boot ^ namespace.unwrap_or(0))
    }

    pub(super) fn elapsed() -> Option<Duration> {
        clock_gettime(ClockId::CLOCK_BOOTTIME).ok().map(Duration::from)
    }
}

/// On other systems each process has its own start. Windows provides the time since its start only to
/// C.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::time::Duration;

    pub(super) fn start() -> Option<u128> {
        None
    }

    pub(super) fn elapsed() -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b14_the_time_since_the_start_only_grows_and_is_of_one_start() {
        let (first, second) = (BootTime::of_system(), BootTime::of_system());
        assert!(second.since(first).is_some_and(|passed| passed >= 0));
        assert_eq!(first.since(BootTime { start: new_start(), ..first }), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn b14_processes_of_a_machine_have_one_start() {
        assert_eq!(system::start(), Some(BootTime::of_system().start));
        assert!(system::elapsed().is_some_and(|elapsed| elapsed > Duration::ZERO));
    }
}
