//! [`ThroughStore`]: reads the whole of a scan through a store. What is settled comes from the store, the
//! rest from the service, and is kept (§4.5).
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
use super::plan::{PlanTerms, steps_of};
use super::range_coverage::Unread;
use super::ranges::{Range, Ranges};
use super::read::ReadSpec;
use super::report::EndedBy;
use super::run::Run;
use super::run_state::FeedRun;
use super::settings::{Only, SyncSettings};
use super::shares::{Asked, FeedShare, range_of, shares};
use super::stored::read_states;
use super::task::{Task, Why};
use crate::client::chains::ReadChains;
use crate::client::collect::{Pace, Step, WholeRead};
use crate::client::scan::Scan;
use crate::client::table::{Provenance, ReadFailure, StoreShare, Table};
use crate::data::{MergeReport, Merged, Merger, PointColumns};
use crate::error::{Error, Kind, Result};
use crate::fork::Process;
use crate::http::Deadline;
use crate::lock::Mutex;
use crate::store::{Flagged, Store, Target as _, Turn, View};

/// Pages that are requested and not yet stored: the next one is asked for while the last is stored.
const CONCURRENCY: usize = 2;
/// How long a read without a deadline waits for another one of the same feed.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// By how much at most the beginning of a chain is rounded.
const ROUNDED: SignedDuration = SignedDuration::from_secs(5);
/// How often the shares are made anew because another process changed the feeds.
const TRIES: usize = 5;
/// The points that are read before other futures get their turn.
const ROWS: usize = 1 << 16;

/// A scan that is read through a store.
#[derive(Debug)]
pub struct ThroughStore {
    store: Arc<Store>,
    scan: Scan,
    range: Range,
    /// Whether each part is read once, though it may change later: for the store of an interrupted read.
    reads_once: bool,
    /// A read between two of its steps.
    paused: Mutex<Option<ReadUnderWay>>,
    /// What was read since the scan was first read: it is not read a second time after an error.
    attempt: Mutex<ReadSoFar>,
}

/// What reads a scan through a store, and its parts.
type Parts = (Arc<dyn WholeRead>, Vec<Arc<ThroughStore>>);

/// What a scan has read of the service, over several reads where the first ones failed.
#[derive(Debug, Default)]
struct ReadSoFar {
    /// When the first of them began, or the oldest chain that it resumed.
    read_at: Option<Timestamp>,
    /// The ranges that were read to the end of their chain, by feed.
    read: BTreeMap<String, Ranges>,
    /// Its pages and their points.
    counts: (u64, u64),
}

/// A read that has begun.
#[derive(Debug)]
struct ReadUnderWay {
    /// The process that has the locks of its feeds.
    process: Process,
    /// What the feeds give.
    shares: Vec<FeedShare>,
    /// Reads what is missing; `None` where all is settled.
    run: Option<Run>,
    /// Held until the run has left the feeds.
    turns: Vec<Turn>,
    provenance: Provenance,
    /// Points that the run has brought.
    points: u64,
}

impl ReadSoFar {
    fn count(&mut self, points: u64) {
        self.counts = (self.counts.0 + 1, self.counts.1 + points);
    }
}

impl ThroughStore {
    /// What reads a scan through a store, and its parts: one for each site and line, which are read one after
    /// the other.
    pub fn of_scan(store: &Arc<Store>, scan: &Scan, reads_once: bool) -> Result<Parts> {
        if scan.cut().is_some() {
            return Err(Error::new(Kind::QueryError, "split= is not for a read with store=")
                .with_hint(
                    "Leave split= out: what is missing is read in parts that suit the store.",
                ));
        }
        let part = |scan| Self::new(Arc::clone(store), scan, reads_once).map(Arc::new);
        if scan.chains().len() == 1 {
            let part = part(scan.clone())?;
            return Ok((Arc::clone(&part) as _, vec![part]));
        }
        let (whole, parts) = ReadChains::read_by(scan, part)?;
        Ok((Arc::new(whole), parts))
    }

    /// Reads nothing yet.
    ///
    /// # Errors
    /// `QueryError` for a scan without a start, and for one that asks for what a store does not keep.
    pub fn new(store: Arc<Store>, scan: Scan, reads_once: bool) -> Result<Self> {
        let not_kept = |what: &str| {
            let message = format!("{what} is not kept by a store");
            Err(Error::new(Kind::QueryError, message)
                .with_hint(format!("Leave store= out, or {what}.")))
        };
        if !scan.decode_settings().extra_columns.is_empty() {
            return not_kept("extra_columns=");
        }
        if scan.read_settings().keep_raw {
            return not_kept("keep_raw=");
        }
        let range = range_of(scan.query())?;
        let (paused, attempt) = (Mutex::new(None), Mutex::default());
        Ok(Self { store, scan, range, reads_once, paused, attempt })
    }

    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether each part is read once.
    #[must_use]
    pub fn reads_once(&self) -> bool {
        self.reads_once
    }

