//! Reads a whole scan through a store. Settled ranges come from the store. The other ranges come
//! from the service and are stored.
//!
//! ```text
//! shares of the feeds -> locks -> Run over what is not settled, page by page -> points of the store: Table
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

use super::begin::{Locks, wait_for};
use super::feed::Feed;
use super::given_up::SkippedRange;
use super::plan::{PlanTerms, steps_of};
use super::report::EndedBy;
use super::run::Run;
use super::run_state::FeedRun;
use super::settings::{Only, SyncSettings};
use super::shares::{Asked, FeedShare, range_of, shares};
use super::stored::read_states;
use super::task::{Task, Why};
use crate::client::chains::ReadChains;
use crate::client::collect::{Pace, Step, WholeRead};
use crate::client::progress::Progress;
use crate::client::scan::Scan;
use crate::client::table::{Provenance, ReadFailure};
use crate::data::MergeReport;
use crate::data::ranges::{Range, Ranges};
use crate::error::{Error, Kind, Result};
use crate::fork::Process;
use crate::http::Deadline;
use crate::lock::Mutex;
use crate::store::{Store, Target as _, Turn};

/// A page is requested while the previous one is stored.
const CONCURRENCY: usize = 2;
/// The longest wait for another read of the same feed, for a read without a deadline.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The beginning of a chain is rounded by at most this much.
const ROUNDED: SignedDuration = SignedDuration::from_secs(5);
const TRIES: usize = 5;

#[derive(Debug)]
pub struct ThroughStore {
    /// `None` before the store has a file: such a reader only plans.
    store: Option<Arc<Store>>,
    pub(super) scan: Scan,
    range: Range,
    /// Whether unsettled parts are accepted too: for the store of an interrupted read.
    reads_once: bool,
    /// A read between two steps.
    paused: Mutex<Option<ReadUnderWay>>,
    /// The progress since the first read of the scan. An error does not cause a second read of it.
    pub(super) attempt: Mutex<ReadSoFar>,
}

type Parts = (Arc<dyn WholeRead>, Vec<Arc<ThroughStore>>);

/// The ranges that a scan has read from the service, including earlier reads that failed.
#[derive(Debug, Default)]
pub(super) struct ReadSoFar {
    /// When the first read began, or the oldest chain that it resumed.
    pub(super) read_at: Option<Timestamp>,
    /// The ranges that were read to the end of a chain, by feed.
    pub(super) read: BTreeMap<String, Ranges>,
    /// The number of pages and of their points.
    counts: (u64, u64),
}

#[derive(Debug)]
pub(super) struct ReadUnderWay {
    process: Process,
    pub(super) shares: Vec<FeedShare>,
    /// Reads the missing ranges; `None` if everything is settled.
    run: Option<Run>,
    /// Held until the run has unlocked the feeds.
    turns: Vec<Turn>,
    pub(super) provenance: Provenance,
    /// The counts of earlier attempts.
    before: (u64, u64),
}

impl ThroughStore {
    /// The reader of a scan through a store, and its parts. Each pair of site and line is one part;
    /// the parts are read one after the other.
    pub fn of_scan(store: Option<&Arc<Store>>, scan: &Scan, reads_once: bool) -> Result<Parts> {
        Self::check(scan)?;
        let part = |scan| Self::new(store.map(Arc::clone), scan, reads_once).map(Arc::new);
        if scan.chains().len() == 1 {
            let part = part(scan.clone())?;
            return Ok((Arc::clone(&part) as _, vec![part]));
        }
        let (whole, parts) = ReadChains::read_by(scan, part)?;
        Ok((Arc::new(whole), parts))
    }

