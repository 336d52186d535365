//! Handles pages with values that a target cannot store. The range of their chain is set aside for
//! a day. The run continues with the other ranges and feeds.

use jiff::Timestamp;

use super::pending_write::{Change, PendingWrite, set_aside_hint};
use super::run::Run;
use super::run_state::RunState;
use super::task::Why;
use super::unfinished::UnfinishedChain;
use crate::data::ranges::Range;
use crate::error::{Error, Result};

impl Run {
    /// Handles an error of the target for the first pending write of a feed. If the values of a
    /// page caused it, the first pending write becomes a [`Change::Abandoned`].
    pub fn refused(&self, feed: &str, error: Error) -> Result<()> {
        self.work().refused_by_target(feed, error, self.client.now())
    }

    /// The next request of such a chain may be in flight.
    pub(super) fn close_unstorable(&self) {
        let feeds = std::mem::take(&mut self.work().unstorable);
        for feed in feeds {
            self.close(feed);
        }
    }
}

impl RunState {
    fn refused_by_target(&mut self, feed: &str, error: Error, now: Timestamp) -> Result<()> {
        let number = self.parts.iter().position(|part| part.state.feed().name() == feed);
        let chain =
            number.and_then(|number| Some((number, self.unstorable_chain(number, &error)?)));
        let Some((feed, chain)) = chain.filter(|_| error.context().unstorable) else {
            return Err(error);
        };
        let range = chain.range;
        self.pending.retain(|write| {
            let has_range = write.feed == feed && write.chain.range == range;
            !has_range || matches!(write.change, Change::TooLong | Change::Audited { .. })
        });
        if self.under_way.get(&feed).is_some_and(|other| other.step.range == range) {
            self.unstorable.insert(feed);
        }
        let aside = set_aside_hint(range, now);
        let error = error.with(|context| {
            context.spans.clear();
            let hint = context.hint.take();
            context.hint = Some(hint.map_or(aside.clone(), |hint| format!("{aside} {hint}")));
        });
        let change = Change::Abandoned { error, at: now };
        self.pending.push_front(PendingWrite { feed, chain, change });
        Ok(())
    }

    /// The chain of the error's range, or of the pending write.
    fn unstorable_chain(&self, feed: usize, error: &Error) -> Option<UnfinishedChain> {
        let pending = self.pending.front().filter(|write| write.feed == feed);
        let pending = pending.map(|write| &write.chain);
        let named = error.context().spans.first().map(|(start, end)| Range::between(*start, *end));
        let range = named.or_else(|| pending.map(|chain| chain.range))?;
        let mut known = pending.into_iter().chain(&self.state(feed).chains);
        let known = known.find(|chain| chain.range == range).cloned();
        Some(known.unwrap_or_else(|| UnfinishedChain::new(range, Why::Backfill, 0)))
    }
}
