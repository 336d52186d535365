//! One run: reads page by page, of as many chains at a time as it is told, until everything is read, the
//! allowance is spent, or as many pages were asked for as it may.

use std::any::Any;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;

use super::feed::Feed;
use super::pending_write::NextWrite;
use super::ranges::{Ranges, instant};
use super::report::SyncReport;
use super::run_state::RunState;
use super::settings::SyncSettings;
use super::state::FeedState;
use crate::client::Client;
use crate::client::progress::Progress;
use crate::clock::Clock;
use crate::data::MergeReport;
use crate::error::{Error, Kind, Result};
use crate::fork::Owned;
use crate::http::Deadline;
use crate::lock::Mutex;
use crate::store::{Applied, Target};

/// A run in progress. Each page takes two steps: [`Run::fetch`] waits for the service and may be
/// cancelled at any time, [`Run::apply`] writes. The feeds are locked until the run is dropped.
#[derive(Debug)]
pub struct Run {
    pub(super) client: Client,
    pub(super) target: Arc<dyn Target>,
    pub(super) settings: SyncSettings,
    pub(super) deadline: Deadline,
    /// The monotonic time at which the run began.
    pub(super) begun: Duration,
    /// One call fetches at a time.
    fetching: tokio::sync::Mutex<()>,
    /// One page is written at a time.
    applying: Mutex<()>,
    work: Mutex<RunState>,
    /// Only the process that began the run has them. A forked child leaves them locked: they are its
    /// parent's.
    locks: Owned<Mutex<Vec<Box<dyn Any + Send>>>>,
}

impl Run {
    /// A run of feeds that are locked: loads their states.
    pub(super) fn with_locks(
        client: &Client,
        target: Arc<dyn Target>,
        feeds: &[Feed],
        settings: SyncSettings,
        (locks, deadline): (Vec<Box<dyn Any + Send>>, Deadline),
    ) -> Result<Self> {
        let service = client.base_url().as_str();
        let states = FeedState::load_all(&*target, feeds, service)?;
        let work = RunState::new(states, &settings, client.now())?;
        Ok(Self {
            deadline,
            begun: client.time().clock().monotonic(),
            fetching: tokio::sync::Mutex::default(),
            applying: Mutex::new(()),
            work: Mutex::new(work),
            locks: Owned::new(Mutex::new(locks)),
            client: client.clone(),
            target,
            settings,
        })
    }