    /// Fails for a split scan, one without a start, and for extra columns or raw pages.
    fn check(scan: &Scan) -> Result<()> {
        if scan.cut().is_some() {
            let hint = "Omit split=: a read through a store chooses its own parts.";
            let message = "split= cannot be combined with store=";
            return Err(Error::new(Kind::QueryError, message).with_hint(hint));
        }
        let not_kept = |option: &str| {
            let message = format!("a store does not keep {option}");
            Err(Error::new(Kind::QueryError, message)
                .with_hint(format!("Omit store= or {option}.")))
        };
        if !scan.decode_settings().extra_columns.is_empty() {
            return not_kept("extra_columns=");
        }
        if scan.read_settings().keep_raw {
            return not_kept("keep_raw=");
        }
        range_of(scan.query()).map(drop)
    }

    fn new(store: Option<Arc<Store>>, scan: Scan, reads_once: bool) -> Result<Self> {
        let range = range_of(scan.query())?;
        let (paused, attempt) = (Mutex::new(None), Mutex::default());
        Ok(Self { store, scan, range, reads_once, paused, attempt })
    }

    #[must_use]
    pub fn store(&self) -> Option<&Arc<Store>> {
        self.store.as_ref()
    }

    pub(super) fn opened(&self) -> Result<&Arc<Store>> {
        self.store().ok_or_else(|| Error::new(Kind::InternalError, "a read needs an open store"))
    }

    #[must_use]
    pub fn reads_once(&self) -> bool {
        self.reads_once
    }

    /// The chains that a read would begin now, and the number of ranges that it would reject
    /// because they are set aside. Makes no request.
    pub(super) fn tasks(&self, now: Timestamp) -> Result<(Vec<Task>, usize)> {
        let reread = Ranges::none();
        let (second, clock) = (now.as_second(), Some(now.as_second()));
        let terms = PlanTerms { now: second, until: None, reread: &reread, clock };
        let (mut tasks, mut set_aside) = (Vec::new(), 0);
        for FeedShare { state, left, .. } in self.shares()? {
            set_aside += usize::from(state.set_aside_of(&left, now).is_some());
            let only = Only { ranges: left, resumed_since: self.resumed_since() };
            let known = FeedRun::new(state, Some(only));
            for mut step in steps_of(0, &known, &terms) {
                let (start, end) = step.range.instants();
                let query = self.scan.query().over(Some(start), Some(end))?;
                step.pages = step.pages.or_else(|| self.scan.client().planned_pages(&query));
                tasks.push(step.task(&known.state));
            }
        }
        if tasks.is_empty() {
            let (start, end) = self.range.instants();
            let pages = (set_aside == 0).then_some(0);
            tasks.push(Task { feed: String::new(), why: Why::Backfill, start, end, pages });
        }
        Ok((tasks, set_aside))
    }

    /// The shares of the feeds, and what is left to read of each.
    fn shares(&self) -> Result<Vec<FeedShare>> {
        let client = self.scan.client();
        let asked = Asked {
            query: self.scan.query(),
            range: self.range,
            service: client.base_url().as_str(),
            settle_lag: if self.reads_once { Duration::ZERO } else { client.settings().settle_lag },
            reads_once: self.reads_once,
        };
        let states = self.store().map_or(Ok(Vec::new()), |store| read_states(store))?;
        let mut shares = shares(&states, &asked)?;
        let attempt = self.attempt.lock();
        for share in &mut shares {
            share.left = match attempt.read.get(share.name()) {
                Some(read) => share.missing.without(read),
                None => share.missing.clone(),
            };
        }
        Ok(shares)
    }