    /// The chains that a read would begin now, and the number of ranges that it would refuse because they
    /// are set aside. Makes no request.
    pub(super) fn tasks(&self, now: Timestamp) -> Result<(Vec<Task>, usize)> {
        let reread = Ranges::none();
        let (second, clock) = (now.as_second(), Some(now.as_second()));
        let terms = PlanTerms { now: second, until: None, reread: &reread, clock };
        let (mut tasks, mut set_aside) = (Vec::new(), 0);
        for FeedShare { state, missing, .. } in &self.shares()? {
            let ranges = self.left_of(state.feed().name(), missing);
            set_aside += usize::from(state.set_aside_of(&ranges, now).is_some());
            let only = Only { ranges, resumed_since: self.resumed_since() };
            let known = FeedRun::new(state.clone(), Some(only));
            for mut step in steps_of(0, &known, &terms) {
                let (start, end) = step.range.instants();
                let query = self.scan.query().over(Some(start), Some(end))?;
                step.pages = step.pages.or_else(|| self.scan.client().planned_pages(&query));
                tasks.push(step.task(state));
            }
        }
        if tasks.is_empty() {
            let (start, end) = self.range.instants();
            let pages = (set_aside == 0).then_some(0);
            tasks.push(Task { feed: String::new(), why: Why::Backfill, start, end, pages });
        }
        Ok((tasks, set_aside))
    }

    /// What is left to read of what a feed is to read.
    fn left_of(&self, feed: &str, missing: &Ranges) -> Ranges {
        let attempt = self.attempt.lock();
        attempt.read.get(feed).map_or_else(|| missing.clone(), |read| missing.without(read))
    }

    /// The feeds that are to read something, and what.
    fn left(&self, shares: &[FeedShare]) -> Vec<(Feed, Ranges)> {
        let left = |share: &FeedShare| {
            (share.state.feed().clone(), self.left_of(share.name(), &share.missing))
        };
        shares.iter().map(left).filter(|(_, left)| !left.is_empty()).collect()
    }

    fn shares(&self) -> Result<Vec<FeedShare>> {
        let client = self.scan.client();
        let asked = Asked {
            query: self.scan.query(),
            range: self.range,
            service: client.base_url().as_str(),
            settle_lag: if self.reads_once { Duration::ZERO } else { client.settings().settle_lag },
            reads_once: self.reads_once,
        };
        shares(&read_states(&self.store)?, &asked)
    }

    /// Locks the feeds that are to read something. What others have read until then counts.
    ///
    /// # Errors
    /// `StoreBusy` where another read or sync has one of them, after a wait; those of the store.
    async fn locked(&self, deadline: Deadline) -> Result<(Vec<FeedShare>, Vec<Turn>, Locks)> {
        let clock = self.scan.client().time().clock();
        let longest = Deadline::after(clock, Some(LONGEST_WAIT));
        let wait = if deadline.remaining(clock).is_some() { deadline } else { longest };
        let (mut names, mut turns) = (Vec::new(), Vec::new());
        for _ in 0..TRIES {
            let shares = self.shares()?;
            let feeds: Vec<Feed> = self.left(&shares).into_iter().map(|(feed, _)| feed).collect();
            if feeds.is_empty() {
                return Ok((shares, turns, Locks::new()));
            }
            if self.store.options().read_only {
                return Err(self.read_only());
            }
            let wanted: BTreeSet<String> = feeds.iter().map(|it| it.name().to_owned()).collect();
            if !wanted.iter().all(|name| names.contains(name)) {
                turns.clear();
                for name in &wanted {
                    let turn = async { Ok(self.store.turns().take(name).await) };
                    turns.push(wait.bound(clock, turn).await.map_err(|_| self.busy(name))?);
                }
                names = wanted.into_iter().collect();
                // The one before may have read what is missing here.
                continue;
            }
            let locks = wait_for(&*self.store, &feeds, clock, wait).await.map_err(with_hints)?;
            // From now on nobody else changes these.
            let shares = self.shares()?;
            if self
                .left(&shares)
                .iter()
                .all(|(feed, _)| names.iter().any(|name| name == feed.name()))
            {
                return Ok((shares, turns, locks));
            }
        }
        let message = format!("the feeds of {} change all the time", self.store.path().display());
        Err(Error::new(Kind::StoreBusy, message).with_hint("Try again."))
    }

