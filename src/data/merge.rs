//! Merges pages into one table (§4.5, rule 3): a point is identified by its series and bucket
//! timestamp, the highest version wins, and the order in which pages arrive has no effect.
//!
//! A point's version is the sequence number of its page, then its row. The rows of a series are
//! mostly ascending, so complete runs are copied; rows are compared only if runs overlap.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::page::Page;
use super::paged_columns::{CopyRange, PagedColumns};
use super::point_columns::{Envelope, Identity, PointColumns};
use super::report::PageReport;
use crate::error::{Error, Kind, Result};

/// Counts of a merge, independent of the order of arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct MergeReport {
    /// The sum of the pages' reports. It is the first field, so that in the serialized record a count of
    /// the merge replaces a sum of the same name.
    #[serde(flatten)]
    pub quality: PageReport,
    /// Pages merged.
    pub pages: u64,
    /// Points on those pages.
    pub points_read: u64,
    /// Points in the table.
    pub points: u64,
    /// Series in the table.
    pub series: u64,
    /// Points that were received again with the same values.
    pub repeated: u64,
    /// Points that were received again with other values: a newer version replaced an older one.
    pub revised: u64,
}

/// The table of all pages.
#[derive(Debug, Clone)]
pub(crate) struct Merged {
    /// One row per point, by identity (null first), then timestamp; an envelope for each series
    /// that has points.
    pub points: Arc<PointColumns>,
    /// The counts of the merge.
    pub report: MergeReport,
}

/// Collects copies of the columns of pages and merges them.
#[derive(Debug, Clone)]
pub(crate) struct Merger {
    extra_columns: Vec<String>,
    columns: PagedColumns,
    /// The sequence number of each page.
    pages: Vec<u64>,
    sequences: HashSet<u64>,
    series: Vec<(Identity, Vec<SeriesRun>)>,
    known: HashMap<Identity, usize>,
    report: MergeReport,
}

/// Consecutive rows of one series on one page.
#[derive(Debug, Clone)]
struct SeriesRun {
    page: usize,
    /// Row numbers over all pages.
    rows: Range<usize>,
    ascending: bool,
}

impl SeriesRun {
    fn first(&self, timestamps: &[i64]) -> i64 {
        timestamps[self.rows.start]
    }

    fn last(&self, timestamps: &[i64]) -> i64 {
        timestamps[self.rows.end - 1]
    }
}

impl Merger {
    /// An empty table with these extra columns.
    #[must_use]
    pub(crate) fn new(extra_columns: &[String]) -> Self {
        Self {
            extra_columns: extra_columns.to_vec(),
            columns: PagedColumns::new(extra_columns.len()),
            pages: Vec::new(),
            sequences: HashSet::new(),
            series: Vec::new(),
            known: HashMap::new(),
            report: MergeReport::default(),
        }
    }

    /// Adds a page, unless a page with its sequence number was added before.
    ///
    /// # Errors
    /// `Kind::InternalError` for a page with other columns.
    pub(crate) fn push(&mut self, page: &Page) -> Result<()> {
        let points = &page.points;
        self.check_columns(points)?;
        if !self.sequences.insert(page.sequence) {
            return Ok(());
        }
        self.add(page.sequence, points);
        self.report.pages += 1;
        self.report.points_read += page.rows() as u64;
        self.report.quality.merge(&page.report);
        Ok(())
    }

    /// Adds a merged table as if it were the newest page: it gets the next sequence number, because
    /// those of different chains collide, and wins over all pages so far. Its counts are added to the
    /// report.
    ///
    /// # Errors
    /// `Kind::InternalError` for a table with other columns.
    pub(crate) fn push_merged(&mut self, table: &Merged) -> Result<()> {
        let (sequence, points) = (self.next_sequence(), &table.points);
        self.check_columns(points)?;
        self.sequences.insert(sequence);
        self.add(sequence, points);
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
        Err(Error::new(Kind::InternalError, "a page with other columns cannot be merged"))
    }

    fn add(&mut self, sequence: u64, points: &PointColumns) {
        let (index, start) = (self.pages.len(), self.columns.rows());
        self.columns.push(points);
        // Looks up each series once for the page, not once for each envelope.
        let mut indices = vec![None; points.series.len()];
        for Envelope { series, rows } in &points.envelopes {
            let known =
                *indices[*series].get_or_insert_with(|| self.series_index(&points.series[*series]));
            let rows = start + rows.start..start + rows.end;
            add_run(&mut self.series[known].1, index, rows, self.columns.timestamps());
        }
        self.pages.push(sequence);
    }