    /// Locks the feeds with ranges to read, without the ranges that other reads have stored.
    async fn locked(&self, deadline: Deadline) -> Result<(Vec<FeedShare>, Vec<Turn>, Locks)> {
        let (store, clock) = (self.opened()?, self.scan.client().time().clock());
        let longest = Deadline::after(clock, Some(LONGEST_WAIT));
        let wait = if deadline.remaining(clock).is_some() { deadline } else { longest };
        let (mut names, mut turns) = (BTreeSet::new(), Vec::new());
        for _ in 0..TRIES {
            let shares = self.shares()?;
            let feeds = feeds_to_read(&shares);
            if feeds.is_empty() {
                return Ok((shares, turns, Locks::new()));
            }
            if store.options().read_only {
                return Err(read_only(store));
            }
            let wanted: BTreeSet<String> = feeds.iter().map(|it| it.name().to_owned()).collect();
            if !wanted.is_subset(&names) {
                turns.clear();
                for name in &wanted {
                    let turn = async { Ok(store.turns().take(name).await) };
                    turns.push(wait.bound(clock, turn).await.map_err(|_| busy(store, name))?);
                }
                names = wanted;
                // The previous holder may have read the missing ranges.
                continue;
            }
            let locks = wait_for(&**store, &feeds, clock, wait).await.map_err(with_hints)?;
            // Nobody else changes these feeds while they are locked.
            let shares = self.shares()?;
            if feeds_to_read(&shares).iter().all(|feed| names.contains(feed.name())) {
                return Ok((shares, turns, locks));
            }
        }
        let message =
            format!("other processes keep changing the feeds of {}", store.path().display());
        Err(Error::new(Kind::StoreBusy, message).with_hint("Try again."))
    }

    async fn begin(&self, deadline: Deadline) -> Result<ReadUnderWay> {
        let (shares, turns, locks) = self.locked(deadline).await?;
        let provenance = self.scan.provenance();
        self.attempt.lock().read_at.get_or_insert(provenance.read_at);
        let feeds = feeds_to_read(&shares);
        let mut run = None;
        if !feeds.is_empty() {
            self.check_set_aside(&shares)?;
            let left = || shares.iter().filter(|share| share.is_left());
            for share in left().filter(|share| share.is_redefined) {
                self.opened()?.apply(share.name(), None, &share.state.to_bytes())?;
            }
            let resumed_since = self.resumed_since();
            let only = left().map(|share| {
                let ranges = share.left.clone();
                (share.name().to_owned(), Only { ranges, resumed_since })
            });
            let settings = SyncSettings {
                shape: self.scan.decode_settings().shape.clone(),
                concurrency: CONCURRENCY,
                max_pages: self.scan.most_pages(),
                only: Some(only.collect()),
                ..SyncSettings::default()
            };
            let (client, target) = (self.scan.client(), Arc::clone(self.opened()?) as _);
            let begun = Run::with_locks(client, target, &feeds, settings, (locks, deadline));
            run = Some(begun.map_err(with_hints)?);
        }
        let (process, before) = (Process::current(), self.attempt.lock().counts);
        Ok(ReadUnderWay { process, shares, run, turns, provenance, before })
    }

    /// Chains that began at this time or later belong to this scan.
    fn resumed_since(&self) -> Option<Timestamp> {
        if self.reads_once {
            return Some(Timestamp::MIN);
        }
        let read_at = self.attempt.lock().read_at?;
        read_at.checked_sub(ROUNDED).ok()
    }

    /// Rejects a read of ranges that are set aside, before any request.
    fn check_set_aside(&self, shares: &[FeedShare]) -> Result<()> {
        let now = self.scan.client().now();
        let mut left = shares.iter().filter(|share| share.is_left());
        let skipped = left.find_map(|share| share.state.set_aside_of(&share.left, now));
        let Some(SkippedRange { start, end, until, error, .. }) = skipped else { return Ok(()) };
        let message = format!(
            "{start} to {end} is skipped until {until}: the service did not end its chain ({error})"
        );
        let hint = "Call collect() again after that time. Without store=, all pages of the range are \
                    read again.";
        Err(Error::new(Kind::UnreadRange, message).with_hint(hint).with(|context| {
            context.spans = vec![(start, end)];
            context.retry_at = Some(until);
        }))
    }

