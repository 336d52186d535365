//! Which points of a store are asked for, and how a read of them begins.

use std::fmt;

use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Kind, Result};
use crate::python::conversions::{datetime_from_microseconds, refuse};
use crate::python::coverage::{settled, state};
use crate::python::feed::asks;
use crate::python::stored::Stored;
use crate::store::{Flagged, Store, View, Wanted};
use crate::sync::State;

/// How often a snapshot is tried for that no page arrives in the middle of.
const TRIES: usize = 3;

/// Which points of a feed.
#[derive(Debug, Clone)]
pub(crate) struct Selected {
    pub(crate) feed: String,
    /// Microseconds; half-open.
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) settled_only: bool,
    pub(crate) flagged: Flagged,
    pub(crate) view: View,
}

/// What `pickle` keeps of a [`Selected`]: the view as its kind and sequence number.
pub(crate) type Parts = (String, Option<i64>, Option<i64>, bool, &'static str, (&'static str, u64));

/// A snapshot that is being read.
pub(crate) struct Opened {
    pub(crate) stored: Stored,
    /// The state of knowledge that it shows.
    pub(crate) sequence: u64,
    /// What the feed asks.
    pub(crate) asks: String,
    pub(crate) interval_seconds: Option<u32>,
}

impl Selected {
    /// # Errors
    /// `QueryError` for a range without an inside.
    pub(crate) fn new(
        py: Python<'_>,
        feed: String,
        range: (Option<Timestamp>, Option<Timestamp>),
        view: View,
    ) -> PyResult<Self> {
        if let (Some(start), Some(end)) = range
            && start >= end
        {
            let message = format!("start={start} is not before end={end}.");
            return Err(refuse(py, Kind::Query, message));
        }
        let (start, end) = range;
        Ok(Self {
            feed,
            start: start.map(Timestamp::as_microsecond),
            end: end.map(Timestamp::as_microsecond),
            settled_only: false,
            flagged: Flagged::Keep,
            view,
        })
    }

    /// Begins to read: a step of its own. What is read is as it was known with `sequence`, to the
    /// page.
    ///
    /// # Errors
    /// `StoreError`s.
    pub(crate) fn open(&self, store: &Store) -> Result<Opened> {
        let state = state(store, &self.feed)?;
        let ranges = self.ranges(&state);
        let mut wanted = Wanted { ranges, view: self.view, flagged: self.flagged };
        let feed = state.feed();
        let opened = |stored: Stored, sequence: u64| Opened {
            stored,
            sequence,
            asks: asks(feed),
            interval_seconds: feed.input().interval_seconds,
        };
        if let View::AsOf(sequence) = self.view {
            return Ok(opened(Stored::new(store.read(&self.feed, wanted)?), sequence));
        }
        let mut sequence = store.sequence(&self.feed)?;
        for _ in 0..TRIES {
            let reader = store.read(&self.feed, wanted.clone())?;
            let after = store.sequence(&self.feed)?;
            if after == sequence {
                return Ok(opened(Stored::new(reader), sequence));
            }
            sequence = after;
        }
        // Somebody writes without a pause: what was known a moment ago stands still. Of changes there
        // is no such view; they may show a page more than they say, and would show it again.
        if matches!(self.view, View::Latest) {
            wanted.view = View::AsOf(sequence);
        }
        Ok(opened(Stored::new(store.read(&self.feed, wanted)?), sequence))
    }

    fn ranges(&self, state: &State) -> Option<Vec<(i64, i64)>> {
        let (start, end) = (self.start.unwrap_or(i64::MIN), self.end.unwrap_or(i64::MAX));
        if !self.settled_only {
            let any = self.start.is_some() || self.end.is_some();
            return any.then(|| vec![(start, end)]);
        }
        let within = settled(state)
            .into_iter()
            .map(|(from, to)| (from.max(start), to.min(end)))
            .filter(|(from, to)| from < to);
        Some(within.collect())
    }

    pub(crate) fn parts(&self) -> Parts {
        let view = match self.view {
            View::Latest => ("latest", 0),
            View::AsOf(sequence) => ("as_of", sequence),
            View::ChangedSince(sequence) => ("changes", sequence),
        };
        let flagged = flagged_name(self.flagged);
        (self.feed.clone(), self.start, self.end, self.settled_only, flagged, view)
    }

    /// What `frame.attrs["siteline"]` says of it.
    ///
    /// # Errors
    /// None but for a lack of memory.
    pub(crate) fn describe(&self, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        let at =
            |at: Option<i64>| at.map(|at| datetime_from_microseconds(dict.py(), at)).transpose();
        dict.set_item("start", at(self.start)?)?;
        dict.set_item("end", at(self.end)?)?;
        dict.set_item("settled_only", self.settled_only)?;
        dict.set_item("flagged", flagged_name(self.flagged))?;
        if let View::ChangedSince(since) = self.view {
            dict.set_item("since", since)?;
        }
        Ok(())
    }
}

impl fmt::Display for Selected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.feed)?;
        match self.view {
            View::Latest => {}
            View::AsOf(sequence) => write!(f, " as of {sequence}")?,
            View::ChangedSince(sequence) => write!(f, " changed since {sequence}")?,
        }
        let at = |at: i64| Timestamp::from_microsecond(at).unwrap_or_default();
        if let Some(start) = self.start {
            write!(f, ", from {}", at(start))?;
        }
        if let Some(end) = self.end {
            write!(f, ", to {}", at(end))?;
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

fn flagged_name(flagged: Flagged) -> &'static str {
    match flagged {
        Flagged::Keep => "keep",
        Flagged::Drop => "drop",
        Flagged::Only => "only",
    }
}

/// # Errors
/// `QueryError` for another word.
pub(crate) fn flagged_named(py: Python<'_>, name: &str) -> PyResult<Flagged> {
    match name {
        "keep" => Ok(Flagged::Keep),
        "drop" => Ok(Flagged::Drop),
        "only" => Ok(Flagged::Only),
        other => {
            let message =
                format!("flagged={other:?} is not known: \"keep\", \"drop\" or \"only\".");
            Err(refuse(py, Kind::Query, message))
        }
    }
}
