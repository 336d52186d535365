//! Retries with backoff, and the wait that a rate limit (429) requests. A [`Call`] is one call of a
//! user: it limits the time of each attempt, decides whether another follows, waits, and records the
//! attempts. The transport never retries by itself, so N attempts are N requests.

use std::time::Duration;

use super::note::{Observer, RequestKind};
use super::open_note::OpenNote;
use crate::clock::Clock;
use crate::error::{Attempt, Error, Kind, Phase, Result, Transience};
use crate::lock::Mutex;

/// The base of pauses after throttling without `Retry-After`.
const THROTTLED_BASE: Duration = Duration::from_secs(1);

/// How many times a request is retried, and after which pauses.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Attempts in total, including the first.
    pub tries: u32,
    /// The pause before attempt `i + 1` is a random part of `base * 2^i`, at most `cap`.
    pub base: Duration,
    pub cap: Duration,
    /// Maximum `Retry-After` that a call waits for. A longer one is raised at once.
    pub max_retry_after: Duration,
    /// Maximum duration of an attempt.
    pub attempt_limit: Option<Duration>,
    /// Maximum duration of a call, except for pauses that the service requested.
    pub call_limit: Duration,
}

impl Policy {
    pub fn data() -> Self {
        Self {
            tries: 4,
            base: Duration::from_millis(200),
            cap: Duration::from_secs(20),
            max_retry_after: Duration::from_secs(60),
            attempt_limit: None,
            call_limit: Duration::from_secs(90),
        }
    }

    pub fn token() -> Self {
        Self {
            base: Duration::from_secs(1),
            attempt_limit: Some(Duration::from_secs(15)),
            call_limit: Duration::from_secs(60),
            ..Self::data()
        }
    }

    fn backoff(&self, transience: Transience, tries: u32) -> Duration {
        let base = if transience == Transience::Throttled { THROTTLED_BASE } else { self.base };
        base.saturating_mul(1_u32.checked_shl(tries).unwrap_or(u32::MAX))
            .min(self.cap)
            .mul_f64(fastrand::f64())
    }
}

/// The time by which a call must end. It is measured on the caller's clock and on the machine's,
/// because a test's clock may be frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deadline(Option<(Duration, Duration)>);

impl Deadline {
    pub const NEVER: Self = Self(None);

    /// The deadline at `limit` from now.
    pub fn after(clock: &Clock, limit: Option<Duration>) -> Self {
        let after = |now: Duration, limit| now.saturating_add(limit);
        Self(limit.map(|limit| (after(clock.monotonic(), limit), after(clock.elapsed(), limit))))
    }

    /// The remaining time; zero after the deadline.
    pub fn remaining(self, clock: &Clock) -> Option<Duration> {
        let rest = |end: Duration, now| end.saturating_sub(now);
        self.0.map(|(end, own)| rest(end, clock.monotonic()).min(rest(own, clock.elapsed())))
    }

    /// Whether this deadline is earlier than another.
    pub fn is_before(self, other: Self) -> bool {
        let never = (Duration::MAX, Duration::MAX);
        self.0.unwrap_or(never) < other.0.unwrap_or(never)
    }

    /// Runs a future until the deadline.
    pub async fn bound<T>(
        self,
        clock: &Clock,
        future: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match self.remaining(clock) {
            None => future.await,
            Some(limit) => match tokio::time::timeout(limit, future).await {
                Ok(outcome) => outcome,
                Err(_) => Err(deadline_exceeded(None)),
            },
        }
    }
}

/// Adds up to 10 %, so that callers that were throttled together do not retry together.
fn with_jitter(asked: Duration) -> Duration {
    asked.mul_f64(1.0 + fastrand::f64() / 10.0)
}

fn deadline_exceeded(last: Option<Error>) -> Error {
    ended(Kind::DeadlineExceeded, "the deadline of the call passed", last)
}

/// The error of a call that ends at a limit, with the details of its last attempt.
fn ended(kind: Kind, message: &str, last: Option<Error>) -> Error {
    match last {
        None => Error::new(kind, message),
        Some(last) => last.into_kind(kind).with(|context| {
            context.message = format!("{message}; the last attempt: {}", context.message);
        }),
    }
}

/// The error of a call that is not retried because the client's quota is exhausted.
fn without_quota(error: Error) -> Error {
    error.with(|context| {
        context.message.push_str("; not retried: the client's retry quota is exhausted");
        context.hint.get_or_insert_with(|| {
            "Too many retries of this client have failed; the quota refills within minutes."
                .to_owned()
        });
    })
}

