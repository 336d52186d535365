//! One run: chain after chain, page by page, until nothing is left to read or the allowance is.

use std::any::Any;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::feed::{Feed, check_distinct};
use super::plan::PlanStep;
use super::report::SyncReport;
use super::run_state::{PendingWrite, RunState};
use super::settings::SyncSettings;
use super::state::FeedState;
use super::unfinished::UnfinishedChain;
use crate::client::page_request::Sender;
use crate::client::progress::Progress;
use crate::client::{Client, Spending};
use crate::clock::{CORRECTED_SKEW, NOTICED_SKEW};
use crate::data::{Bookmark, Chain, DecodeSettings, Page};
use crate::error::{Error, Kind, Result};
use crate::http::Deadline;
use crate::lock::Mutex;
use crate::store::Target;

/// A run under way. Reading a page and applying it are two steps: the first waits for the service
/// and can be given up at any time, the second writes. The feeds are taken until it is dropped.
#[derive(Debug)]
pub struct Run {
    client: Client,
    target: Arc<dyn Target>,
    settings: SyncSettings,
    /// Its deadline.
    deadline: Deadline,
    /// The wall time at which it began.
    begun: Timestamp,
    /// The process that it belongs to.
    process: u32,
    following: tokio::sync::Mutex<Option<Following>>,
    /// One page is written at a time.
    applying: Mutex<()>,
    work: Mutex<RunState>,
    locks: Mutex<Vec<Box<dyn Any + Send>>>,
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

/// The moment before a request, by two clocks. The one that shows more time since is right: a
/// monotonic clock may stand still while the machine sleeps.
#[derive(Debug, Clone, Copy)]
struct SentAt {
    monotonic: Duration,
    wall: Timestamp,
}

/// No chain is followed further: it is planned to take a hundred pages at most.
const LONGEST_CHAIN: u64 = 10_000;

impl Run {
    /// Takes the feeds for writing and plans. Nothing is sent yet.
    ///
    /// # Errors
    /// `StoreBusy`, `FeedChanged`, `StoreError`s, `QueryError`.
    pub fn begin(
        client: &Client,
        target: Arc<dyn Target>,
        feeds: &[Feed],
        settings: SyncSettings,
    ) -> Result<Self> {
        check_distinct(feeds)?;
        let locks = feeds.iter().map(|feed| target.lock(feed.name())).collect::<Result<_>>()?;
        let service = client.base_url().as_str();
        let states = feeds.iter().map(|feed| FeedState::load(&*target, feed, service));
        let states: Vec<FeedState> = states.collect::<Result<_>>()?;
        let now = settings.now.unwrap_or_else(|| client.time().now());
        let clock = client.time().clock();
        Ok(Self {
            deadline: Deadline::after(clock, settings.deadline),
            begun: clock.wall(),
            process: std::process::id(),
            following: tokio::sync::Mutex::new(None),
            applying: Mutex::new(()),
            work: Mutex::new(RunState::new(states, &settings, now)?),
            locks: Mutex::new(locks),
            client: client.clone(),
            target,
            settings,
        })
    }

    /// Reads the next page, unless one waits to be applied already; `false` where nothing is left to
    /// do. Dropped half way, it leaves the run where it was. Where a cursor died there is no page:
    /// that its chain begins again is then what waits to be applied.
    ///
    /// What is wrong with one range alone (a request that is refused, a page that can't be read, a
    /// cursor that dies again and again) does not keep all behind it waiting: the range is left out,
    /// and its error given when everything else has been read.
    ///
    /// # Errors
    /// Those of a read. The run can go on, or begin anew at any time. `ClockSkewError` where the
    /// service's clock and ours are further apart than can be corrected; `ForkError` in a forked
    /// child.
    pub async fn fetch(&self) -> Result<bool> {
        self.check_process()?;
        let mut current = self.following.lock().await;
        loop {
            if self.work().waiting.is_some() {
                return Ok(true);
            }
            if current.is_none() {
                let Some(step) = self.next_step()? else {
                    return self.work().take_failure().map_or(Ok(false), Err);
                };
                *current = self.follow(&step)?;
            }
            let Some(following) = current.as_mut() else { continue };
            if following.record.pages >= LONGEST_CHAIN {
                self.give_up_endless(following);
                *current = None;
                continue;
            }
            let sent = self.sent();
            let sender = Sender {
                client: &self.client,
                deadline: self.deadline,
                spending: &following.spending,
            };
            match following.chain.next(&sender).await {
                Ok(Some(page)) => {
                    let is_last = page.is_last;
                    let held = self.keep_page(following, page, sent);
                    if is_last || held.is_err() {
                        *current = None;
                    }
                    held?;
                }
                Ok(None) => *current = None,
                Err(error) => {
                    if self.end_chain(following, error)? {
                        *current = None;
                    }
                }
            }
        }
    }

