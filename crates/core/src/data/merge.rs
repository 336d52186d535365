//! Merges pages into one table. A point is identified by its series and timestamp. The latest version of
//! duplicate points wins, whatever the order of arrival: the higher page number, then the later row.
//!
//! Most rows of a series are ascending, so complete runs are copied. Rows are compared only if runs
//! overlap.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::page::Page;
use super::paged_columns::{PagedColumns, numbered};
use super::point_columns::{Envelope, Identity, PointColumns};
use super::report::PageReport;
use crate::error::{Error, Kind, Result};

/// The counts do not depend on the order of arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeReport {
    /// The sum of the pages' reports. It must be the first field: in the serialized record, a count
    /// of the merge replaces a sum of the same name.
    #[serde(flatten)]
    pub quality: PageReport,
    pub pages: u64,
    /// Includes the points that the selection removed.
    pub points_read: u64,
    pub points: u64,
    pub series: u64,
    /// Received again with the same values.
    pub repeated: u64,
    /// Received again with other values.
    pub revised: u64,
}

#[derive(Debug, Clone)]
pub struct Merged {
    /// Sorted by identity (null first), then timestamp. Each series with points has one envelope.
    pub points: Arc<PointColumns>,
    pub report: MergeReport,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Merger {
    extra_columns: Vec<String>,
    columns: PagedColumns,
    sequences: HashSet<u64>,
    series: SeriesList,
    /// The runs in order of arrival.
    runs: Vec<SeriesRun>,
    pub(crate) report: MergeReport,
}

/// The distinct series of all pages, in order of arrival.
#[derive(Debug, Clone, Default)]
pub(super) struct SeriesList {
    pub(super) identities: Vec<Identity>,
    known: HashMap<Identity, u32>,
    /// For each series, the series that followed it last time.
    next: Vec<u32>,
    last: u32,
}

/// Consecutive rows of one series on one page. It is small: each envelope of each page has one.
#[derive(Debug, Clone)]
struct SeriesRun {
    series: u32,
    /// The sequence number of the page.
    sequence: u64,
    rows: Range<u32>,
    ascending: bool,
}

impl SeriesList {
    /// Adds new series. The pages of a chain share their identities and usually contain them in the
    /// same order.
    pub(super) fn index(&mut self, identity: &Identity) -> u32 {
        let expected = self.next.get(self.last as usize).copied();
        let index = match expected {
            Some(expected) if self.identities[expected as usize].is_shared_with(identity) => {
                expected
            }
            _ => self.find(identity),
        };
        self.next[self.last as usize] = index;
        self.last = index;
        index
    }

    fn find(&mut self, identity: &Identity) -> u32 {
        if let Some(index) = self.known.get(identity) {
            return *index;
        }
        // Cannot overflow, because this many series do not fit into memory.
        let index = u32::try_from(self.identities.len()).unwrap_or(u32::MAX);
        self.identities.push(identity.clone());
        self.known.insert(identity.clone(), index);
        // Placeholder until another series follows.
        self.next.push(0);
        index
    }
}

impl Merger {
    #[must_use]
    pub(crate) fn new(extra_columns: &[String]) -> Self {
        Self {
            extra_columns: extra_columns.to_vec(),
            columns: PagedColumns::new(extra_columns.len()),
            ..Self::default()
        }
    }

    /// Does nothing if a page with its sequence number was added.
    pub(crate) fn push(&mut self, page: &Page) -> Result<()> {
        let points = &page.points;
        self.check_columns(points)?;
        if !self.sequences.insert(page.sequence) {
            return Ok(());
        }
        self.add(page.sequence, points)?;
        self.report.pages += 1;
        self.report.points_read += page.rows() as u64 + page.report.filtered;
        self.report.quality.merge(&page.report);
        Ok(())
    }

    /// Adds points without counts as a new page, which wins over all earlier ones. The sequence
    /// numbers of different chains collide, so it gets the next number.
    pub(crate) fn push_points(&mut self, points: &PointColumns) -> Result<()> {
        let sequence = self.next_sequence();
        self.check_columns(points)?;
        self.sequences.insert(sequence);
        self.add(sequence, points)
    }

    /// Like [`Merger::push_points`], with the counts of the table.
    pub(crate) fn push_merged(&mut self, table: &Merged) -> Result<()> {
        self.push_points(&table.points)?;
        let report = &table.report;
        self.report.pages += report.pages;
        self.report.points_read += report.points_read;
        self.report.repeated += report.repeated;
        self.report.revised += report.revised;
        self.report.quality.merge(&report.quality);
        Ok(())
    }

    fn check_columns(&self, points: &PointColumns) -> Result<()> {
        if *points.extra_columns() == self.extra_columns {
            return Ok(());
        }
        Err(Error::new(Kind::InternalError, "A page with other columns cannot be merged."))
    }

    fn add(&mut self, sequence: u64, points: &PointColumns) -> Result<()> {
        let first = self.columns.push(points)?;
        // Looks up each series once for the page, not once for each envelope.
        let mut indices = vec![None; points.series.len()];
        self.runs.reserve(points.envelopes.len());
        for Envelope { series, rows } in points.envelopes.iter().filter(|one| !one.rows.is_empty())
        {
            let series =
                *indices[*series].get_or_insert_with(|| self.series.index(&points.series[*series]));
            let times = &points.timestamps.values()[rows.clone()];
            let ascending = times.is_sorted_by(|earlier, later| earlier < later);
            let run = SeriesRun { series, sequence, rows: numbered(first, rows), ascending };
            match self.runs.last_mut() {
                Some(last) if last.is_continued_by(&run, &self.columns) => {
                    last.rows.end = run.rows.end;
                }
                _ => self.runs.push(run),
            }
        }
        Ok(())
    }