const QUOTA: f64 = 100.0;
const TRANSIENT_COST: f64 = 10.0;
const THROTTLED_COST: f64 = 5.0;
const FIRST_SUCCESS: f64 = 1.0;
const REFILL_PER_SECOND: f64 = 1.0 / 6.0;

/// A client's budget for failed retries. An outage costs ten to twenty extra requests and then
/// about one a minute, independent of the number of threads. A successful retry costs nothing.
pub(crate) struct RetryQuota(Mutex<Level>);

struct Level {
    tokens: f64,
    /// The time of the last refill.
    at: Duration,
}

impl RetryQuota {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Level { tokens: QUOTA, at: Duration::ZERO }))
    }

    fn change(&self, clock: &Clock, change: impl FnOnce(f64) -> Option<f64>) -> bool {
        let now = clock.monotonic();
        let mut level = self.0.lock();
        let refill = now.saturating_sub(level.at).as_secs_f64() * REFILL_PER_SECOND;
        level.tokens = (level.tokens + refill).min(QUOTA);
        level.at = now;
        match change(level.tokens) {
            Some(tokens) => {
                level.tokens = tokens.min(QUOTA);
                true
            }
            None => false,
        }
    }

    /// Takes the cost of a retry; `None` if too little remains.
    fn take(&self, clock: &Clock, transience: Transience) -> Option<f64> {
        let cost =
            if transience == Transience::Throttled { THROTTLED_COST } else { TRANSIENT_COST };
        let taken = self.change(clock, |tokens| (tokens >= cost).then_some(tokens - cost));
        taken.then_some(cost)
    }

    fn give_back(&self, clock: &Clock, tokens: f64) {
        self.change(clock, |level| Some(level + tokens));
    }
}

/// One call of a user and its attempts.
pub struct Call<'a> {
    clock: &'a Clock,
    policy: &'a Policy,
    quota: &'a RetryQuota,
    deadline: Deadline,
    started: Duration,
    /// Time that does not count against the limit of the call: requested pauses, and the time to
    /// obtain a token.
    uncounted: Duration,
    tries: u32,
    cost: Option<f64>,
    reframed: bool,
    attempts: Vec<Attempt>,
}