    /// Applies the page that waits, if one does.
    ///
    /// # Errors
    /// `StoreError`s; the page waits on.
    pub fn apply(&self) -> Result<Progress> {
        self.check_process()?;
        let _one_at_a_time = self.applying.lock();
        if self.locks.lock().is_empty() {
            return Err(Error::new(Kind::ClosedError, "this run is over: its feeds are unlocked"));
        }
        let (waiting, state) = {
            let work = self.work();
            let Some(waiting) = work.waiting.clone() else {
                drop(work);
                return Ok(self.progress());
            };
            let state = work.after(&waiting);
            (waiting, state)
        };
        let feed = state.feed().clone();
        let delivery = waiting.delivery(&feed);
        let applied = self.target.apply(feed.name(), delivery.as_ref(), &state.to_bytes())?;
        self.work().applied(&waiting, state, applied);
        if let Some((query, pages, points, on_last)) = waiting.ended(&feed) {
            self.client.learn(&query, pages, points, on_last);
        }
        Ok(self.progress())
    }

    /// Reads on to the end.
    ///
    /// # Errors
    /// As [`Run::fetch`] and [`Run::apply`].
    pub async fn finish(&self) -> Result<SyncReport> {
        while self.fetch().await? {
            self.apply()?;
        }
        self.report()
    }

    /// Unlocks the feeds: the run is over, also for those that still hold it.
    pub fn release(&self) {
        let _one_at_a_time = self.applying.lock();
        if self.check_process().is_ok() {
            self.locks.lock().clear();
        }
    }

    /// Keeps the feeds of which no page came, where the target does not know them yet: after a sync
    /// that has come to its end each can be read, if only as never read.
    ///
    /// # Errors
    /// `ForkError` in a forked child; those of the target.
    pub fn keep(&self) -> Result<()> {
        self.check_process()?;
        let states = {
            let work = self.work();
            let reports = work.reports();
            let new = reports.iter().enumerate().filter(|(_, report)| report.sequence == 0);
            new.map(|(feed, _)| work.state(feed).clone()).collect::<Vec<_>>()
        };
        for state in states {
            let name = state.feed().name();
            if self.target.state(name)?.is_none() {
                self.target.apply(name, None, &state.to_bytes())?;
            }
        }
        Ok(())
    }

    /// What was done so far.
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

    /// How far it has come. Pages and points are those applied; there is no fraction before the end,
    /// as nobody says how many pages there are.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let work = self.work();
        let done = work.is_over();
        Progress {
            pages: work.pages(),
            points: work.points,
            requests: work.requests(),
            allowance_left: self.client.allowance().ok().and_then(|state| state.left),
            newest: work.newest.and_then(|newest| Timestamp::from_microsecond(newest).ok()),
            fraction: done.then_some(1.0),
            done,
        }
    }

