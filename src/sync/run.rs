//! One run: reads chain after chain, page by page, until everything is read or the allowance is
//! spent.

use std::any::Any;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::feed::Feed;
use super::pending_write::{PendingWrite, after_dead_cursor};
use super::plan::PlanStep;
use super::report::SyncReport;
use super::run_state::RunState;
use super::settings::SyncSettings;
use super::state::FeedState;
use super::unfinished::UnfinishedChain;
use crate::client::page_request::Sender;
use crate::client::progress::Progress;
use crate::client::{Client, Spending};
use crate::clock::{CORRECTED_SKEW, NOTICED_SKEW};
use crate::data::{Bookmark, Chain, DecodeSettings, Page, ends_chain};
use crate::error::{Error, Kind, Result};
use crate::fork::Owned;
use crate::http::Deadline;
use crate::lock::Mutex;
use crate::store::Target;

/// A run in progress. Each page takes two steps: [`Run::fetch`] waits for the service and may be
/// cancelled at any time, [`Run::apply`] writes. The feeds are locked until the run is dropped.
#[derive(Debug)]
pub struct Run {
    client: Client,
    target: Arc<dyn Target>,
    settings: SyncSettings,
    deadline: Deadline,
    /// The monotonic time at which the run began.
    begun: Duration,
    following: tokio::sync::Mutex<Option<Following>>,
    /// One page is written at a time.
    applying: Mutex<()>,
    work: Mutex<RunState>,
    /// Only the process that began the run has them. A forked child leaves them locked: they are its
    /// parent's.
    locks: Owned<Mutex<Vec<Box<dyn Any + Send>>>>,
}

/// The chain that is being followed.
#[derive(Debug)]
struct Following {
    chain: Chain,
    feed: usize,
    record: UnfinishedChain,
    begun_here: bool,
    spending: Arc<Spending>,
}

/// The moment before a request, by two clocks. The greater elapsed time counts: a monotonic clock
/// may stop while the machine sleeps.
#[derive(Debug, Clone, Copy)]
struct SentAt {
    monotonic: Duration,
    wall: Timestamp,
}

