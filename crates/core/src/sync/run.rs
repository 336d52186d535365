//! A run reads the planned chains until everything is read, the allowance is used up, or the page
//! limit is reached.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;

use super::begin::Locks;
use super::feed::Feed;
use super::pending_write::TargetWrite;
use super::report::SyncReport;
use super::run_state::RunState;
use super::settings::SyncSettings;
use super::state::FeedState;
use crate::client::Client;
use crate::client::progress::Progress;
use crate::clock::Clock;
use crate::data::MergeReport;
use crate::data::ranges::{Ranges, instant};
use crate::error::{Error, Kind, Result};
use crate::fork::Owned;
use crate::http::Deadline;
use crate::lock::Mutex;
use crate::store::{Applied, Target};

/// [`Run::fetch`] waits for the service and can be cancelled at any time, and [`Run::apply`]
/// writes. The run holds the locks of its feeds.
#[derive(Debug)]
pub struct Run {
    pub(super) client: Client,
    pub(super) target: Arc<dyn Target>,
    pub(super) settings: SyncSettings,
    pub(super) deadline: Deadline,
    pub(super) begun: Duration,
    /// Held by the one call that fetches.
    fetching: tokio::sync::Mutex<()>,
    work: Mutex<RunState>,
    /// Held by the one call that writes. A forked child does not release the locks of its parent.
    locks: Owned<Mutex<Locks>>,
}

impl Run {
    pub(super) fn with_locks(
        client: &Client,
        target: Arc<dyn Target>,
        feeds: &[Feed],
        settings: SyncSettings,
        (locks, deadline): (Locks, Deadline),
    ) -> Result<Self> {
        let service = client.base_url().as_str();
        let states = FeedState::load_all(&*target, feeds, service)?;
        let work = RunState::new(states, &settings, client.now())?;
        Ok(Self {
            deadline,
            begun: client.time().clock().monotonic(),
            fetching: tokio::sync::Mutex::default(),
            work: Mutex::new(work),
            locks: Owned::new(Mutex::new(locks)),
            client: client.clone(),
            target,
            settings,
        })
    }

    /// Reads until a page, or a change of a chain, is ready to be applied. Returns `false` if
    /// nothing is left to do. Dropping the future drops the requests in flight and leaves the run
    /// unchanged. A rejected cursor yields no page: the pending write then restarts the chain.
    ///
    /// An error of one range (a rejected request, a page that cannot be decoded, a cursor that is
    /// rejected repeatedly) does not end the run. The range is skipped, and the error is returned
    /// after everything else has been read. After any other error the run sends no more requests.
    /// It first applies the pages in flight, because they are paid for.
    pub async fn fetch(&self) -> Result<bool> {
        self.check_process()?;
        let _one_at_a_time = self.fetching.lock().await;
        loop {
            self.work().log_warnings();
            self.close_unstorable();
            let may_send = self.work().ended.is_none();
            if may_send && let Err(error) = self.send_requests() {
                self.work().ended = Some(error);
            }
            {
                let mut work = self.work();
                if !work.pending.is_empty() {
                    return Ok(true);
                }
                if work.asked() == 0 {
                    let failure = work.ended.take().or_else(|| work.failure.take());
                    return failure.map_or(Ok(false), Err);
                }
            }
            let (feed, fetched, read_at) = self.arrival().await;
            if let Err(error) = self.arrived(feed, fetched, read_at) {
                self.work().ended.get_or_insert(error);
            }
        }
    }

    /// Applies the first pending write, if there is one. If the target cannot store the values of a
    /// page, the next pending write sets the range of its chain aside.
    pub fn apply(&self) -> Result<Progress> {
        let locks = self.locks()?.lock();
        if locks.is_empty() {
            return Err(Error::new(Kind::ClosedError, "this run is over: its feeds are unlocked"));
        }
        if let Some(write) = self.next_write() {
            match self.target.apply(&write.feed, write.delivery.as_ref(), &write.state) {
                Ok(applied) => self.written(write, Some(applied)),
                Err(error) => self.refused(&write.feed, error)?,
            }
        }
        Ok(self.progress())
    }

    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The first pending write. Call [`Run::written`] after it has been stored.
    pub fn next_write(&self) -> Option<TargetWrite> {
        let work = self.work();
        let pending = work.pending.front()?;
        let mut state = work.after(pending);
        let (skew, clock) = (self.client.time().skew(), self.client.time().clock());
        // A manual clock differs from the machine's clock, which readers of the state use.
        let ahead = || clock.wall().duration_since(Clock::system().wall());
        let ahead = clock.is_manual().then(ahead);
        if skew.is_some() || ahead.is_some() {
            state.skew = (skew.unwrap_or_default() + ahead.unwrap_or_default()).as_secs();
        }
        Some(pending.target_write(state))
    }