    fn busy(&self, feed: &str) -> Error {
        let path = self.store.path().display();
        let message =
            format!("store {path}: another read of this process writes to its feed {feed:?}");
        with_hints(Error::new(Kind::StoreBusy, message))
    }

    fn read_only(&self) -> Error {
        let path = self.store.path().display();
        let message =
            format!("the store {path} is read only, and has not settled all of the range");
        Error::new(Kind::StoreError, message).with_hint(
            "Leave store= out to read from the service alone, or open the store for writing.",
        )
    }

    async fn begin(&self, deadline: Deadline) -> Result<ReadUnderWay> {
        let (shares, turns, locks) = self.locked(deadline).await?;
        let provenance = self.scan.provenance();
        self.attempt.lock().read_at.get_or_insert(provenance.read_at);
        let left = self.left(&shares);
        let mut run = None;
        if !left.is_empty() {
            self.check_set_aside(&shares)?;
            let is_read =
                |share: &FeedShare| left.iter().any(|(feed, _)| feed == share.state.feed());
            for share in shares.iter().filter(|share| share.is_redefined && is_read(share)) {
                self.store.apply(share.name(), None, &share.state.to_bytes())?;
            }
            let feeds: Vec<Feed> = left.iter().map(|(feed, _)| feed.clone()).collect();
            let only = left.into_iter().map(|(feed, ranges)| {
                (feed.name().to_owned(), Only { ranges, resumed_since: self.resumed_since() })
            });
            let settings = SyncSettings {
                shape: self.scan.decode_settings().shape.clone(),
                concurrency: CONCURRENCY,
                max_pages: self.scan.most_pages(),
                only: Some(only.collect()),
                ..SyncSettings::default()
            };
            let (client, target) = (self.scan.client(), Arc::clone(&self.store) as _);
            let begun = Run::with_locks(client, target, &feeds, settings, (locks, deadline));
            run = Some(begun.map_err(with_hints)?);
        }
        Ok(ReadUnderWay { process: Process::current(), shares, run, turns, provenance, points: 0 })
    }

    /// Chains that began then or later are of this scan. When a chain began is rounded to the past.
    fn resumed_since(&self) -> Option<Timestamp> {
        if self.reads_once {
            return Some(Timestamp::MIN);
        }
        let read_at = self.attempt.lock().read_at?;
        read_at.checked_sub(ROUNDED).ok()
    }

    /// Refuses a read of what a sync leaves out, before any request.
    ///
    /// # Errors
    /// `UnreadRange` with the time at which it is tried again.
    fn check_set_aside(&self, shares: &[FeedShare]) -> Result<()> {
        let now = self.scan.client().now();
        for share in shares {
            let left = self.left_of(share.name(), &share.missing);
            let Some(one) = share.state.set_aside_of(&left, now).filter(|_| !left.is_empty())
            else {
                continue;
            };
            let message = format!(
                "{} to {} is skipped until {}: the service did not end its chain ({})",
                one.start, one.end, one.until, one.error
            );
            return Err(Error::new(Kind::UnreadRange, message)
                .with_hint(
                    "It is tried again after that time. Without store= it is read as it comes, at the \
                     cost of its pages.",
                )
                .with(|context| {
                    context.spans = vec![(one.start, one.end)];
                    context.retry_at = Some(one.until);
                }));
        }
        Ok(())
    }

    async fn next(&self, deadline: Deadline) -> Result<Step> {
        // A child leaves the read of its parent alone.
        let paused = self.paused.lock().take().filter(|paused| paused.process.is_current());
        let mut reading = match paused {
            Some(reading) => reading,
            None => self.begin(deadline).await?,
        };
        let mut report = MergeReport::default();
        if let Some(run) = reading.run.take() {
            if run.fetch().await? {
                let progress = run.apply()?;
                self.note_read(&reading.shares, &run);
                self.attempt.lock().count(progress.points - reading.points);
                reading.points = progress.points;
                reading.run = Some(run);
                *self.paused.lock() = Some(reading);
                return Ok(Step::Page(progress));
            }
            self.check_complete(&run)?;
            report = run.merge_report();
            // With the run go the locks of its feeds.
            drop(run);
            reading.turns.clear();
        }
        let table = self.table(reading, report).await?;
        *self.attempt.lock() = ReadSoFar::default();
        Ok(Step::Whole(Arc::new(table)))
    }

    fn note_read(&self, shares: &[FeedShare], run: &Run) {
        let mut attempt = self.attempt.lock();
        attempt.read_at = attempt.read_at.into_iter().chain(run.oldest()).min();
        for share in shares {
            let read = attempt.read.entry(share.name().to_owned()).or_default();
            *read = read.with(&run.read_of(share.name()));
        }
    }

