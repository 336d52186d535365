//! A manual clock that processes share. Each movement, and each sleep on it, is visible to all at once.
//!
//! A process has one [`Clock`] for each file, so its clients share tokens (`Clock::is_same`), and a
//! client in the sandbox's process uses the sandbox's clock.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use super::movements::{Movement, Movements};
use super::{Clock, Source};
use crate::lock::Mutex;

/// By file.
static SHARED: Mutex<Vec<(PathBuf, Weak<Source>)>> = Mutex::new(Vec::new());

impl Clock {
    /// Shares this clock with other processes, which open it with [`Clock::of_file`]. Returns the
    /// file. Fails with `Unsupported` for the system clock.
    pub fn share(&self) -> io::Result<PathBuf> {
        let manual = self.0.manual.as_ref().ok_or(ErrorKind::Unsupported)?;
        let mut shared = SHARED.lock();
        let path = {
            let mut manual = manual.lock();
            let stands_since = manual.stands_since;
            manual.movements.share(stands_since)?
        };
        remember(&mut shared, &path, self);
        Ok(path)
    }

    /// The clock that another process shares by this file.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut shared = SHARED.lock();
        let known = shared.iter().find(|(known, _)| known == path);
        if let Some(source) = known.and_then(|(_, source)| source.upgrade()) {
            return Ok(Self(source));
        }
        let (stands_since, movements) = Movements::of_file(path)?;
        let clock = Self::manual(stands_since, movements);
        remember(&mut shared, path, &clock);
        Ok(clock)
    }

    /// Removes the file, in the process that called [`Clock::share`]. Each process keeps the time that it
    /// has read last, and moves it separately.
    pub fn unshare(&self) {
        SHARED.lock().retain(|(_, source)| !std::ptr::eq(source.as_ptr(), Arc::as_ptr(&self.0)));
        if let Some(manual) = &self.0.manual {
            manual.lock().movements.unshare();
        }
    }

    /// Calls [`Clock::unshare`] for every clock, at the end of the process.
    pub fn unshare_all() {
        let shared = std::mem::take(&mut *SHARED.lock());
        for source in shared.iter().filter_map(|(_, source)| source.upgrade()) {
            Self(source).unshare();
        }
    }

    /// Whether the clock shows the system time: it is not manual, or runs and was never moved.
    #[must_use]
    pub fn shows_system_time(&self) -> bool {
        self.0.manual.as_ref().is_none_or(|manual| {
            let mut manual = manual.lock();
            manual.stands_since.is_none() && manual.movements.sum() == Movement::default()
        })
    }
}

fn remember(shared: &mut Vec<(PathBuf, Weak<Source>)>, path: &Path, clock: &Clock) {
    shared.retain(|(known, source)| known != path && source.strong_count() > 0);
    shared.push((path.to_owned(), Arc::downgrade(&clock.0)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::{SignedDuration, Timestamp};
    use std::fs;
    use std::time::Duration;

    const DAY: Duration = Duration::from_secs(86_400);

    fn frozen() -> Clock {
        Clock::frozen_at("2026-11-20T00:00:00.5Z".parse().expect("a time"))
    }

    /// A separate clock on the same file, as in another process.
    fn elsewhere(path: &Path) -> Clock {
        let (stands_since, movements) = Movements::of_file(path).expect("a clock");
        Clock::manual(stands_since, movements)
    }

    #[tokio::test]
    async fn r19_movements_reach_every_process_at_once() {
        let clock = frozen();
        clock.advance(DAY);
        let path = clock.share().expect("a file");
        let other = elsewhere(&path);
        let both = |expected: &str, monotonic: Duration| {
            let expected: Timestamp = expected.parse().expect("a time");
            for clock in [&clock, &other] {
                assert_eq!((clock.wall(), clock.monotonic()), (expected, monotonic));
            }
        };
        both("2026-11-21T00:00:00.5Z", DAY);
        clock.advance(DAY);
        both("2026-11-22T00:00:00.5Z", 2 * DAY);
        other.advance(Duration::from_nanos(1));
        both("2026-11-22T00:00:00.500000001Z", 2 * DAY + Duration::from_nanos(1));
        clock.step(SignedDuration::from_millis(-1_500));
        both("2026-11-21T23:59:59.000000001Z", 2 * DAY + Duration::from_nanos(1));
        other.sleep(DAY).await;
        both("2026-11-22T23:59:59.000000001Z", 3 * DAY + Duration::from_nanos(1));
    }

    #[test]
    fn r19_movements_of_many_processes_at_the_same_time_all_count() {
        let clock = frozen();
        let path = clock.share().expect("a file");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let other = elsewhere(&path);
                    (0..200).for_each(|_| other.advance(Duration::from_secs(1)));
                });
            }
        });
        assert_eq!(clock.monotonic(), Duration::from_secs(1_600));
    }

    #[test]
    fn r19_a_clock_that_runs_is_shared_too() {
        let clock = Clock::running();
        let path = clock.share().expect("a file");
        let other = elsewhere(&path);
        assert!(clock.shows_system_time() && other.shows_system_time());
        clock.advance(DAY);
        assert!(!other.shows_system_time() && !frozen().shows_system_time());
        let now = || Clock::system().wall() + DAY;
        let (before, shown, after) = (now(), other.wall(), now());
        let [early, late] = [shown.duration_since(before), after.duration_since(shown)];
        assert!(early.as_secs() >= 0 && late.as_secs() >= 0, "{before} {shown} {after}");
        assert!(other.monotonic() >= DAY);
    }

    #[test]
    fn r19_the_file_ends_with_its_clock_and_what_was_read_stays() {
        let clock = frozen();
        let path = clock.share().expect("a file");
        assert_eq!(clock.share().expect("the same file"), path);
        assert!(Clock::of_file(&path).expect("a clock").is_same(&clock));
        let other = elsewhere(&path);
        other.unshare();
        assert!(path.exists(), "another process does not remove it");
        clock.advance(DAY);
        assert_eq!(other.monotonic(), DAY);
        clock.unshare();
        assert!(!path.exists() && !path.parent().expect("a folder").exists());
        for clock in [&clock, &other] {
            clock.advance(DAY);
            assert_eq!(clock.monotonic(), 2 * DAY);
        }
        assert!(Clock::of_file(&path).is_err());
        assert_eq!(elsewhere(&clock.share().expect("another file")).monotonic(), 2 * DAY);
    }

    #[cfg(unix)]
    #[test]
    fn r19_only_this_user_can_read_the_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let clock = frozen();
        let path = clock.share().expect("a file");
        let mode = |path: &Path| path.metadata().expect("metadata").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    }

    #[test]
    fn r19_other_files_are_no_clocks_and_damaged_lines_do_not_count() {
        let clock = frozen();
        let path = clock.share().expect("a file");
        let folder = path.parent().expect("a folder");
        for text in ["", "siteline-clock 1 runs", "siteline-clock 1 stands soon\n", "[default]\n"] {
            let other = folder.join("other");
            fs::write(&other, text).expect("written");
            assert!(Clock::of_file(&other).is_err(), "{text:?}");
            fs::remove_file(other).expect("removed");
        }
        assert!(Clock::of_file(folder).is_err());
        assert!(Clock::system().share().is_err());
        let text = fs::read_to_string(&path).expect("text");
        let more =
            "9223372036854775807 1000000000 0 0\n1 0 1\n-1 2 3 4 5\nnonsense\n7 0 7 0\n8 0 8";
        fs::write(&path, text + more).expect("written");
        assert_eq!(clock.monotonic(), Duration::from_secs(7), "the last line has no end yet");
    }
}