    fn series_index(&mut self, identity: &Identity) -> usize {
        if let Some(index) = self.known.get(identity) {
            return *index;
        }
        self.series.push((identity.clone(), Vec::new()));
        self.known.insert(identity.clone(), self.series.len() - 1);
        self.series.len() - 1
    }

    /// Pages merged so far.
    #[must_use]
    pub(crate) fn pages(&self) -> u64 {
        self.report.pages
    }

    /// The sequence number with which another page wins over all pages so far.
    #[must_use]
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequences.iter().max().map_or(1, |last| last + 1)
    }

    /// The table.
    ///
    /// # Errors
    /// `Kind::BodyTooLarge` if an extra column exceeds 2 GiB of text.
    pub(crate) fn finish(mut self) -> Result<Merged> {
        self.series.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        let slices = self.series.iter().map(|(_, runs)| runs.len()).sum();
        let mut plan: Vec<CopyRange> = Vec::with_capacity(slices);
        let (mut series, mut envelopes) = (Vec::new(), Vec::new());
        let mut start = 0;
        for (identity, mut runs) in self.series {
            let before = plan.len();
            let times = self.columns.timestamps();
            runs.sort_unstable_by_key(|run| (run.first(times), run.last(times)));
            let apart = runs.is_sorted_by(|left, right| left.last(times) < right.first(times));
            if apart && runs.iter().all(|run| run.ascending) {
                plan.extend(
                    runs.drain(..).map(|SeriesRun { page, rows, .. }| CopyRange { page, rows }),
                );
            } else {
                resolve(&runs, (&self.columns, &self.pages), &mut plan, &mut self.report);
            }
            let length: usize = plan[before..].iter().map(|slice| slice.rows.len()).sum();
            if length > 0 {
                envelopes.push(Envelope { series: series.len(), rows: start..start + length });
                series.push(identity);
                start += length;
            }
        }
        self.report.points = start as u64;
        self.report.series = series.len() as u64;
        let points = self.columns.merged(&plan, (series, envelopes), self.extra_columns)?;
        Ok(Merged { points: Arc::new(points), report: self.report })
    }
}

/// Adds an envelope's rows: extends the last run if they continue it, else begins a new run.
fn add_run(runs: &mut Vec<SeriesRun>, page: usize, rows: Range<usize>, timestamps: &[i64]) {
    let added = &timestamps[rows.clone()];
    let Some(first) = added.first() else { return };
    let ascending = added.is_sorted_by(|earlier, later| earlier < later);
    if let Some(run) = runs.last_mut()
        && run.page == page
        && run.rows.end == rows.start
        && run.ascending
        && ascending
        && run.last(timestamps) < *first
    {
        run.rows.end = rows.end;
        return;
    }
    runs.push(SeriesRun { page, rows, ascending });
}

/// Sorts the rows of overlapping runs and keeps the highest version of each timestamp.
fn resolve(
    runs: &[SeriesRun],
    (columns, sequences): (&PagedColumns, &[u64]),
    plan: &mut Vec<CopyRange>,
    report: &mut MergeReport,
) {
    let mut rows: Vec<(i64, u64, usize, usize)> = runs
        .iter()
        .flat_map(|run| {
            let sequence = sequences[run.page];
            run.rows.clone().map(move |row| (columns.timestamps()[row], sequence, row, run.page))
        })
        .collect();
    // Most runs are ascending: the stable sort detects and merges them, the unstable one does not.
    rows.sort_by_key(|row| *row);
    let first_slice = plan.len();
    for (index, &(timestamp, _, row, page)) in rows.iter().enumerate() {
        if let Some(&(next_timestamp, _, next_row, next_page)) = rows.get(index + 1)
            && timestamp == next_timestamp
        {
            if columns.same_values((page, row), (next_page, next_row)) {
                report.repeated += 1;
            } else {
                report.revised += 1;
            }
            continue;
        }
        match plan[first_slice..].last_mut() {
            Some(slice) if slice.page == page && slice.rows.end == row => slice.rows.end += 1,
            _ => plan.push(CopyRange { page, rows: row..row + 1 }),
        }
    }
}

#[cfg(test)]
mod tests;