    /// Refuses a read that has not brought all.
    ///
    /// # Errors
    /// `AllowanceExhausted`; `PageLimitReached`; `UnreadRange` for what is set aside.
    fn check_complete(&self, run: &Run) -> Result<()> {
        let report = run.report()?;
        if report.complete {
            return Ok(());
        }
        let spans: Vec<_> = report.tasks.iter().map(|task| (task.start, task.end)).collect();
        let first = spans.first().map(|(start, end)| format!("{start} to {end}"));
        let left = format!("{} is not read yet", first.unwrap_or_default());
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
                .with_hint("Another process changed the feed meanwhile: call collect() again."),
        };
        Err(error.with(|context| {
            context.spans = spans;
            context.retry_at = report.resumes_at;
        }))
    }

    /// The points of the range, now that all of it is in the store.
    ///
    /// # Errors
    /// `UnreadRange` where another process has removed points meanwhile; those of the store.
    async fn table(&self, reading: ReadUnderWay, mut report: MergeReport) -> Result<Table> {
        let ReadUnderWay { shares, provenance, .. } = reading;
        let (read, read_at) = {
            let attempt = self.attempt.lock();
            (attempt.read.clone(), attempt.read_at.unwrap_or(provenance.read_at))
        };
        let mut parts = Vec::new();
        for share in &shares {
            for range in share.ranges().iter() {
                let points = self.points(share.name(), range).await?;
                let selection = &self.scan.query().input().selection;
                parts.push(if selection.is_empty() {
                    points
                } else {
                    let named = self.scan.decode_settings().named.as_deref();
                    let (points, filtered) =
                        points.kept(|series| selection.keeps(series, named))?;
                    report.quality.filtered += filtered;
                    points
                });
            }
        }
        let points = match <[PointColumns; 1]>::try_from(parts) {
            Ok([points]) => Arc::new(points),
            Err(parts) => merged(parts)?,
        };
        report.points = points.rows() as u64;
        report.series = points.series.len() as u64;
        let path = self.store.path().to_string_lossy().into_owned();
        let bounds = |ranges: &Ranges| {
            let instants = ranges.iter().map(Range::instants);
            instants.map(|(start, end)| vec![start, end]).collect()
        };
        let through = |share: &FeedShare| {
            let all = share.ranges();
            let from_service =
                read.get(share.name()).map_or_else(Ranges::none, |read| all.and(read));
            StoreShare {
                store: path.clone(),
                feed: share.name().to_owned(),
                from_store: bounds(&all.without(&from_service)),
                from_service: bounds(&from_service),
            }
        };
        let (pages, through) = (report.pages, shares.iter().map(through).collect());
        let page_size = report.quality.page_size.clone();
        let provenance = Provenance { read_at, pages, through, page_size, ..provenance };
        Ok(Table::whole(Merged { points, report }, provenance))
    }

    async fn points(&self, feed: &str, range: Range) -> Result<PointColumns> {
        let (start, end) = range.instants();
        let spec = ReadSpec::new(feed.to_owned(), (Some(start), Some(end)), View::Latest)?;
        // All of it has been read, though not all of it counts as read: what is within the settle lag.
        let spec = ReadSpec { flagged: Flagged::Drop, unread: Unread::Keep, ..spec };
        let snapshot = spec.open(&self.store)?;
        if !snapshot.coverage.forgotten.is_empty() {
            let message = format!("points of {start} to {end} were removed while they were read");
            return Err(Error::new(Kind::UnreadRange, message)
                .with_hint("Another process called store.forget(): call collect() again."));
        }
        let mut reader = snapshot.reader;
        reader.find_blocks()?;
        let mut shown = reader.allocate().map_err(|_| no_memory())?;
        while reader.read_into(&mut shown, ROWS)? {
            tokio::task::yield_now().await;
        }
        Ok(shown.finish()?.0)
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

fn with_hints(error: Error) -> Error {
    let hint = match error.kind() {
        Kind::StoreBusy => "Give a longer deadline= to wait for it, or leave store= out.",
        Kind::FeedChanged => {
            "Give another file to these reads: this store uses the name for other points."
        }
        _ => return error,
    };
    error.with_hint(hint)
}

/// Points of several feeds, each of other times.
fn merged(parts: Vec<PointColumns>) -> Result<Arc<PointColumns>> {
    let mut merger = Merger::new(&[]);
    for points in parts {
        let (points, report) = (Arc::new(points), MergeReport::default());
        merger.push_merged(&Merged { points, report })?;
    }
    Ok(merger.finish()?.points)
}

fn no_memory() -> Error {
    Error::new(Kind::InternalError, "no memory for so many points")
}
