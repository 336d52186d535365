//! The test harness: a sandbox, a client of it, a target and a feed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use siteline_base::clock::Clock;
use siteline_core::auth::{Credential, PrivateKey};
use siteline_core::client::{Client, ClientSettings};
use siteline_core::data::Identity;
use siteline_core::http::BaseUrl;
use siteline_core::store::Target;
use siteline_core::sync::{
    Feed, FeedInput, FeedState, Run, SyncReport, SyncSettings, Window, WindowState,
};
use siteline_core::{Kind, Result, sync};
use siteline_sandbox::{
    AsOf, DEFAULT_SCOPES, Effect, Endpoint, Fault, Options, Sandbox, Selection, When,
};

use crate::target::{Key, Stored, Values};
pub(crate) use crate::test_kit::at;

pub(crate) const MINUTE: u64 = 60;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;

pub(crate) async fn finish(run: &Run) -> Result<SyncReport> {
    while run.fetch().await? {
        run.apply()?;
    }
    run.report()
}

pub(crate) fn pages_of(report: &SyncReport) -> u64 {
    report.feeds.iter().map(|feed| feed.pages).sum()
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A fault of data requests.
pub(crate) fn on_data(when: When, effect: Effect) -> Fault {
    Fault { on: Endpoint::Data, when, effect }
}

/// A reply with this status.
pub(crate) fn reply(status: u16) -> Effect {
    Effect::Reply { status, headers: vec![], body: "{}".into() }
}

/// A feed of one machine with three tags, buckets of ten minutes and windows of six hours.
pub(crate) fn input() -> FeedInput {
    FeedInput {
        site: Some("S1".to_owned()),
        line: Some("L1".to_owned()),
        filters: vec![("machineId".to_owned(), vec!["M1".to_owned()])],
        interval_seconds: Some(600),
        page_size: Some(25),
        lateness: seconds(2 * DAY),
        window: seconds(6 * HOUR),
        ..FeedInput::new("feed", at("2026-11-01T00:00:00Z"))
    }
}

pub(crate) struct Harness {
    pub(crate) sandbox: Sandbox,
    pub(crate) client: Client,
    pub(crate) target: Arc<Stored>,
    pub(crate) feed: Feed,
    /// Other feeds of the same runs.
    pub(crate) others: Vec<Feed>,
    pub(crate) settings: SyncSettings,
}

impl Harness {
    /// A harness at 18:00 of the first day. The client shares the sandbox's clock.
    pub(crate) fn new(options: Options, input: FeedInput) -> Self {
        let clock = Clock::frozen_at(at("2026-11-01T18:00:00Z"));
        Self::with(options, input, clock.clone(), clock, |_| {})
    }

    /// A harness of a service without late data.
    pub(crate) fn without_lateness(input: FeedInput) -> Self {
        Self::new(Options { lateness: false, ..Options::default() }, input)
    }

    /// A harness with a wrong client's clock. Returns the service's and the client's clock.
    pub(crate) fn with_clock(wrong: SignedDuration) -> (Self, Clock, Clock) {
        let theirs = Clock::frozen_at(at("2026-11-01T18:00:00Z"));
        let ours = Clock::frozen_at(theirs.wall().checked_add(wrong).expect("a time"));
        let options = Options { lateness: false, ..Options::default() };
        let input = FeedInput { since: at("2026-10-30T12:00:00Z"), ..input() };
        let harness = Self::with(options, input, theirs.clone(), ours.clone(), |_| {});
        (harness, theirs, ours)
    }

    pub(crate) fn with(
        options: Options,
        input: FeedInput,
        theirs: Clock,
        ours: Clock,
        change: impl FnOnce(&mut ClientSettings),
    ) -> Self {
        let sandbox = Sandbox::start(options, theirs).expect("a sandbox");
        let client = client_of(&sandbox, ours, change);
        let feed = Feed::new(input).expect("a feed");
        let settings = SyncSettings::default();
        let target = Arc::new(Stored::new());
        Self { sandbox, client, target, feed, others: Vec::new(), settings }
    }

    pub(crate) fn begin(&self) -> Result<Run> {
        let target: Arc<dyn Target> = self.target.clone();
        Run::begin(&self.client, target, &self.feeds(), self.settings.clone())
    }

    /// Begins a run after waiting for locked feeds.
    pub(crate) async fn begin_when_free(&self, wait: u64) -> Result<Run> {
        let (target, settings): (Arc<dyn Target>, _) = (self.target.clone(), self.settings.clone());
        Run::begin_when_free(&self.client, target, &self.feeds(), settings, seconds(wait)).await
    }

    /// The number of data requests that the service has received.
    pub(crate) fn requests(&self) -> u64 {
        self.sandbox.stats().data_requests
    }

    /// Whether the target contains exactly the current points of the service.
    pub(crate) fn equals_truth(&self) -> bool {
        self.equals_truth_to(self.now())
    }

    /// Whether each feed has exactly the current points of the first one before `end`.
    pub(crate) fn equals_truth_to(&self, end: Timestamp) -> bool {
        let truth = self.truth(end, AsOf::Now);
        self.feeds().iter().all(|feed| self.stored_of(feed, end) == truth)
    }

    pub(crate) fn feeds(&self) -> Vec<Feed> {
        std::iter::once(&self.feed).chain(&self.others).cloned().collect()
    }

    pub(crate) async fn sync(&self) -> Result<SyncReport> {
        finish(&self.begin()?).await
    }

    /// Reads and applies this number of pages. Returns the unfinished run.
    pub(crate) async fn sync_pages(&self, pages: usize) -> Result<Run> {
        let run = self.begin()?;
        for _ in 0..pages {
            if !run.fetch().await? {
                break;
            }
            run.apply()?;
        }
        Ok(run)
    }

    /// Reads to the end. Drops each fetch repeatedly, each time this number of polls later. Returns the
    /// finished run and the number of dropped fetches.
    pub(crate) async fn sync_dropping(&self, later: usize) -> (Run, u64) {
        let run = self.begin().expect("a run");
        let (mut polls, mut dropped) = (0, 0_u64);
        loop {
            let limit = async {
                for _ in 0..polls {
                    tokio::task::yield_now().await;
                }
            };
            let more = tokio::select! {
                biased;
                more = run.fetch() => Some(more.expect("a page")),
                () = limit => None,
            };
            match more {
                None => {
                    dropped += 1;
                    polls += later;
                }
                Some(true) => {
                    run.apply().expect("space");
                    polls = 0;
                }
                Some(false) => return (run, dropped),
            }
        }
    }

    pub(crate) fn plan(&self) -> sync::Plan {
        sync::plan(&self.client, &*self.target, &self.feeds(), &self.settings).expect("a plan")
    }

    pub(crate) fn advance(&self, time: u64) {
        self.sandbox.clock().advance(seconds(time));
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.sandbox.clock().wall()
    }

    pub(crate) fn state(&self) -> FeedState {
        let bytes = self.target.state(self.feed.name()).expect("a target").expect("a state");
        FeedState::from_bytes(&bytes).expect("a valid state")
    }

    /// The number of unfinished chains.
    pub(crate) fn state_chains(&self) -> usize {
        let state = self.target.state(self.feed.name()).expect("a target");
        let state = state.map(|bytes| FeedState::from_bytes(&bytes).expect("a valid state"));
        state.map_or(0, |state| state.unfinished_chains())
    }

    pub(crate) fn windows(&self) -> Vec<Window> {
        self.state().windows(self.now())
    }

    /// The target's points before `end`.
    pub(crate) fn stored(&self, end: Timestamp) -> BTreeMap<Key, Values> {
        self.stored_of(&self.feed, end)
    }

    fn stored_of(&self, feed: &Feed, end: Timestamp) -> BTreeMap<Key, Values> {
        let mut points = self.target.points(feed.name());
        points.retain(|(_, time), _| *time < end.as_microsecond());
        points
    }

    /// The service's points from the feed's beginning to `end`.
    pub(crate) fn truth(&self, end: Timestamp, as_of: AsOf) -> BTreeMap<Key, Values> {
        let input = self.feed.input();
        let selection = Selection {
            sites: input.site.iter().cloned().collect(),
            lines: input.line.iter().cloned().collect(),
            machines: input.filters.iter().flat_map(|(_, values)| values.clone()).collect(),
            ..Selection::default()
        };
        let (start, end) = (input.since.as_microsecond(), end.as_microsecond());
        let truth = self
            .sandbox
            .truth(selection, Some(start), Some(end), input.interval_seconds, as_of)
            .expect("a truth");
        let identities: Vec<Identity> = truth
            .series
            .iter()
            .map(|series| Identity::from(series.members().map(|(_, id)| id.map(Arc::from))))
            .collect();
        let bits = |value: Option<f64>| value.map(f64::to_bits);
        (0..truth.len())
            .filter(|row| truth.timestamp[*row] < end)
            .map(|row| {
                let series = usize::try_from(truth.series_of[row]).expect("a small number");
                let doubles = [truth.value[row], truth.minimum[row], truth.maximum[row]].map(bits);
                let key = (identities[series].clone(), truth.timestamp[row]);
                (key, (doubles, truth.sample_count[row]))
            })
            .collect()
    }

    /// Waits until the lateness has passed, syncs until everything is read, and compares the target with
    /// the truth.
    pub(crate) async fn settle(&mut self) {
        let input = self.feed.input().clone();
        let day = SignedDuration::from_hours(24);
        let end = self.now().checked_add(day).expect("a time").as_second();
        let end = Timestamp::from_second(end - end.rem_euclid(86_400)).expect("a time");
        self.advance(input.lateness.as_secs() + 2 * DAY);
        self.settings.until = Some(end);
        for _ in 0..30 {
            let resumes_at = match self.sync().await {
                Ok(report) if report.complete => break,
                Ok(report) => report.resumes_at,
                // The service requests a pause within the last hour of its day.
                Err(error) if error.kind() == Kind::RateLimited => error.context().retry_at,
                Err(error) => panic!("{error:?}"),
            };
            let resumes_at = resumes_at.expect("a time");
            let pause = resumes_at.duration_since(self.now()).max(SignedDuration::ZERO);
            self.advance(pause.unsigned_abs().as_secs() + 1);
        }
        assert_eq!(self.plan().tasks, [], "nothing is left to do");
        for feed in self.feeds() {
            self.feed = feed;
            self.check_settled(end);
        }
    }

    fn check_settled(&self, end: Timestamp) {
        let seen: Vec<Window> =
            self.windows().into_iter().filter(|window| window.start < end).collect();
        let is_settled = |window: &Window| window.state == WindowState::Settled;
        assert!(!seen.is_empty() && seen.iter().all(is_settled), "{seen:#?}");
        let (stored, truth) = (self.stored(end), self.truth(end, AsOf::Final));
        assert!(!truth.is_empty());
        let differs = truth.iter().find(|(key, values)| stored.get(key) != Some(values));
        assert_eq!(differs, None, "a point is missing or outdated");
        let extra = stored.keys().find(|key| !truth.contains_key(key));
        assert_eq!(extra, None, "a point that the service lacks");
    }

    /// Asserts that the client has counted the same requests as the service.
    pub(crate) fn check_ledger(&self) {
        assert_eq!(self.client.data_requests(), self.requests());
    }
}

pub(crate) fn client_of(
    sandbox: &Sandbox,
    clock: Clock,
    change: impl FnOnce(&mut ClientSettings),
) -> Client {
    client_with(sandbox, enrolled(sandbox), clock, change)
}

/// A credential of a new subject.
pub(crate) fn enrolled(sandbox: &Sandbox) -> Credential {
    let pem = include_bytes!("../../../../tests/keys/pkcs8.pem");
    let key = PrivateKey::parse(pem, None).expect("a key");
    let jwk = key.public_jwk().to_json();
    let subject = sandbox.enroll(&jwk, &DEFAULT_SCOPES).expect("a subject");
    Credential::with_key(&subject, key, None).expect("a credential").value
}

pub(crate) fn client_with(
    sandbox: &Sandbox,
    credential: Credential,
    clock: Clock,
    change: impl FnOnce(&mut ClientSettings),
) -> Client {
    let base_url = BaseUrl::parse(sandbox.base_url(), false).expect("an address");
    let mut settings = ClientSettings::new(base_url, credential);
    settings.clock = clock;
    change(&mut settings);
    Client::new(settings).expect("settings")
}
