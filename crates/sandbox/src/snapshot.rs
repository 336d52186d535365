//! All points of a query as of one time, in order, and the part of them on a page.

use std::ops::Range;
use std::sync::Arc;

use super::aggregation::{Row, floor};
use super::dataset::Dataset;
use super::identity::Identity;
use super::options::{Options, PageCounts, PointOrder};
use super::plant::{Plant, READING};
use super::query::PointQuery;

#[derive(Debug)]
pub(super) enum DataSource {
    Generated(Plant),
    Loaded(Dataset),
}

/// The points of a query as of one time, in the order of the service.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) series: Vec<Identity>,
    pub(super) rows: Vec<Row>,
    next_change: i64,
}

impl DataSource {
    /// The points that are visible at `as_of`, series by series. `Err` is the text of the error
    /// reply.
    pub(super) fn snapshot(&self, query: &PointQuery, as_of: i64) -> Result<Snapshot, String> {
        let mut snapshot = Snapshot { series: Vec::new(), rows: Vec::new(), next_change: i64::MAX };
        match self {
            Self::Generated(plant) => {
                if query.interval % READING != 0 {
                    return Err("aggregationIntervalSeconds is not a multiple of 10".to_owned());
                }
                for tag in plant.tags() {
                    snapshot.add(&tag.identity, query, |series, rows| {
                        plant.read(tag, series, query, as_of, rows)
                    });
                }
            }
            Self::Loaded(dataset) => {
                dataset.check_interval(query)?;
                for (identity, loaded) in dataset.series() {
                    snapshot.add(identity, query, |series, rows| {
                        loaded.read(series, query, as_of, rows)
                    });
                }
            }
        }
        Ok(snapshot)
    }
}

impl Snapshot {
    /// Adds a series if the query selects it. `read` appends the rows of the series with this index
    /// and returns when they change next.
    fn add(
        &mut self,
        identity: &Identity,
        query: &PointQuery,
        read: impl FnOnce(u32, &mut Vec<Row>) -> i64,
    ) {
        let Ok(series) = u32::try_from(self.series.len()) else { return };
        if query.selection.accepts(identity) {
            self.series.push(identity.clone());
            self.next_change = self.next_change.min(read(series, &mut self.rows));
        }
    }

    /// Sorts the rows, which are series by series, into the order of the service.
    fn sort(&mut self, query: &PointQuery, options: &Options) {
        if options.order == PointOrder::SeriesThenTime {
            return;
        }
        match options.page_counts {
            PageCounts::Points => self.rows.sort_by_key(|row| (row.timestamp, row.series)),
            // Block by block: otherwise each envelope would have one point.
            PageCounts::Envelopes => {
                let block = block_width(query, options);
                self.rows
                    .sort_by_key(|row| (floor(row.timestamp, block), row.series, row.timestamp));
            }
        }
    }

    /// The rows of the page that begins after `position` items, and the next position, if there is
    /// another page.
    pub(super) fn page(
        &self,
        position: u64,
        size: u32,
        query: &PointQuery,
        options: &Options,
    ) -> (Range<usize>, Option<u64>) {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        let end = position.saturating_add(size as usize);
        let (rows, more) = match options.page_counts {
            PageCounts::Points => {
                let length = self.rows.len();
                (position.min(length)..end.min(length), end < length)
            }
            PageCounts::Envelopes => {
                let starts = self.envelope_starts(block_width(query, options));
                let at = |item: usize| starts.get(item).copied().unwrap_or(self.rows.len());
                (at(position)..at(end), end < starts.len())
            }
        };
        (rows, more.then_some(end as u64))
    }

    /// The first rows of envelopes; each series and each block of time begins one.
    fn envelope_starts(&self, block: i64) -> Vec<usize> {
        let envelope = |row: &Row| (row.series, floor(row.timestamp, block));
        (0..self.rows.len())
            .filter(|at| *at == 0 || envelope(&self.rows[at - 1]) != envelope(&self.rows[*at]))
            .collect()
    }
}

/// The time that an envelope covers in microseconds, if pages count envelopes.
pub(super) fn block_width(query: &PointQuery, options: &Options) -> i64 {
    query.interval.saturating_mul(i64::from(options.envelope_points))
}

/// The latest snapshots: all pages of a chain have the same query.
#[derive(Debug, Default)]
pub(super) struct SnapshotCache {
    /// The query, the time of the snapshot, and the snapshot.
    entries: Vec<(PointQuery, i64, Arc<Snapshot>)>,
}

const CACHE_CAPACITY: usize = 4;

impl SnapshotCache {
    /// The snapshot as of `now`: a cached one if nothing has changed, otherwise a new one.
    pub(super) fn get(
        &mut self,
        source: &DataSource,
        query: &PointQuery,
        options: &Options,
        now: i64,
    ) -> Result<Arc<Snapshot>, String> {
        self.entries.retain(|(_, made, snapshot)| (*made..snapshot.next_change).contains(&now));
        if let Some((_, _, snapshot)) = self.entries.iter().find(|(known, ..)| known == query) {
            return Ok(Arc::clone(snapshot));
        }
        let mut snapshot = source.snapshot(query, now)?;
        snapshot.sort(query, options);
        let snapshot = Arc::new(snapshot);
        if self.entries.len() == CACHE_CAPACITY {
            self.entries.remove(0);
        }
        self.entries.push((query.clone(), now, Arc::clone(&snapshot)));
        Ok(snapshot)
    }

    /// Removes all entries, after the data have changed.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}