    pub(crate) fn rows(&self) -> usize {
        self.columns.rows()
    }

    /// The first points in order of arrival, with repeats.
    pub(crate) fn first(self, count: usize) -> Result<Merged> {
        let (mut plan, mut envelopes, mut series) = (Vec::new(), Vec::new(), SeriesList::default());
        let mut start = 0;
        for run in &self.runs {
            let length = run.rows.len().min(count - start);
            if length == 0 {
                break;
            }
            let index = series.index(&self.series.identities[run.series as usize]) as usize;
            envelopes.push(Envelope { series: index, rows: start..start + length });
            start += length;
            plan.push(numbered(run.rows.start, &(0..length)));
        }
        let envelopes = (series.identities, envelopes);
        let points = self.columns.merged(&plan, envelopes, self.extra_columns)?;
        Ok(Merged { points: Arc::new(points), report: self.report })
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequences.iter().max().map_or(1, |last| last + 1)
    }

    pub(crate) fn finish(mut self) -> Result<Merged> {
        let (order, mut runs, ends) = self.runs_by_series();
        let mut plan: Vec<Range<u32>> = Vec::with_capacity(runs.len());
        let (mut series, mut envelopes) = (Vec::new(), Vec::new());
        let (mut start, mut first_run) = (0, 0);
        for (index, end) in order.into_iter().zip(ends) {
            let runs = &mut runs[std::mem::replace(&mut first_run, end)..end];
            let columns = &self.columns;
            runs.sort_unstable_by_key(|run| (run.first(columns), run.last(columns)));
            let before = plan.len();
            let apart = runs.is_sorted_by(|left, right| left.last(columns) < right.first(columns));
            if apart && runs.iter().all(|run| run.ascending) {
                plan.extend(runs.iter().map(|run| run.rows.clone()));
            } else {
                resolve(runs, columns, &mut plan, &mut self.report);
            }
            let length: usize = plan[before..].iter().map(ExactSizeIterator::len).sum();
            if length > 0 {
                envelopes.push(Envelope { series: series.len(), rows: start..start + length });
                series.push(self.series.identities[index as usize].clone());
                start += length;
            }
        }
        drop(runs);
        self.report.points = start as u64;
        self.report.series = series.len() as u64;
        let points = self.columns.merged(&plan, (series, envelopes), self.extra_columns)?;
        Ok(Merged { points: Arc::new(points), report: self.report })
    }

    /// The series in canonical order, their runs, and the end of each series' runs.
    fn runs_by_series(&mut self) -> (Vec<u32>, Vec<SeriesRun>, Vec<usize>) {
        let identities = &self.series.identities;
        let mut order: Vec<u32> = (0..).take(identities.len()).collect();
        order.sort_unstable_by_key(|series| &identities[*series as usize]);
        let mut counts = vec![0_usize; identities.len()];
        for run in &self.runs {
            counts[run.series as usize] += 1;
        }
        let mut end = 0;
        let ends = order.iter().map(|series| {
            end += counts[*series as usize];
            // From here on, the position of the series' next run.
            counts[*series as usize] = end - counts[*series as usize];
            end
        });
        let ends = ends.collect();
        let runs = std::mem::take(&mut self.runs);
        let mut sorted = runs.clone();
        for run in runs {
            let place = &mut counts[run.series as usize];
            sorted[*place] = run;
            *place += 1;
        }
        (order, sorted, ends)
    }
}

impl SeriesRun {
    fn first(&self, columns: &PagedColumns) -> i64 {
        columns.timestamps[self.rows.start as usize]
    }

    fn last(&self, columns: &PagedColumns) -> i64 {
        columns.timestamps[self.rows.end as usize - 1]
    }

    /// Whether the rows of `other` follow on the same page and later in time.
    fn is_continued_by(&self, other: &Self, columns: &PagedColumns) -> bool {
        self.series == other.series
            && self.sequence == other.sequence
            && self.rows.end == other.rows.start
            && self.ascending
            && other.ascending
            && self.last(columns) < other.first(columns)
    }
}

/// Sorts the rows of overlapping runs and keeps the latest version of each timestamp.
fn resolve(
    runs: &[SeriesRun],
    columns: &PagedColumns,
    plan: &mut Vec<Range<u32>>,
    report: &mut MergeReport,
) {
    let mut rows: Vec<(i64, u64, u32)> = runs
        .iter()
        .flat_map(|run| {
            let sequence = run.sequence;
            run.rows.clone().map(move |row| (columns.timestamps[row as usize], sequence, row))
        })
        .collect();
    // Most runs are ascending. The stable sort detects and merges them, the unstable one does not.
    rows.sort_by_key(|row| *row);
    let first_slice = plan.len();
    for (index, &(timestamp, _, row)) in rows.iter().enumerate() {
        if let Some(&(next_timestamp, _, next_row)) = rows.get(index + 1)
            && timestamp == next_timestamp
        {
            if columns.same_values(row, next_row) {
                report.repeated += 1;
            } else {
                report.revised += 1;
            }
            continue;
        }
        match plan[first_slice..].last_mut() {
            Some(rows) if rows.end == row => rows.end += 1,
            _ => plan.push(row..row + 1),
        }
    }
}

#[cfg(test)]
mod tests;
