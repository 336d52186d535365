//! What a run has done, what waits to be written, and what it leaves to another run.

use std::sync::Arc;

use jiff::Timestamp;

use super::feed::Feed;
use super::plan::{Known, Step, Task, Terms, Why, reserve, steps};
use super::ranges::{Range, Ranges, instant};
use super::report::FeedReport;
use super::run::SyncSettings;
use super::state::State;
use super::unfinished::Unfinished;
use crate::client::Spending;
use crate::data::{Page, Query};
use crate::error::{Error, Kind, Result};
use crate::http::AllowanceState;
use crate::store::{Applied, Delivery, Span, Target};

/// What has been read or decided, and is not in the target yet.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A page, and its chain as it stands after it.
    Page { feed: usize, page: Box<Page>, read_at: Timestamp, chain: Unfinished, begun_here: bool },
    /// A cursor died: the chain begins again.
    Again { feed: usize, chain: Unfinished },
    /// The service does not begin a chain as long as this one: the next plan has shorter ones.
    TooLong { feed: usize, range: Range },
    /// It died once too often: the next plan begins anew.
    GivenUp { feed: usize, range: Range, error: Error },
}

/// One feed of a run.
#[derive(Debug)]
struct Part {
    state: State,
    done: Ranges,
    put_off: Ranges,
    /// Ranges that were left out because something is wrong with them.
    failures: usize,
    chains: u64,
    pages: u64,
    applied: Applied,
}

/// After so many a feed is left alone for this run: what is wrong with them is wrong with it, and
/// each has cost a request.
const MOST_FAILURES: usize = 3;

/// All that a run keeps.
#[derive(Debug)]
pub(super) struct Work {
    parts: Vec<Part>,
    reread: Ranges,
    until: Option<i64>,
    /// The service's time that the run is planned for.
    pub(super) now: Timestamp,
    pub(super) waiting: Option<Arc<Waiting>>,
    /// The allowance is spent, until then.
    stopped: Option<Timestamp>,
    /// What is left of the allowance is not for filling.
    no_fill: bool,
    /// What was wrong with the first range that was left out.
    failure: Option<Error>,
    pub(super) spending: Arc<Spending>,
    /// Requests of the chains before.
    requests: u64,
    pub(super) points: u64,
    pub(super) newest: Option<i64>,
}

impl Waiting {
    pub(super) fn feed(&self) -> usize {
        match self {
            Self::Page { feed, .. }
            | Self::Again { feed, .. }
            | Self::TooLong { feed, .. }
            | Self::GivenUp { feed, .. } => *feed,
        }
    }

    /// The page on its way into a target, where it is one.
    pub(super) fn delivery(&self, feed: &Feed) -> Option<Delivery<'_>> {
        let Self::Page { page, read_at, chain, .. } = self else { return None };
        let (start, end) = chain.range().instants();
        let span = Span { first: chain.first, start, end };
        let interval_seconds = feed.input().interval_seconds;
        Some(Delivery { page, read_at: *read_at, chain: span, interval_seconds })
    }

    /// The query of a chain that ended with this page, and how many pages and points it had, of
    /// which so many came last.
    pub(super) fn ended(&self, feed: &Feed) -> Option<(Query, u64, u64, u64)> {
        let Self::Page { page, chain, .. } = self else { return None };
        let query = feed.query_of(chain.range()).ok().filter(|_| page.is_last)?;
        Some((query, chain.pages, chain.points, page.rows() as u64))
    }
}

impl Work {
    pub(super) fn new(states: Vec<State>, settings: &SyncSettings, now: Timestamp) -> Result<Self> {
        let part = |state| Part {
            state,
            done: Ranges::none(),
            put_off: Ranges::none(),
            failures: 0,
            chains: 0,
            pages: 0,
            applied: Applied::default(),
        };
        Ok(Self {
            parts: states.into_iter().map(part).collect(),
            reread: reread_ranges(settings)?,
            until: until_second(settings),
            now,
            waiting: None,
            stopped: None,
            no_fill: false,
            failure: None,
            spending: Arc::default(),
            requests: 0,
            points: 0,
            newest: None,
        })
    }