    /// Notes that a write was stored, with these counts; `None` if they are unknown.
    pub fn written(&self, write: TargetWrite, applied: Option<Applied>) {
        let mut work = self.work();
        let Some(state) = write.completes else {
            // The run has already counted these pages, but not their points.
            if write.delivery.is_some() {
                work.add_counts(&write.feed, applied.unwrap_or_default());
            }
            return;
        };
        let Some(pending) = work.pending.pop_front() else { return };
        let ended = pending.ended(state.feed());
        work.applied(&pending, state, applied);
        drop(work);
        if let Some((query, pages, points, on_last)) = ended {
            self.client.densities().learn(&query, pages, points, on_last);
        }
    }

    /// Takes the unanswered requests of this process, if any. Dropping them may need the runtime.
    #[must_use]
    pub fn stop(&self) -> Option<impl Send + use<>> {
        let _idle = self.locks().ok().and_then(|_| self.fetching.try_lock().ok())?;
        Some(self.work().take_requests()).filter(|requests| !requests.is_empty())
    }

    /// Ends the run and unlocks its feeds, even if other references to the run exist.
    pub fn release(&self) {
        if let Ok(locks) = self.locks() {
            locks.lock().clear();
        }
    }

    /// Stores the states of feeds without a page, so that the target contains every feed.
    pub fn keep(&self) -> Result<()> {
        for TargetWrite { feed, state, .. } in self.new_states()? {
            self.target.apply(&feed, None, &state)?;
        }
        Ok(())
    }

    /// The states of feeds without a page that the target does not contain yet.
    pub fn new_states(&self) -> Result<Vec<TargetWrite>> {
        self.check_process()?;
        let work = self.work();
        let states = work.parts.iter().map(|part| &part.state);
        let new: Vec<FeedState> = states.filter(|state| state.sequence() == 0).cloned().collect();
        drop(work);
        let names: Vec<&str> = new.iter().map(|state| state.feed().name()).collect();
        let known = self.target.states(&names)?;
        let unknown = new.iter().zip(known).filter(|(_, known)| known.is_none());
        Ok(unknown.map(|(state, _)| TargetWrite::from_state(state)).collect())
    }

    pub fn report(&self) -> Result<SyncReport> {
        self.check_process()?;
        let allowance = self.client.allowance()?;
        let work = self.work();
        let tasks = work.tasks();
        let is_left = !tasks.is_empty();
        let (ended_by, resumes_at) =
            if is_left { work.ended_by(&allowance) } else { Default::default() };
        Ok(SyncReport {
            feeds: work.reports(),
            requests: work.requests(),
            complete: !is_left,
            ended_by,
            resumes_at,
            tasks,
            allowance,
            now: work.now,
        })
    }

    /// The ranges of a feed that this run has read to the end of a chain.
    pub(super) fn read_of(&self, feed: &str) -> Ranges {
        let work = self.work();
        let part = work.parts.iter().find(|part| part.state.feed().name() == feed);
        part.map_or_else(Ranges::none, |part| part.done.clone())
    }

    /// The beginning of the oldest chain that ended without settling its range.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        self.work().oldest.map(instant)
    }

    /// Repeated points are counted against the points in the target.
    pub(super) fn merge_report(&self) -> MergeReport {
        let work = self.work();
        let applied =
            work.reports().iter().map(|feed| feed.applied).fold(Applied::default(), Applied::plus);
        MergeReport { repeated: applied.unchanged, revised: applied.revised, ..work.read.clone() }
    }

    /// The number of points of each feed that received other values.
    #[must_use]
    pub fn revised(&self) -> Vec<(String, u64)> {
        let reports = self.work().reports();
        reports.into_iter().map(|feed| (feed.name, feed.applied.revised)).collect()
    }

    /// Applied pages and points, and the pages that the plan expects. The fraction is unknown until
    /// the end.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let work = self.work();
        let (expected, done) = work.expected_pages();
        Progress {
            pages: work.read.pages,
            points: work.read.points_read,
            requests: work.requests(),
            allowance_left: self.client.allowance_left(),
            newest: work.newest.and_then(|newest| Timestamp::from_microsecond(newest).ok()),
            fraction: done.then_some(1.0),
            done,
            pages_expected: expected.map(|expected| work.read.pages.saturating_add(expected)),
        }
    }

    /// Rejects a forked child: two processes with one run would spend the allowance twice.
    pub fn check_process(&self) -> Result<()> {
        self.locks().map(|_| ())
    }

    fn locks(&self) -> Result<&Mutex<Locks>> {
        self.locks.get().ok_or_else(|| {
            let message = "the parent process began this sync before the fork";
            Error::new(Kind::ForkError, message).with_hint("Start a new sync in the child process.")
        })
    }

    pub(super) fn work(&self) -> MutexGuard<'_, RunState> {
        self.work.lock()
    }
}