impl<'a> Call<'a> {
    pub(crate) fn begin(
        clock: &'a Clock,
        policy: &'a Policy,
        quota: &'a RetryQuota,
        deadline: Deadline,
    ) -> Self {
        Self {
            clock,
            policy,
            quota,
            deadline,
            started: clock.monotonic(),
            uncounted: Duration::ZERO,
            tries: 0,
            cost: None,
            reframed: false,
            attempts: Vec::new(),
        }
    }

    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Runs one attempt within the limits of the attempt, the call and the caller.
    pub async fn attempt<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        let call_left = self.policy.call_limit.saturating_sub(self.counted());
        let attempt_limit = self.policy.attempt_limit.unwrap_or(Duration::MAX);
        let limited = async {
            match tokio::time::timeout(call_left.min(attempt_limit), future).await {
                Ok(outcome) => outcome,
                Err(_) if attempt_limit < call_left => Err(Error::new(
                    Kind::TransportTimeout,
                    format!("no complete reply arrived within {attempt_limit:?}"),
                )
                .with(|context| context.phase = Some(Phase::Response))),
                Err(_) => Err(self.too_long(None)),
            }
        };
        self.deadline.bound(self.clock, limited).await
    }

    /// Runs a future until the caller's deadline. Its time does not count against the limit of the
    /// call.
    pub(crate) async fn untimed<T>(
        &mut self,
        future: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let before = self.clock.monotonic();
        let outcome = self.deadline.bound(self.clock, future).await;
        self.uncounted += self.clock.monotonic().saturating_sub(before);
        outcome
    }

    /// The note of the next attempt, for an observer of the client.
    pub(crate) fn note(&self, observer: Option<&dyn Observer>, kind: RequestKind) -> OpenNote {
        OpenNote::new(observer, self.clock, kind, |note| {
            note.attempt = u32::try_from(self.attempts.len() + 1).unwrap_or(u32::MAX);
            if let Some(earlier) = self.attempts.last() {
                note.reason = Some(earlier.outcome.clone());
                note.waited = earlier.wait.unwrap_or_default();
            }
        })
    }

    /// Records a failed attempt that is retried after this pause.
    pub(crate) fn record_attempt(&mut self, error: &Error, wait: Duration) {
        self.attempts.push(Attempt { outcome: outcome(error), wait: Some(wait) });
    }

    /// Waits, unless the deadline would pass during the wait.
    ///
    /// # Errors
    /// `DeadlineExceeded` without waiting, with the details of `because`.
    pub(crate) async fn pause(&mut self, wait: Duration, because: Error) -> Result<()> {
        if self.deadline.remaining(self.clock).is_some_and(|left| left <= wait) {
            return Err(self.with_attempts(deadline_exceeded(Some(because))));
        }
        self.clock.sleep(wait).await;
        Ok(())
    }

    /// Waits before an attempt until a pause that the service requested has passed.
    ///
    /// # Errors
    /// `because` if the pause is longer than the policy allows; `DeadlineExceeded`, without
    /// waiting, if the deadline would pass during the wait.
    pub(crate) async fn wait_out(&mut self, left: Duration, because: Error) -> Result<()> {
        if left > self.policy.max_retry_after {
            return Err(self.with_attempts(because));
        }
        let wait = with_jitter(left);
        self.pause(wait, because).await?;
        self.uncounted += wait;
        Ok(())
    }

    /// Waits after a failed attempt, or returns its error if no attempt follows.
    pub(crate) async fn pause_after(&mut self, error: Error) -> Result<()> {
        self.tries += 1;
        let transience = error.transience();
        let asked = error.context().retry_after;
        let stop = match transience {
            Transience::Never => true,
            Transience::Once => std::mem::replace(&mut self.reframed, true),
            Transience::Transient | Transience::Throttled => false,
        };
        if stop
            || self.tries >= self.policy.tries
            || asked.is_some_and(|asked| asked > self.policy.max_retry_after)
        {
            return Err(self.with_last_attempt(error));
        }
        self.cost = self.quota.take(self.clock, transience);
        if self.cost.is_none() {
            return Err(self.with_last_attempt(without_quota(error)));
        }
        let wait = match asked {
            Some(asked) if !asked.is_zero() => with_jitter(asked),
            _ => self.policy.backoff(transience, self.tries),
        };
        self.record_attempt(&error, wait);
        if asked.is_some() {
            self.uncounted += wait;
        } else if self.counted() + wait >= self.policy.call_limit {
            let error = self.too_long(Some(error));
            return Err(self.with_attempts(error));
        }
        log::info!(
            target: "siteline::http",
            attempt = self.tries, status = error.context().status;
            "try {} of {} ended with {}; next one in {:.1} s",
            self.tries, self.policy.tries, outcome(&error), wait.as_secs_f64()
        );
        self.pause(wait, error).await
    }

    /// Records success. A retry returns its cost to the quota; a first attempt adds a little.
    pub(crate) fn succeeded(&self) {
        self.quota.give_back(self.clock, self.cost.unwrap_or(FIRST_SUCCESS));
    }

    /// The error of a call that ends after this attempt.
    pub(crate) fn with_last_attempt(&mut self, error: Error) -> Error {
        self.attempts.push(Attempt { outcome: outcome(&error), wait: None });
        self.with_attempts(error)
    }

    /// The error of a call that ends between attempts. Attempts that the error already contains, of
    /// a token request, follow the attempts of this call.
    pub(crate) fn with_attempts(&mut self, error: Error) -> Error {
        let attempts = std::mem::take(&mut self.attempts);
        let elapsed = self.clock.monotonic().saturating_sub(self.started);
        error.with(|context| {
            context.attempts.splice(0..0, attempts);
            context.elapsed = Some(elapsed);
        })
    }

    fn counted(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.started).saturating_sub(self.uncounted)
    }

    fn too_long(&self, last: Option<Error>) -> Error {
        let message = format!("no reply within {:?} in all attempts", self.policy.call_limit);
        ended(Kind::TransportTimeout, &message, last)
            .with(|context| context.phase = Some(Phase::Page))
    }
}

fn outcome(error: &Error) -> String {
    let context = error.context();
    if error.kind() == Kind::TruncatedBody {
        return "body truncated".to_owned();
    }
    if let Some(status) = context.status {
        return match &context.code {
            Some(code) => format!("{status} {code}"),
            None => status.to_string(),
        };
    }
    if let Some(phase) = context.phase {
        return format!("timeout in {phase}");
    }
    match error.kind() {
        Kind::TransportError if context.unsent => "not connected".to_owned(),
        Kind::TransportError => "connection lost".to_owned(),
        kind => kind.to_string(),
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
