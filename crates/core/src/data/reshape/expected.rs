//! The requested and the read buckets. Their timestamps are multiples of the interval in UTC.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::super::point_columns::PointColumns;
use super::super::ranges::{Range, Ranges, ceil};
use super::local_grid::timestamp;
use crate::error::{Error, Kind, Result};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Coverage {
    /// No read returned the points.
    All,
    /// The reason and a hint, for an error.
    Part(Cow<'static, str>, Cow<'static, str>),
    Known(Expected),
}

impl Coverage {
    #[must_use]
    pub fn part(why: &'static str, hint: &'static str) -> Self {
        Self::Part(why.into(), hint.into())
    }

    /// The possible buckets. Fails if they are unknown.
    pub fn expected(self) -> Result<Expected> {
        let (why, hint) = match self {
            Self::Known(expected) if expected.width > UNKNOWN => return Ok(expected),
            Self::Known(_) => {
                ("the query has no interval".into(), "Set interval= in the read.".into())
            }
            Self::Part(why, hint) => (why, hint),
            Self::All => (
                "no read gave this table".into(),
                "Use a table that a read returned: client.scan(...).collect().".into(),
            ),
        };
        let message = format!("Missing buckets cannot be determined: {why}.");
        Err(Error::new(Kind::QueryError, message).with_hint(hint))
    }

    pub(super) fn has(&self, range: Range) -> bool {
        match self {
            Self::All => true,
            Self::Part(..) => false,
            Self::Known(expected) => {
                let read = expected.read_in(range).map(|read| expected.count(read));
                read.sum::<i64>() == expected.count(range)
            }
        }
    }

    /// Whether a bucket that begins in a range is known to be unread.
    pub(super) fn lacks(&self, range: Range) -> bool {
        matches!(self, Self::Known(_)) && !self.has(range)
    }
}

/// The width of buckets if the interval is unknown. An interval has whole seconds.
const UNKNOWN: i64 = 1;

/// All times are in microseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Expected {
    pub(super) width: i64,
    pub(super) asked: Ranges,
    pub(super) read: Ranges,
}

impl Expected {
    /// Buckets of this many seconds that begin in these ranges.
    #[must_use]
    pub fn new(
        interval_seconds: impl Into<Option<u32>>,
        asked: impl IntoIterator<Item: Into<Range>>,
        read: impl IntoIterator<Item: Into<Range>>,
    ) -> Self {
        let seconds = interval_seconds.into();
        let width = seconds.map_or(UNKNOWN, |seconds| i64::from(seconds) * 1_000_000);
        Self { width, asked: asked.into_iter().collect(), read: read.into_iter().collect() }
    }

    pub(super) fn read_in(&self, range: Range) -> impl Iterator<Item = Range> {
        self.read.overlapping(range).iter().map(move |read| read.and(range))
    }

    /// The buckets that begin in a range.
    pub(super) fn count(&self, range: Range) -> i64 {
        let before = |at: i64| (at - 1).div_euclid(self.width);
        (before(range.end) - before(range.start)).max(0)
    }

    pub(super) fn count_read(&self) -> i64 {
        self.read.iter().map(|range| self.count(range)).fold(0, i64::saturating_add)
    }

    /// The ranges of read buckets that are not among `times`, which are ascending.
    pub(super) fn gaps(&self, times: &[i64]) -> impl Iterator<Item = Range> {
        self.read.iter().flat_map(move |read| {
            let [mut open, end] = [read.start, read.end].map(|at| ceil(at, self.width));
            let there = &times[times.partition_point(|time| *time < open)..];
            let there = there.iter().copied().take_while(move |time| *time < end);
            there.chain([end]).map(move |time| {
                Range::new(std::mem::replace(&mut open, time.saturating_add(self.width)), time)
            })
        })
    }

    pub(super) fn check(&self, points: &PointColumns) -> Result<()> {
        let off = points.timestamps.values().iter().find(|time| *time % self.width != 0);
        let Some(off) = off else { return Ok(()) };
        let message = format!(
            "Missing buckets cannot be determined: the point at {} is at no multiple of the interval of {} s.",
            timestamp(*off),
            self.width / 1_000_000
        );
        Err(Error::new(Kind::QueryError, message).with_hint(
            "off_grid in the report counts such points. The interface does not document the grid.",
        ))
    }
}
