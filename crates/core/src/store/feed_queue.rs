//! Reads of one process that write to the same feed take turns. The feed's lock, which excludes
//! other processes, would have to be polled.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::fork::Owned;
use crate::lock::Mutex;

/// A forked child has its own.
#[derive(Debug, Default)]
pub(crate) struct Turns(Owned<Mutex<HashMap<String, Arc<AsyncMutex<()>>>>>);

pub type Turn = OwnedMutexGuard<()>;

impl Turns {
    pub(crate) async fn take(&self, feed: &str) -> Turn {
        let turns = self.0.get_or_init(Mutex::default);
        let turn = Arc::clone(turns.lock().entry(feed.to_owned()).or_default());
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::fork::pretend;

    #[test]
    fn a_turn_lasts_until_it_is_dropped() {
        let turns = Turns::default();
        let first = turns.take("one").now_or_never().expect("it is free");
        assert!(turns.take("one").now_or_never().is_none());
        assert!(turns.take("other").now_or_never().is_some());
        drop(first);
        assert!(turns.take("one").now_or_never().is_some());
    }

    #[test]
    fn a_forked_child_does_not_wait_for_its_parent() {
        let turns = Turns::default();
        let _parent = turns.take("one").now_or_never().expect("it is free");
        let _child = pretend(1);
        assert!(turns.take("one").now_or_never().is_some());
    }
}
