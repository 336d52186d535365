use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::data::Shape;
use crate::data::ranges::{Range, Ranges, instant};
use crate::error::{Error, Kind, Result};

/// The requested ranges of a feed. Only their unsettled parts are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Only {
    pub ranges: Ranges,
    /// Unfinished chains are resumed if they began after this time, or within the last hour.
    pub resumed_since: Option<Timestamp>,
}

#[derive(Debug, Clone, Default)]
pub struct SyncSettings {
    /// Buckets that begin at this time or later are not read.
    pub until: Option<Timestamp>,
    /// The planning time. By default the service's time at the beginning.
    pub now: Option<Timestamp>,
    /// Ranges to read again, even if they are settled.
    pub reread: Vec<(Timestamp, Timestamp)>,
    pub shape: Shape,
    pub deadline: Option<Duration>,
    /// The limit of pages that are requested and not yet applied; 0 counts as 1.
    pub concurrency: usize,
    /// The limit of requested pages over all feeds, without retries.
    pub max_pages: Option<u64>,
    /// The only ranges to read, by feed, even if they are not due; `None` reads what is due.
    pub only: Option<BTreeMap<String, Only>>,
}

impl SyncSettings {
    /// Nothing is read if only other feeds are requested.
    pub(super) fn only_of(&self, feed: &str) -> Option<Only> {
        self.only.as_ref().map(|only| only.get(feed).cloned().unwrap_or_default())
    }

    /// In whole seconds, rounded outwards. Fails for an empty range.
    pub fn reread_ranges(&self) -> Result<Ranges> {
        let range = |(start, end): &(Timestamp, Timestamp)| {
            if start >= end {
                let what = format!("has a range whose start, {start}, is not before {end}.");
                return Err(Error::new(Kind::QueryError, format!("reread= {what}")));
            }
            let is_cut = instant(end.as_second()) < *end;
            Ok(Range::new(start.as_second(), end.as_second() + i64::from(is_cut)))
        };
        self.reread.iter().map(range).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_kit::at;

    #[test]
    fn reread_ranges_are_rounded_outwards() {
        for (start, end, seconds) in [
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", 5),
            ("2026-01-01T00:00:00.9Z", "2026-01-01T00:00:05Z", 5),
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:05.000000001Z", 6),
            ("2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.2Z", 1),
        ] {
            let settings =
                SyncSettings { reread: vec![(at(start), at(end))], ..SyncSettings::default() };
            let first = at("2026-01-01T00:00:00Z").as_second();
            let expected = Ranges::from(Range::new(first, first + seconds));
            assert_eq!(settings.reread_ranges().expect("a range"), expected, "{start} {end}");
        }
    }
}
