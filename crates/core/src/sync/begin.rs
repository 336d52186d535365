//! Begins a run. Feeds are locked in the order of their names, so that two runs cannot deadlock.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use super::feed::{Feed, check_distinct};
use super::run::Run;
use super::settings::SyncSettings;
use crate::client::Client;
use crate::clock::Clock;
use crate::error::{Kind, Result};
use crate::http::Deadline;
use crate::store::Target;

/// The first and the longest pause between two attempts to lock a feed.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

pub(super) type Locks = Vec<Box<dyn Any + Send>>;

impl Run {
    /// Locks the feeds and loads their states. Makes no request.
    pub fn begin(
        client: &Client,
        target: Arc<dyn Target>,
        feeds: &[Feed],
        settings: SyncSettings,
    ) -> Result<Self> {
        check_distinct(feeds)?;
        let locks =
            names(feeds).into_iter().map(|name| target.lock(name)).collect::<Result<_>>()?;
        let deadline = Deadline::after(client.time().clock(), settings.deadline);
        Self::with_locks(client, target, feeds, settings, (locks, deadline))
    }

    /// Like [`Run::begin`], but waits for feeds that another run has locked, at most `longest` and
    /// until the run's deadline. The run is planned after the wait.
    pub async fn begin_when_free(
        client: &Client,
        target: Arc<dyn Target>,
        feeds: &[Feed],
        settings: SyncSettings,
        longest: Duration,
    ) -> Result<Self> {
        check_distinct(feeds)?;
        let clock = client.time().clock();
        let deadline = Deadline::after(clock, settings.deadline);
        let wait = Deadline::after(clock, Some(longest));
        let wait = if deadline.is_before(wait) { deadline } else { wait };
        let locks = wait_for(&*target, feeds, clock, wait).await?;
        Self::with_locks(client, target, feeds, settings, (locks, deadline))
    }
}

/// Waits until the deadline, and keeps the other locks meanwhile.
pub(super) async fn wait_for(
    target: &dyn Target,
    feeds: &[Feed],
    clock: &Clock,
    deadline: Deadline,
) -> Result<Locks> {
    let begun = clock.monotonic();
    let mut locks = Locks::new();
    for name in names(feeds) {
        let [mut pause, longest] = PAUSES;
        locks.push(loop {
            let busy = match target.lock(name) {
                Err(error) if error.kind() == Kind::StoreBusy => error,
                locked => break locked?,
            };
            let left = deadline.remaining(clock).unwrap_or_default();
            if left.is_zero() {
                let waited = clock.monotonic().saturating_sub(begun).as_secs();
                return Err(busy.with(|context| {
                    context.message = format!("{}; waited {waited} s", context.message);
                }));
            }
            clock.sleep(pause.min(left)).await;
            pause = (2 * pause).min(longest);
        });
    }
    Ok(locks)
}

fn names(feeds: &[Feed]) -> Vec<&str> {
    let mut names: Vec<&str> = feeds.iter().map(Feed::name).collect();
    names.sort_unstable();
    names
}
