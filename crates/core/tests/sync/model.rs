//! The smallest implementation of [`Target`]: a map.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use siteline_core::store::{Applied, Delivery, Target};
use siteline_core::{Error, Kind, Result};

use crate::target::{Key, TestTarget, Values, values};

#[derive(Debug, Clone)]
struct Version {
    values: Values,
    sequence: u64,
    row: usize,
    flagged: bool,
}

#[derive(Debug, Default)]
struct Feed {
    state: Vec<u8>,
    points: BTreeMap<Key, Version>,
    sequence: u64,
}

/// Keeps feeds in memory.
#[derive(Debug, Default)]
pub(crate) struct Model {
    feeds: Mutex<HashMap<String, Feed>>,
    locked: Arc<Mutex<HashSet<String>>>,
    failures: Mutex<u32>,
}

#[derive(Debug)]
struct FeedLock {
    name: String,
    all: Arc<Mutex<HashSet<String>>>,
}

impl Drop for FeedLock {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.name);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TestTarget for Model {
    fn points(&self, feed: &str) -> BTreeMap<Key, Values> {
        let feeds = lock(&self.feeds);
        let points = feeds.get(feed).into_iter().flat_map(|feed| &feed.points);
        let kept = points.filter(|(_, version)| !version.flagged);
        kept.map(|(key, version)| (key.clone(), version.values)).collect()
    }

    fn fail(&self, times: u32) {
        *lock(&self.failures) = times;
    }

    fn replace_state(&self, feed: &str, state: &[u8]) {
        lock(&self.feeds).entry(feed.to_owned()).or_default().state = state.to_vec();
    }
}

impl Target for Model {
    fn lock(&self, feed: &str) -> Result<Box<dyn Any + Send>> {
        let name = feed.to_owned();
        if !lock(&self.locked).insert(name.clone()) {
            return Err(Error::new(Kind::StoreBusy, "another run writes to it"));
        }
        Ok(Box::new(FeedLock { name, all: Arc::clone(&self.locked) }))
    }

    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>> {
        Ok(lock(&self.feeds).get(feed).map(|feed| feed.state.clone()))
    }

    fn apply(&self, feed: &str, delivery: Option<&Delivery>, state: &[u8]) -> Result<Applied> {
        let failures = &mut *lock(&self.failures);
        if *failures > 0 {
            *failures -= 1;
            return Err(Error::new(Kind::StoreFull, "no space"));
        }
        let mut feeds = lock(&self.feeds);
        let feed = feeds.entry(feed.to_owned()).or_default();
        feed.state = state.to_vec();
        Ok(delivery.map_or_else(Applied::default, |delivery| feed.apply(delivery)))
    }
}

impl Feed {
    fn apply(&mut self, delivery: &Delivery) -> Applied {
        let (page, chain) = (&delivery.page, delivery.chain);
        assert_eq!(page.sequence, self.sequence + 1, "one number for each page");
        assert!(chain.first <= page.sequence);
        self.sequence = page.sequence;
        let mut applied = Applied::default();
        let (times, batch) = (&page.points.timestamps, page.points.batch().expect("a batch"));
        for envelope in &page.points.envelopes {
            for row in envelope.rows.clone() {
                let key = (page.points.series[envelope.series].clone(), times.value(row));
                let values = values(&batch, row);
                let new = Version { values, sequence: page.sequence, row, flagged: false };
                match self.points.get_mut(&key) {
                    None => {
                        applied.inserted += 1;
                        self.points.insert(key, new);
                    }
                    Some(old) if (old.sequence, old.row) > (new.sequence, new.row) => {
                        applied.unchanged += 1;
                    }
                    Some(old) => {
                        let same = old.values == new.values && !old.flagged;
                        *(if same { &mut applied.unchanged } else { &mut applied.revised }) += 1;
                        *old = new;
                    }
                }
            }
        }
        if page.is_last {
            let range = chain.start.as_microsecond()..chain.end.as_microsecond();
            for (key, version) in &mut self.points {
                if range.contains(&key.1) && !version.flagged && version.sequence < chain.first {
                    version.flagged = true;
                    applied.flagged += 1;
                }
            }
        }
        applied
    }
}