    /// Whether this process does the run: two that did would spend the allowance twice.
    ///
    /// # Errors
    /// `ForkError` in a forked child.
    pub fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let message = "this sync was begun by the parent, before the process forked";
        Err(Error::new(Kind::ForkError, message).with_hint("Begin a new one in the child."))
    }

    fn work(&self) -> MutexGuard<'_, RunState> {
        self.work.lock()
    }

    /// Plans again, for the same time, unless a reply has shown that the service's time is another.
    fn next_step(&self) -> Result<Option<PlanStep>> {
        let allowance = self.client.allowance()?;
        let mut work = self.work();
        if self.settings.now.is_none() {
            let correction = self.client.time().correction();
            let learnt = self.begun.checked_add(correction).unwrap_or(self.begun);
            if learnt.duration_since(work.now).abs() > NOTICED_SKEW {
                work.now = learnt;
            }
        }
        Ok(work.next(&allowance))
    }

    /// The chain of a step, at its start or where its bookmark was made; `None` where that bookmark
    /// is not one of ours.
    fn follow(&self, step: &PlanStep) -> Result<Option<Following>> {
        let mut work = self.work();
        let record = work.chain(step);
        let state = work.state(step.feed);
        let (start, end) = step.range.instants();
        let query = state.feed().query_of(step.range)?;
        let settings = DecodeSettings::for_query(&query, self.settings.shape.clone(), Vec::new())?;
        let (settings, origin) = (Arc::new(settings), self.client.origin());
        let chain = match &record.bookmark {
            None => Ok(Chain::new(query, settings, &origin, None)),
            Some(text) => Bookmark::from_text(text)
                .and_then(|bookmark| Chain::resume(query, settings, &origin, None, &bookmark)),
        };
        let chain = match chain {
            Ok(chain) => chain.starting_at(state.next_sequence),
            Err(error) => {
                work.waiting = Some(Arc::new(after_dead_cursor(step.feed, &record, error)));
                return Ok(None);
            }
        };
        log::info!(
            target: "siteline::sync",
            "{}: {} {start} to {end}", state.feed().name(), step.why
        );
        let (begun_here, spending) = (record.bookmark.is_none(), Arc::clone(&work.spending));
        Ok(Some(Following { chain, feed: step.feed, record, begun_here, spending }))
    }

    /// Keeps a page until it is applied.
    fn keep_page(&self, following: &mut Following, page: Page, sent: SentAt) -> Result<()> {
        self.check_skew()?;
        let record = &mut following.record;
        if record.began.is_none() {
            record.began = Some(self.service_second(sent));
            record.first = page.sequence;
        }
        record.pages += 1;
        record.points += page.rows() as u64;
        record.bookmark = page.bookmark.as_ref().map(Bookmark::to_text);
        let waiting = PendingWrite::Page {
            feed: following.feed,
            page: Box::new(page),
            read_at: self.client.time().now(),
            chain: record.clone(),
            begun_here: following.begun_here,
        };
        self.work().waiting = Some(Arc::new(waiting));
        Ok(())
    }

    /// What a failed request means for its chain. True where the chain is no longer followed; the
    /// error is given back where the chain can go on with the same request.
    fn end_chain(&self, following: &Following, error: Error) -> Result<bool> {
        let Following { feed, record, .. } = following;
        match error.kind() {
            Kind::CursorRejected | Kind::CursorLoop => {
                self.work().waiting = Some(Arc::new(after_dead_cursor(*feed, record, error)));
                Ok(true)
            }
            Kind::RequestRejected if self.may_be_too_long(following, &error) => {
                let range = record.range();
                self.work().waiting = Some(Arc::new(PendingWrite::TooLong { feed: *feed, range }));
                Ok(true)
            }
            Kind::AllowanceExhausted => {
                let allowance = self.client.allowance()?;
                self.work().refused(*feed, record, &allowance, error.context().retry_at);
                Ok(true)
            }
            // Where it stopped, it goes on in the next run.
            Kind::RequestRejected | Kind::ProtocolError | Kind::BodyTooLarge => {
                self.work().leave_out(*feed, record.range(), error);
                Ok(true)
            }
            _ => Err(error),
        }
    }

    /// A service may give new cursors for ever (P2). What came is kept.
    fn give_up_endless(&self, following: &Following) {
        let Following { feed, record, .. } = following;
        let message = format!("a chain has given {} pages and does not end", record.pages);
        let error = Error::new(Kind::CursorLoop, message)
            .with_hint("If a window holds as many, give the feed a shorter one: window=.");
        let given_up = PendingWrite::GivenUp { feed: *feed, range: record.range(), error };
        self.work().waiting = Some(Arc::new(given_up));
    }

    /// How long a range may be is not shown (§8). One of several windows that is refused at its first
    /// page is tried with fewer; what is wrong otherwise is told when it is down to one.
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

    /// The service's time when a request left, as known after its reply, never later: what the
    /// machine slept through is not on its monotonic clock.
    fn service_second(&self, sent: SentAt) -> i64 {
        let clock = self.client.time().clock();
        let by_monotonic = clock.monotonic().saturating_sub(sent.monotonic);
        let by_wall = clock.wall().duration_since(sent.wall);
        let elapsed = SignedDuration::try_from(by_monotonic).unwrap_or(SignedDuration::MAX);
        let time = self.client.time();
        // A skew too small to be corrected may still put a bucket's end into the service's future.
        // `Date` is good to a second.
        let skew = time.skew().unwrap_or_default() + SignedDuration::from_secs(1);
        let shown = clock.wall().checked_add(skew).unwrap_or(Timestamp::MAX);
        let now = time.now().min(shown);
        now.checked_sub(elapsed.max(by_wall)).unwrap_or(Timestamp::MIN).as_second()
    }

    /// With clocks that are days apart nobody can say what a read has covered.
    fn check_skew(&self) -> Result<()> {
        let time = self.client.time();
        match time.skew() {
            Some(skew) if skew.abs() > CORRECTED_SKEW => {
                let ours = time.clock().wall();
                let theirs = ours.checked_add(skew).unwrap_or(ours);
                let message = format!("our clock says {ours}, the service's {theirs}");
                Err(Error::new(Kind::ClockSkewError, message)
                    .with_hint("Set the machine's clock. Nothing of this reply was kept.")
                    .with(|context| context.skew_seconds = Some(skew.as_secs_f64())))
            }
            _ => Ok(()),
        }
    }
}

/// What is applied after a cursor died: the chain begins again, or is given up.
fn after_dead_cursor(feed: usize, record: &UnfinishedChain, error: Error) -> PendingWrite {
    match record.again() {
        Some(chain) => PendingWrite::Again { feed, chain },
        None => PendingWrite::GivenUp { feed, range: record.range(), error },
    }
}

impl Drop for Run {
    /// In a forked child the locks are the parent's.
    fn drop(&mut self) {
        if self.process != std::process::id() {
            let locks = self.locks.get_mut();
            std::mem::forget(std::mem::take(locks));
        }
    }
}