    /// Reads until a page, or a change of a chain, is to be applied; `false` where nothing is left to
    /// do. At most [`SyncSettings::concurrency`] pages are asked for and not yet applied. Dropping the
    /// future drops the requests under way and leaves the run as it was. After a rejected cursor there
    /// is no page: the pending write is then that the chain begins again.
    ///
    /// An error of one range alone (a rejected request, a page that cannot be decoded, a cursor that
    /// is rejected repeatedly) does not end the run: the range is skipped, and its error is returned
    /// when everything else has been read. After another error no other page is asked for, and it is
    /// returned when those under way have been applied: they are paid for.
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
                if work.is_writing() {
                    return Ok(true);
                }
                if work.asked() == 0 {
                    return work.take_failure().map_or(Ok(false), Err);
                }
            }
            let (feed, fetched, read_at) = self.arrival().await;
            if let Err(error) = self.arrived(feed, fetched, read_at) {
                self.work().ended.get_or_insert(error);
            }
        }
    }

    /// Applies the first pending write, if there is one. Where the target cannot store the values of a page,
    /// the pending write is then that the range of its chain is set aside.
    pub fn apply(&self) -> Result<Progress> {
        let locks = self.locks()?;
        let _one_at_a_time = self.applying.lock();
        if locks.lock().is_empty() {
            return Err(Error::new(Kind::ClosedError, "this run is over: its feeds are unlocked"));
        }
        if let Some(write) = self.next_write() {
            let delivery = write.delivery();
            match self.target.apply(write.feed(), delivery.as_ref(), &write.state()) {
                Ok(applied) => self.written(write, Some(applied)),
                Err(error) => self.refused(write.feed(), error)?,
            }
        }
        Ok(self.progress())
    }

    /// When the run must end.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The first pending write, for whoever applies it; [`Run::written`] says that it was.
    pub fn next_write(&self) -> Option<NextWrite> {
        let work = self.work();
        let pending = Arc::clone(work.pending.front()?);
        let mut state = work.after(&pending);
        let (skew, clock) = (self.client.time().skew(), self.client.time().clock());
        // Whoever reads the state has the clock of the machine.
        let ahead = || clock.wall().duration_since(Clock::system().wall());
        let ahead = clock.is_manual().then(ahead);
        if skew.is_some() || ahead.is_some() {
            state.skew = (skew.unwrap_or_default() + ahead.unwrap_or_default()).as_secs();
        }
        Some(NextWrite { pending, state })
    }

    /// The first pending write was applied, with these counts; `None` where they are not known.
    pub fn written(&self, write: NextWrite, applied: Option<Applied>) {
        let ended = write.pending.ended(write.state.feed());
        self.work().applied(&write.pending, write.state, applied);
        if let Some((query, pages, points, on_last)) = ended {
            self.client.densities().learn(&query, pages, points, on_last);
        }
    }

    /// Reads and applies everything that is left.
    pub async fn finish(&self) -> Result<SyncReport> {
        while self.fetch().await? {
            self.apply()?;
        }
        self.report()
    }

    /// Adds counts of pages that were written with others of their chain.
    pub fn counted(&self, feed: &str, applied: Applied) {
        self.work().add_counts(feed, applied);
    }

    /// Ends what is under way: the requests that have not been answered, if there are any. Dropping them
    /// may need the runtime. They are their own process's.
    #[must_use]
    pub fn stop(&self) -> Option<impl Send + use<>> {
        let _idle = self.locks().ok().and_then(|_| self.fetching.try_lock().ok())?;
        Some(self.work().take_requests()).filter(|requests| !requests.is_empty())
    }

    /// Ends the run: unlocks the feeds, also where other references to the run exist.
    pub fn release(&self) {
        if let Ok(locks) = self.locks() {
            let _one_at_a_time = self.applying.lock();
            locks.lock().clear();
        }
    }

    /// Stores the states of feeds without a page that the target does not know yet, so that after a
    /// complete sync the target has every feed.
    pub fn keep(&self) -> Result<()> {
        for (feed, state) in self.new_states()? {
            self.target.apply(&feed, None, &state)?;
        }
        Ok(())
    }

    /// The states of feeds without a page that the target does not know yet, by their names.
    pub fn new_states(&self) -> Result<Vec<(String, Vec<u8>)>> {
        self.check_process()?;
        let new = self.work().without_a_page();
        let names: Vec<&str> = new.iter().map(|state| state.feed().name()).collect();
        let known = self.target.states(&names)?;
        let unknown = new.iter().zip(known).filter(|(_, known)| known.is_none());
        Ok(unknown.map(|(state, _)| (state.feed().name().to_owned(), state.to_bytes())).collect())
    }

    /// What the run has done so far.
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

    /// What the chains of a feed have read to their end.
    pub(super) fn read_of(&self, feed: &str) -> Ranges {
        let work = self.work();
        let part = work.parts.iter().find(|part| part.state.feed().name() == feed);
        part.map_or_else(Ranges::none, |part| part.done.clone())
    }

    /// When the oldest chain began that has ended and did not settle what it read.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        self.work().oldest.map(instant)
    }

    /// What was counted on the pages: what came again is counted against what the target had.
    pub(super) fn merge_report(&self) -> MergeReport {
        let work = self.work();
        let applied =
            work.reports().iter().map(|feed| feed.applied).fold(Applied::default(), Applied::plus);
        MergeReport {
            quality: work.quality.clone(),
            pages: work.pages,
            points_read: work.points,
            repeated: applied.unchanged,
            revised: applied.revised,
            ..MergeReport::default()
        }
    }

    /// How many points of each feed it has given other values.
    #[must_use]
    pub fn revised(&self) -> Vec<(String, u64)> {
        let reports = self.work().reports();
        reports.into_iter().map(|feed| (feed.name, feed.applied.revised)).collect()
    }

    /// The progress of the run: applied pages and points, and the pages that the plan expects. The
    /// fraction is unknown before the end.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let work = self.work();
        let (left, done) = work.left();
        Progress {
            pages: work.pages,
            points: work.points,
            requests: work.requests(),
            allowance_left: self.client.allowance_left(),
            newest: work.newest.and_then(|newest| Timestamp::from_microsecond(newest).ok()),
            fraction: done.then_some(1.0),
            done,
            pages_expected: left.map(|left| work.pages.saturating_add(left)),
        }
    }

    /// Refuses a forked child: two processes with one run would spend the allowance twice.
    pub fn check_process(&self) -> Result<()> {
        self.locks().map(|_| ())
    }

    fn locks(&self) -> Result<&Mutex<Vec<Box<dyn Any + Send>>>> {
        self.locks.get().ok_or_else(|| {
            let message = "this sync was begun by the parent process, before the fork";
            Error::new(Kind::ForkError, message).with_hint("Begin a new sync in the child.")
        })
    }

    pub(super) fn work(&self) -> MutexGuard<'_, RunState> {
        self.work.lock()
    }
}