    pub(super) fn state(&self, feed: usize) -> &State {
        &self.parts[feed].state
    }

    fn terms(&self) -> Terms<'_> {
        Terms { now: self.now.as_second(), until: self.until, reread: &self.reread }
    }

    /// All that this run would still read, whether it may or not.
    fn rest(&self) -> Vec<Step> {
        let none = Ranges::none();
        self.steps(|_| &none)
    }

    /// What it may still read, in order.
    fn open(&self) -> Vec<Step> {
        if self.stopped.is_some() {
            return Vec::new();
        }
        let mut open = self.steps(|part| &part.put_off);
        open.retain(|step| !(step.fills && self.no_fill));
        open.retain(|step| self.parts[step.feed].failures < MOST_FAILURES);
        open
    }

    /// Leaves a range to another run.
    pub(super) fn leave_out(&mut self, feed: usize, range: Range, error: Error) {
        let (name, (start, end)) = (self.state(feed).feed().name(), range.instants());
        log::warn!(target: "siteline::sync", "{name}: {start} to {end} is left out: {error:?}");
        self.parts[feed].failures += 1;
        self.parts[feed].put_off.add(range);
        self.failure.get_or_insert(error);
    }

    /// What was wrong with the first range that was left out: told once.
    pub(super) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    fn steps<'a>(&'a self, put_off: impl Fn(&'a Part) -> &'a Ranges) -> Vec<Step> {
        let known =
            |part: &'a Part| Known { state: &part.state, done: &part.done, put_off: put_off(part) };
        steps(&self.parts.iter().map(known).collect::<Vec<_>>(), &self.terms())
    }

    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_none() && self.open().is_empty()
    }

    /// The next chain, and what it may spend: filling leaves the pages of all that is more urgent,
    /// and of windows that become due before the allowance begins anew (§4.5.6); repeats of what is
    /// urgent leave the latter.
    pub(super) fn next(&mut self, allowance: &AllowanceState) -> Option<Step> {
        let open = self.open();
        let step = *open.first()?;
        let states = self.parts.iter().map(|part| &part.state);
        let reserve = reserve(states, self.now.as_second(), allowance);
        let urgent = open.iter().filter(|step| !step.fills).map(|step| step.pages.unwrap_or(1));
        let keep = if step.fills { reserve.saturating_add(urgent.sum()) } else { 0 };
        self.requests = self.requests();
        let spending =
            Spending { keep, keep_from_repeats: reserve.max(keep), ..Spending::default() };
        self.spending = Arc::new(spending);
        Some(step)
    }

    /// The chain of a step: one that goes on, or a new one.
    pub(super) fn chain(&self, step: &Step) -> Unfinished {
        let state = self.state(step.feed);
        let known = state.chains.iter().find(|chain| chain.range() == step.range);
        match known {
            Some(known) if step.why == Why::Resume => known.clone(),
            _ => Unfinished::new(step.range, step.why, 0),
        }
    }

    /// The service or the ledger gave no request for this chain.
    pub(super) fn refused(
        &mut self,
        feed: usize,
        chain: &Unfinished,
        allowance: &AllowanceState,
        retry_at: Option<Timestamp>,
    ) {
        if allowance.left.is_none_or(|left| left == 0) {
            self.stopped = Some(retry_at.unwrap_or(allowance.resets_at));
        } else if chain.why == Why::Fill {
            self.no_fill = true;
        } else {
            // A repeat would have eaten the reserve. What else there is may go better.
            self.parts[feed].put_off.add(chain.range());
        }
    }

    /// The state that follows from what waits.
    pub(super) fn after(&self, waiting: &Waiting) -> State {
        let mut state = self.state(waiting.feed()).clone();
        match waiting {
            Waiting::Page { page, chain, .. } => {
                state.next_sequence = page.sequence.saturating_add(1);
                state.drop_superseded(self.now.as_second());
                if page.is_last {
                    state.cover(chain, page.rows() as u64);
                } else {
                    state.keep_chain(chain.clone());
                }
            }
            Waiting::Again { chain, .. } => state.keep_chain(chain.clone()),
            Waiting::TooLong { range, .. } => {
                state.drop_chain(*range);
                state.density.refuse(range.seconds());
            }
            Waiting::GivenUp { range, .. } => state.drop_chain(*range),
        }
        state
    }

    /// It is in the target now, and so is this state.
    pub(super) fn applied(&mut self, waiting: &Waiting, state: State, applied: Applied) {
        self.waiting = None;
        self.parts[waiting.feed()].state = state;
        if let Waiting::GivenUp { feed, range, error } = waiting {
            self.leave_out(*feed, *range, error.clone());
        }
        let part = &mut self.parts[waiting.feed()];
        let Waiting::Page { page, chain, begun_here, .. } = waiting else { return };
        part.pages += 1;
        part.applied.inserted += applied.inserted;
        part.applied.revised += applied.revised;
        part.applied.unchanged += applied.unchanged;
        part.applied.flagged += applied.flagged;
        if page.is_last {
            part.chains += 1;
            // Of what an older run began, the next plan says what is to be read again.
            if *begun_here {
                part.done.add(chain.range());
            }
        }
        let times = &page.points.timestamps;
        self.newest = self.newest.max(times.values().iter().max().copied());
        self.points += page.rows() as u64;
    }

    pub(super) fn pages(&self) -> u64 {
        self.parts.iter().map(|part| part.pages).sum()
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests + self.spending.requests.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(super) fn todo(&self) -> Vec<Task> {
        self.rest().iter().map(|step| step.task(self.state(step.feed))).collect()
    }

    /// When to go on, where the allowance ended the run.
    pub(super) fn resumes_at(&self, allowance: &AllowanceState) -> Option<Timestamp> {
        let held_back = self.no_fill || self.parts.iter().any(|part| !part.put_off.is_empty());
        self.stopped.or(held_back.then_some(allowance.resets_at))
    }

    pub(super) fn reports(&self) -> Vec<FeedReport> {
        let report = |part: &Part| FeedReport {
            name: part.state.feed().name().to_owned(),
            chains: part.chains,
            pages: part.pages,
            applied: part.applied,
            sequence: part.state.sequence(),
            settled_through: part.state.settled_through(),
            read_through: part.state.read_through(),
        };
        self.parts.iter().map(report).collect()
    }
}

