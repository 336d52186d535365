//! Splits a range at bucket bounds.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::scan::Scan;
use crate::data::Query;
use crate::error::{Error, Kind, Result};

/// Each part costs at least one page.
const MOST_PARTS: u64 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cut {
    /// Parts as equal as the grid allows.
    Parts(u64),
    /// The last part may be shorter.
    Length(Duration),
}

/// All times are in seconds. The last bucket may be shorter.
#[derive(Debug, Clone, Copy)]
struct Grid {
    start: i64,
    end: i64,
    width: i64,
}

impl Scan {
    /// Returns scans of consecutive ranges, in order of time. The bounds are multiples of the
    /// interval from the range's start, so no bucket is split.
    pub fn split(&self, cut: Cut) -> Result<Vec<Self>> {
        if self.bookmark().is_some() {
            let message = "A scan that continues from a bookmark cannot be split, because the \
                           part of its range before the bookmark is unknown.";
            return Err(Error::new(Kind::QueryError, message)
                .with_hint("Read it to the end, or split the original scan."));
        }
        self.ranges(cut)?.into_iter().map(|part| self.over(part, (None, None))).collect()
    }

    pub(super) fn ranges(&self, cut: Cut) -> Result<Vec<Query>> {
        let at = |second| Timestamp::from_second(second).ok();
        let part = |(start, end)| self.query().over(at(start), at(end));
        self.grid()?.cut(cut)?.into_iter().map(part).collect()
    }

    fn grid(&self) -> Result<Grid> {
        let missing = |what: &str| {
            Error::new(Kind::QueryError, format!("A scan without {what}= cannot be split."))
                .with_hint(format!("Set {what}=."))
        };
        let query = self.query();
        let start = query.start().ok_or_else(|| missing("start"))?.as_second();
        let end = query.end().ok_or_else(|| missing("end"))?.as_second();
        let width = query.interval_seconds().ok_or_else(|| missing("interval"))?;
        Ok(Grid { start, end, width: width.into() })
    }
}

impl Grid {
    fn cut(self, cut: Cut) -> Result<Vec<(i64, i64)>> {
        let starts = match cut {
            Cut::Parts(parts) => self.into_parts(parts)?,
            Cut::Length(length) => self.by_length(length)?,
        };
        let ends = starts[1..].iter().copied().chain([self.end]);
        Ok(starts.iter().copied().zip(ends).collect())
    }

    fn buckets(self) -> i64 {
        self.end.saturating_sub(self.start).saturating_sub(1) / self.width + 1
    }

    fn into_parts(self, parts: u64) -> Result<Vec<i64>> {
        let refused = |message: String| Err(Error::new(Kind::QueryError, message));
        let buckets = self.buckets();
        let Some(parts) = i64::try_from(parts).ok().filter(|parts| *parts <= buckets) else {
            return refused(format!(
                "The range cannot be split into {parts} parts: it has {buckets} bucket{} of {} s.",
                if buckets == 1 { "" } else { "s" },
                self.width
            ));
        };
        if parts == 0 {
            return refused("The number of parts must be 1 or more.".to_owned());
        }
        check_number(parts)?;
        // The product of seconds and parts may exceed 64 bits.
        let first = |part: i64| i128::from(part) * i128::from(buckets) / i128::from(parts);
        let bucket = |part| i64::try_from(first(part)).unwrap_or(buckets);
        Ok((0..parts).map(|part| self.start + bucket(part) * self.width).collect())
    }

    fn by_length(self, length: Duration) -> Result<Vec<i64>> {
        let seconds = i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
        if seconds < self.width || length.subsec_nanos() != 0 || seconds % self.width != 0 {
            let message = format!(
                "Parts of {} s would split buckets of {} s.",
                length.as_secs_f64(),
                self.width
            );
            return Err(Error::new(Kind::QueryError, message)
                .with_hint("Use a multiple of the interval, or a number of parts."));
        }
        let parts = self.end.saturating_sub(self.start).saturating_sub(1) / seconds + 1;
        check_number(parts)?;
        Ok((0..parts).map(|part| self.start + part * seconds).collect())
    }
}

fn check_number(parts: i64) -> Result<()> {
    if u64::try_from(parts).is_ok_and(|parts| parts <= MOST_PARTS) {
        return Ok(());
    }
    let message = format!("{parts} parts are too many, because each costs at least one page.");
    Err(Error::new(Kind::QueryError, message).with_hint(format!("Use at most {MOST_PARTS}.")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: i64 = 86_400;

    fn refused(grid: Grid, cut: Cut) -> String {
        let error = grid.cut(cut).unwrap_err();
        assert_eq!(error.kind(), Kind::QueryError);
        error.to_string()
    }

    #[test]
    fn a_split_of_a_bucket_and_an_empty_part_are_refused() {
        let grid = Grid { start: 0, end: 600, width: 60 };
        assert!(refused(grid, Cut::Parts(0)).contains("1 or more"));
        assert!(refused(grid, Cut::Parts(11)).contains("it has 10 buckets of 60 s"));
        refused(grid, Cut::Parts(u64::MAX));
        for length in [30.0, 90.0, 60.5, 0.0] {
            let length = Duration::from_secs_f64(length);
            assert!(refused(grid, Cut::Length(length)).contains("would split buckets"));
        }
        let years = Grid { start: 0, end: 100_000 * DAY, width: 1 };
        assert!(refused(years, Cut::Parts(10_001)).contains("too many"));
        assert!(refused(years, Cut::Length(Duration::from_secs(60))).contains("too many"));
        assert_eq!(years.cut(Cut::Parts(10_000)).unwrap().len(), 10_000);
    }

    proptest! {
        #[test]
        fn parts_are_consecutive_and_on_the_grid_and_cover_the_range(
            start in -60_000_000_000..200_000_000_000_i64,
            length in 1..1_000_000_000_i64,
            width in 1..100_000_i64,
            parts in 1..200_u64,
            buckets in 1..500_u64,
        ) {
            let grid = Grid { start, end: start + length, width };
            let long = Duration::from_secs(buckets * width.unsigned_abs());
            for cut in [Cut::Parts(parts), Cut::Length(long)] {
                let Ok(ranges) = grid.cut(cut) else { continue };
                prop_assert_eq!(ranges[0].0, grid.start);
                prop_assert_eq!(ranges[ranges.len() - 1].1, grid.end);
                for pair in ranges.windows(2) {
                    prop_assert_eq!(pair[0].1, pair[1].0, "consecutive");
                }
                for (from, to) in &ranges {
                    prop_assert!(from < to);
                    prop_assert_eq!((from - start) % width, 0, "on the grid");
                }
                let size = |&(from, to): &(i64, i64)| (to - from - 1) / width + 1;
                let sizes: Vec<i64> = ranges.iter().map(size).collect();
                let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
                match cut {
                    Cut::Parts(parts) => {
                        prop_assert_eq!(ranges.len() as u64, parts);
                        prop_assert!(most - least <= 1);
                    }
                    Cut::Length(_) => {
                        let full = &sizes[..sizes.len() - 1];
                        prop_assert!(full.iter().all(|size| size.unsigned_abs() == buckets));
                    }
                }
            }
        }
    }
}