impl Run {
    /// A run of feeds that are locked: loads their states.
    ///
    /// # Errors
    /// `FeedChanged`, `StoreError`s, `QueryError`.
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
            following: tokio::sync::Mutex::new(None),
            applying: Mutex::new(()),
            work: Mutex::new(work),
            locks: Owned::new(Mutex::new(locks)),
            client: client.clone(),
            target,
            settings,
        })
    }

    /// Reads the next page, unless a write is pending already; `false` where nothing is left to do.
    /// Dropping the future leaves the run as it was. After a rejected cursor there is no page: the
    /// pending write is then that the chain begins again.
    ///
    /// An error of one range alone (a rejected request, a page that cannot be decoded, a cursor that
    /// is rejected repeatedly) does not end the run: the range is skipped, and its error is returned
    /// when everything else has been read.
    ///
    /// # Errors
    /// Those of a read; the run can continue after them. `ClockSkewError` where the clocks of the
    /// service and of this machine differ by more than can be corrected; `ForkError` in a forked
    /// child.
    pub async fn fetch(&self) -> Result<bool> {
        self.check_process()?;
        let mut current = self.following.lock().await;
        loop {
            self.work().log_warnings();
            if self.work().pending.is_some() {
                return Ok(true);
            }
            if current.is_none() {
                let Some(step) = self.next_step()? else {
                    return self.work().take_failure().map_or(Ok(false), Err);
                };
                *current = self.open_chain(&step)?;
            }
            let Some(following) = current.as_mut() else { continue };
            let sent = self.sent();
            let sender = Sender {
                client: &self.client,
                deadline: self.deadline,
                spending: &following.spending,
            };
            match following.chain.next(&sender).await {
                Ok(Some(page)) => {
                    let (feed, is_last) = (following.feed, page.is_last);
                    let kept = self.keep_page(following, page, sent);
                    if is_last || kept.is_err() {
                        *current = None;
                        self.work().chain_over(feed);
                    }
                    kept?;
                }
                Ok(None) => {
                    self.work().chain_over(following.feed);
                    *current = None;
                }
                Err(error) => {
                    let feed = following.feed;
                    if self.end_chain(following, error)? {
                        *current = None;
                        self.work().chain_over(feed);
                    }
                }
            }
        }
    }

    /// Applies the pending write, if there is one.
    ///
    /// # Errors
    /// `StoreError`s; the write stays pending.
    pub fn apply(&self) -> Result<Progress> {
        let locks = self.locks()?;
        let _one_at_a_time = self.applying.lock();
        if locks.lock().is_empty() {
            return Err(Error::new(Kind::ClosedError, "this run is over: its feeds are unlocked"));
        }
        let (pending, state) = {
            let work = self.work();
            let Some(pending) = work.pending.clone() else {
                drop(work);
                return Ok(self.progress());
            };
            let state = work.after(&pending);
            (pending, state)
        };
        let feed = state.feed().clone();
        let delivery = pending.delivery(&feed);
        let applied = self.target.apply(feed.name(), delivery.as_ref(), &state.to_bytes())?;
        self.work().applied(&pending, state, applied);
        if let Some((query, pages, points, on_last)) = pending.ended(&feed) {
            self.client.densities().learn(&query, pages, points, on_last);
        }
        Ok(self.progress())
    }

    /// Reads and applies everything that is left.
    ///
    /// # Errors
    /// As [`Run::fetch`] and [`Run::apply`].
    pub async fn finish(&self) -> Result<SyncReport> {
        while self.fetch().await? {
            self.apply()?;
        }
        self.report()
    }

    /// Ends the run: unlocks the feeds, also where other references to the run exist.
    pub(crate) fn release(&self) {
        if let Ok(locks) = self.locks() {
            let _one_at_a_time = self.applying.lock();
            locks.lock().clear();
        }
    }

    /// Saves the states of feeds without a page that the target does not know yet, so that after a
    /// complete sync the target has every feed.
    ///
    /// # Errors
    /// `ForkError` in a forked child; those of the target.
    pub fn keep(&self) -> Result<()> {
        self.check_process()?;
        let new = self.work().without_a_page();
        let names: Vec<&str> = new.iter().map(|state| state.feed().name()).collect();
        let known = self.target.states(&names)?;
        for (state, _) in new.iter().zip(known).filter(|(_, known)| known.is_none()) {
            self.target.apply(state.feed().name(), None, &state.to_bytes())?;
        }
        Ok(())
    }

    /// What the run has done so far.
    ///
    /// # Errors
    /// `ForkError` in a forked child; those of the ledger.
    pub fn report(&self) -> Result<SyncReport> {
        self.check_process()?;
        let allowance = self.client.allowance()?;
        let work = self.work();
        let todo = work.todo();
        Ok(SyncReport {
            feeds: work.reports(),
            requests: work.requests(),
            complete: todo.is_empty(),
            resumes_at: if todo.is_empty() { None } else { work.resumes_at(&allowance) },
            todo,
            allowance,
            now: work.now,
        })
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
            allowance_left: self.client.allowance().ok().and_then(|state| state.left),
            newest: work.newest.and_then(|newest| Timestamp::from_microsecond(newest).ok()),
            fraction: done.then_some(1.0),
            done,
            pages_expected: left.map(|left| work.pages.saturating_add(left)),
        }
    }

    /// Refuses a forked child: two processes with one run would spend the allowance twice.
    ///
    /// # Errors
    /// `ForkError` in a forked child.
    pub fn check_process(&self) -> Result<()> {
        self.locks().map(|_| ())
    }

    fn locks(&self) -> Result<&Mutex<Vec<Box<dyn Any + Send>>>> {
        self.locks.get().ok_or_else(|| {
            let message = "this sync was begun by the parent process, before the fork";
            Error::new(Kind::ForkError, message).with_hint("Begin a new sync in the child.")
        })
    }

    fn work(&self) -> MutexGuard<'_, RunState> {
        self.work.lock()
    }

    /// Plans for the same time, or for the service's time once a reply has shown another one.
    fn next_step(&self) -> Result<Option<PlanStep>> {
        let mut work = self.work();
        let (clock, mut now) = (self.client.now(), work.now);
        if self.settings.now.is_none() {
            let passed = self.client.time().clock().monotonic().saturating_sub(self.begun);
            let learnt = clock.checked_sub(passed).unwrap_or(clock);
            if learnt.duration_since(now).abs() > NOTICED_SKEW {
                now = learnt;
            }
        }
        work.set_times(clock, now);
        work.next(|| self.client.allowance())
    }

    /// The chain of a step, at its start or at its bookmark. `None` where that bookmark is refused:
    /// the pending write is then that the chain begins again.
    fn open_chain(&self, step: &PlanStep) -> Result<Option<Following>> {
        let mut work = self.work();
        let record = work.chain(step);
        let state = work.state(step.feed);
        let (start, end) = step.range.instants();
        let query = state.feed().query_of(step.range)?;
        self.client.listed().log_missing(&query);
        let settings = DecodeSettings::for_query(&query, self.settings.shape.clone(), Vec::new())?;
        let (settings, origin) = (Arc::new(settings), self.client.origin());
        let chain = match &record.bookmark {
            None => Ok(Chain::new(query, settings, &origin, None)),
            Some(text) => Bookmark::from_text(text)
                .and_then(|bookmark| Chain::resume(query, settings, &origin, None, &bookmark)),
        };
        let expected = state.density.pages(step.range.seconds());
        let chain = match chain {
            Ok(chain) => chain.starting_at(state.next_sequence).expecting(expected, record.idle),
            Err(error) => {
                let now = self.client.now();
                work.pending = Some(Arc::new(after_dead_cursor(step.feed, &record, error, now)));
                work.chain_over(step.feed);
                return Ok(None);
            }
        };
        log::info!(
            target: "siteline::sync", feed = state.feed().name();
            "{}: {} {start} to {end}", state.feed().name(), step.why
        );
        let begun_here = record.bookmark.is_none();
        let spending = work.spending(step.feed);
        Ok(Some(Following { chain, feed: step.feed, record, begun_here, spending }))
    }

    /// Makes the page the pending write.
    fn keep_page(&self, following: &mut Following, page: Page, sent: SentAt) -> Result<()> {
        self.check_skew()?;
        let record = &mut following.record;
        if record.began.is_none() {
            record.began = Some(self.service_second(sent));
            record.first = page.sequence;
        }
        record.pages += 1;
        record.points += page.rows() as u64;
        record.idle = following.chain.idle();
        record.bookmark = page.bookmark.as_ref().map(Bookmark::to_text);
        let pending = PendingWrite::Page {
            feed: following.feed,
            page: Box::new(page),
            read_at: self.client.now(),
            chain: record.clone(),
            begun_here: following.begun_here,
        };
        self.work().pending = Some(Arc::new(pending));
        Ok(())
    }

    /// Handles a failed request of a chain. True where the chain ends here; the error is returned
    /// where the chain can repeat the request.
    fn end_chain(&self, following: &Following, error: Error) -> Result<bool> {
        let Following { feed, record, .. } = following;
        if record.pages > 0 && ends_chain(&error) {
            let now = self.client.now();
            self.work().pending = Some(Arc::new(after_dead_cursor(*feed, record, error, now)));
            return Ok(true);
        }
        match error.kind() {
            Kind::RequestRejected if self.may_be_too_long(following, &error) => {
                let range = record.range();
                self.work().pending = Some(Arc::new(PendingWrite::TooLong { feed: *feed, range }));
                Ok(true)
            }
            Kind::AllowanceExhausted => {
                let allowance = self.client.allowance()?;
                self.work().refused(*feed, record, &allowance, error.context().retry_at);
                Ok(true)
            }
            // The next run resumes the chain where it stopped.
            Kind::RequestRejected | Kind::ProtocolError | Kind::BodyTooLarge => {
                self.work().skip(*feed, record.range(), error);
                Ok(true)
            }
            _ => Err(error),
        }
    }

    /// The longest range that a service answers is not documented (§8). A chain of several windows
    /// whose first page is rejected is tried again with fewer; with one window the error is final.
    fn may_be_too_long(&self, following: &Following, error: &Error) -> bool {
        let Following { feed, record, .. } = following;
        let window = self.work().state(*feed).feed().window();
        let refused = matches!(error.context().status, Some(400 | 413 | 422));
        refused && record.pages == 0 && record.range().seconds() > window
    }

    fn sent(&self) -> SentAt {
        let clock = self.client.time().clock();
        SentAt { monotonic: clock.monotonic(), wall: clock.wall() }
    }

    /// The service's time when a request was sent, as known after its reply, rounded towards the
    /// past.
    fn service_second(&self, sent: SentAt) -> i64 {
        let clock = self.client.time().clock();
        let by_monotonic = clock.monotonic().saturating_sub(sent.monotonic);
        let by_wall = clock.wall().duration_since(sent.wall);
        let elapsed = SignedDuration::try_from(by_monotonic).unwrap_or(SignedDuration::MAX);
        let time = self.client.time();
        // A skew too small to be corrected could still put a bucket's end into the service's future.
        // The header `Date` is exact to a second.
        let skew = time.skew().unwrap_or_default() + SignedDuration::from_secs(1);
        let by_date = clock.wall().checked_add(skew).unwrap_or(Timestamp::MAX);
        let now = self.client.now().min(by_date);
        now.checked_sub(elapsed.max(by_wall)).unwrap_or(Timestamp::MIN).as_second()
    }

    /// Refuses clocks that differ by days: what a read has covered would be unknown.
    fn check_skew(&self) -> Result<()> {
        let time = self.client.time();
        match time.skew() {
            Some(skew) if skew.abs() > CORRECTED_SKEW => {
                let ours = time.clock().wall();
                let theirs = ours.checked_add(skew).unwrap_or(ours);
                let message =
                    format!("this machine's clock is at {ours}, the service's at {theirs}");
                Err(Error::new(Kind::ClockSkewError, message)
                    .with_hint("Set this machine's clock. Nothing of this reply was kept.")
                    .with(|context| context.skew_seconds = Some(skew.as_secs_f64())))
            }
            _ => Ok(()),
        }
    }
}