/// Refuses a feed that comes twice.
pub(super) fn check_feeds(feeds: &[Feed]) -> Result<()> {
    for (number, feed) in feeds.iter().enumerate() {
        if feeds[..number].iter().any(|other| other.name() == feed.name()) {
            let message = format!("the feed {:?} comes twice", feed.name());
            return Err(Error::new(Kind::Query, message));
        }
    }
    Ok(())
}

/// The state of a feed in a target, for this service; that of a new feed where there is none.
pub(super) fn load(target: &dyn Target, feed: &Feed, service: &str) -> Result<State> {
    let Some(bytes) = target.state(feed.name())? else { return Ok(State::new(feed, service)) };
    let state = State::from_bytes(&bytes).map_err(|error| {
        error.with(|context| {
            context.message = format!("feed {:?}: {}", feed.name(), context.message);
        })
    })?;
    state.check(feed, service)?;
    Ok(state)
}

/// Whole seconds that hold what is to be read again.
pub(super) fn reread_ranges(settings: &SyncSettings) -> Result<Ranges> {
    let range = |(start, end): &(Timestamp, Timestamp)| {
        if start >= end {
            let message = format!("reread: {start} is not before {end}");
            return Err(Error::new(Kind::Query, message));
        }
        let is_cut = instant(end.as_second()) < *end;
        Ok(Range::new(start.as_second(), end.as_second() + i64::from(is_cut)))
    };
    settings.reread.iter().map(range).collect()
}

pub(super) fn until_second(settings: &SyncSettings) -> Option<i64> {
    settings.until.map(Timestamp::as_second)
}