    async fn next(&self, deadline: Deadline) -> Result<Step> {
        // A forked child does not touch the read of its parent.
        let paused = self.paused.lock().take().filter(|paused| paused.process.is_current());
        let mut reading = match paused {
            Some(reading) => reading,
            None => self.begin(deadline).await?,
        };
        let mut report = MergeReport::default();
        if let Some(run) = reading.run.take() {
            if run.fetch().await? {
                let progress = run.apply()?;
                self.note_page(&reading, &run, &progress);
                reading.run = Some(run);
                *self.paused.lock() = Some(reading);
                return Ok(Step::Page(progress));
            }
            self.check_complete(&run)?;
            report = run.merge_report();
            // The run holds the locks of its feeds.
            drop(run);
            reading.turns.clear();
        }
        let table = self.table(reading, report).await?;
        *self.attempt.lock() = ReadSoFar::default();
        Ok(Step::Whole(Arc::new(table)))
    }

    fn note_page(&self, reading: &ReadUnderWay, run: &Run, progress: &Progress) {
        let ((pages, points), mut attempt) = (reading.before, self.attempt.lock());
        attempt.counts = (pages + progress.pages, points + progress.points);
        attempt.read_at = attempt.read_at.into_iter().chain(run.oldest()).min();
        for share in &reading.shares {
            let read = attempt.read.entry(share.name().to_owned()).or_default();
            *read = read.with(&run.read_of(share.name()));
        }
    }

    fn check_complete(&self, run: &Run) -> Result<()> {
        let report = run.report()?;
        if report.complete {
            return Ok(());
        }
        let spans: Vec<_> = report.tasks.iter().map(|task| (task.start, task.end)).collect();
        let first = spans.first().map(|(start, end)| format!("{start} to {end}"));
        let left = format!("{} has not been read completely", first.unwrap_or_default());
        let error = match report.ended_by {
            Some(EndedBy::MaxPages) => {
                let limit = self.scan.read_settings().max_pages.unwrap_or_default();
                let message = format!("max_pages={limit} was reached: {left}");
                Error::new(Kind::PageLimitReached, message)
            }
            Some(EndedBy::Allowance) => {
                let message = format!("the daily request allowance is used up: {left}");
                Error::new(Kind::AllowanceExhausted, message)
            }
            Some(EndedBy::Skipped) | None => Error::new(Kind::UnreadRange, left)
                .with_hint("Another process changed the feed. Call collect() again."),
        };
        Err(error.with(|context| {
            context.spans = spans;
            context.retry_at = report.resumes_at;
        }))
    }
}

impl WholeRead for ThroughStore {
    fn step(&self, deadline: Deadline, _: Pace) -> BoxFuture<'_, Result<Step, ReadFailure>> {
        Box::pin(async move { Ok(self.next(deadline).await?) })
    }

    fn kept(&self) -> (u64, u64) {
        self.attempt.lock().counts
    }

    fn pause(&self) {
        let paused = self.paused.lock().take();
        drop(paused);
    }
}

fn feeds_to_read(shares: &[FeedShare]) -> Vec<Feed> {
    let left = shares.iter().filter(|share| share.is_left());
    left.map(|share| share.state.feed().clone()).collect()
}

fn busy(store: &Store, feed: &str) -> Error {
    let path = store.path().display();
    let message = format!("store {path}: another read in this process writes to feed {feed:?}");
    with_hints(Error::new(Kind::StoreBusy, message))
}

fn read_only(store: &Store) -> Error {
    let path = store.path().display();
    let message = format!("the store {path} is read-only and has not settled the whole range");
    let hint = "Omit store= to read from the service only, or open the store for writing.";
    Error::new(Kind::StoreError, message).with_hint(hint)
}

fn with_hints(error: Error) -> Error {
    let hint = match error.kind() {
        Kind::StoreBusy => "Wait with a longer deadline=, or omit store=.",
        Kind::FeedChanged => "Use another store file: this one uses the name for other points.",
        _ => return error,
    };
    error.with_hint(hint)
}
