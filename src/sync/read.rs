//! Which points of a stored feed are read, and the snapshot that they are read from.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::feed::Feed;
use super::state::FeedState;
use super::stored::read_state;
use crate::error::{Error, Kind, Result};
use crate::store::{Flagged, PointFilter, Reader, Store, View};

/// How often a snapshot is retried because a page was applied meanwhile.
const TRIES: usize = 3;

/// Which points of a feed are read. Each [`ReadSpec::open`] reads the store again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadSpec {
    /// The feed's name.
    pub feed: String,
    /// The first bucket timestamp; `None` for the feed's beginning.
    pub start: Option<Timestamp>,
    /// The end of the bucket timestamps, exclusive; `None` for all.
    pub end: Option<Timestamp>,
    /// Only points in settled ranges (§4.5.5).
    pub settled_only: bool,
    /// What the read does with flagged points.
    pub flagged: Flagged,
    /// As of when.
    pub view: View,
}

/// One state of a store, opened for a [`ReadSpec`].
#[derive(Debug)]
pub struct Snapshot {
    /// Reads the points.
    pub reader: Reader,
    /// The sequence number of the newest page in the snapshot.
    pub sequence: u64,
    /// The feed as the store has it.
    pub feed: Feed,
}

impl ReadSpec {
    /// All points of a range, flagged ones too.
    ///
    /// # Errors
    /// `QueryError` for a range that is empty or reversed.
    pub fn new(
        feed: String,
        (start, end): (Option<Timestamp>, Option<Timestamp>),
        view: View,
    ) -> Result<Self> {
        if let (Some(start), Some(end)) = (start, end)
            && start >= end
        {
            let message = format!("start={start} is not before end={end}.");
            return Err(Error::new(Kind::QueryError, message));
        }
        Ok(Self { feed, start, end, settled_only: false, flagged: Flagged::Keep, view })
    }

    /// Opens a snapshot. Its points are exactly those as of its sequence number.
    ///
    /// # Errors
    /// `StoreError` for an unknown feed; the others.
    pub fn open(&self, store: &Store) -> Result<Snapshot> {
        let state = read_state(store, &self.feed)?;
        let snapshot = |reader, sequence| Snapshot { reader, sequence, feed: state.feed().clone() };
        let ranges = self.ranges(&state);
        let mut filter = PointFilter { ranges, view: self.view, flagged: self.flagged };
        if let View::AsOf(sequence) = self.view {
            return Ok(snapshot(store.read(&self.feed, filter)?, sequence));
        }
        let mut sequence = store.sequence(&self.feed)?;
        for _ in 0..TRIES {
            let reader = store.read(&self.feed, filter.clone())?;
            let after = store.sequence(&self.feed)?;
            if after == sequence {
                return Ok(snapshot(reader, sequence));
            }
            sequence = after;
        }
        // A writer keeps applying pages. Points as of an applied page do not change, so they are
        // read. There is no such view of changes: they may include a page after `sequence`, and the
        // next read of changes shows that page again.
        if matches!(self.view, View::Latest) {
            filter.view = View::AsOf(sequence);
        }
        Ok(snapshot(store.read(&self.feed, filter)?, sequence))
    }

    /// The bounds in microseconds, where both are set.
    #[must_use]
    pub fn bounds(&self) -> Option<(i64, i64)> {
        Some((self.start?.as_microsecond(), self.end?.as_microsecond()))
    }

    fn ranges(&self, state: &FeedState) -> Option<Vec<(i64, i64)>> {
        let start = self.start.map_or(i64::MIN, Timestamp::as_microsecond);
        let end = self.end.map_or(i64::MAX, Timestamp::as_microsecond);
        if !self.settled_only {
            let is_bounded = self.start.is_some() || self.end.is_some();
            return is_bounded.then(|| vec![(start, end)]);
        }
        let settled = state.settled();
        let within = settled
            .iter()
            .map(|range| {
                let (from, to) = range.instants();
                (from.as_microsecond().max(start), to.as_microsecond().min(end))
            })
            .filter(|(from, to)| from < to);
        Some(within.collect())
    }
}

impl fmt::Display for ReadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.feed)?;
        match self.view {
            View::Latest => {}
            View::AsOf(sequence) => write!(f, " as of {sequence}")?,
            View::ChangedSince(sequence) => write!(f, " changed since {sequence}")?,
        }
        if let Some(start) = self.start {
            write!(f, ", from {start}")?;
        }
        if let Some(end) = self.end {
            write!(f, ", to {end}")?;
        }
        if self.settled_only {
            f.write_str(", settled only")?;
        }
        f.write_str(match self.flagged {
            Flagged::Keep => "",
            Flagged::Drop => ", without flagged",
            Flagged::Only => ", flagged only",
        })
    }
}
