//! [`Table`]: the merged result of a read and its provenance; [`Table::concat`] merges several.

use std::sync::Arc;

use jiff::Timestamp;

use crate::data::{Bookmark, Merged, Merger, Query};
use crate::error::{Error, Kind, Result};

/// The result of a read: the highest version of each point, in canonical order.
#[derive(Debug)]
pub struct Table {
    /// The points and the counts of the merge.
    pub merged: Merged,
    /// The pages of an unfinished read, onto which `Scan::resume` merges.
    pub(super) unfinished: Option<Unfinished>,
    /// The origin of the points.
    pub provenance: Provenance,
}

/// The pages of a read that failed, and the position at which it stopped, where only it can continue.
#[derive(Debug, Clone)]
pub(super) struct Unfinished {
    pub(super) merger: Merger,
    pub(super) stopped_at: Bookmark,
}

/// The origin of the points of a table.
#[derive(Debug, Clone)]
pub struct Provenance {
    /// The query. For gathered queries: one query over their ranges if these are consecutive, else the
    /// first.
    pub query: Query,
    /// The other queries, if gathered queries are not consecutive.
    pub further: Vec<Query>,
    /// The service's host.
    pub host: String,
    /// The service's time when the read began.
    pub read_at: Timestamp,
    /// Pages read.
    pub pages: u64,
    /// Pages of the chain before these, whose points are missing here; not 0 only if a read was resumed
    /// without its partial table.
    pub resumed_after_pages: u64,
}

/// A read that failed: its error, its position, and the pages that were read.
#[derive(Debug)]
pub struct ReadFailure {
    /// The error.
    pub error: Error,
    /// The bookmark for `Scan::resume`; `None` if no page was read.
    pub bookmark: Option<Bookmark>,
    /// The merged table of the pages read; `None` if they were returned page by page.
    pub partial: Option<Arc<Table>>,
}

impl From<Error> for ReadFailure {
    fn from(error: Error) -> Self {
        Self { error, bookmark: None, partial: None }
    }
}

impl Table {
    /// Merges the tables. It is unknown whether `to` is inclusive, so a point at a boundary may be in
    /// two of them; the result has it once, from the later table.
    ///
    /// # Errors
    /// `QueryError` for no table, for tables with different extra columns, and for buckets of different
    /// widths, whose points would replace each other.
    pub fn concat(tables: &[Arc<Self>]) -> Result<Self> {
        let Some(first) = tables.first() else {
            return Err(Error::new(Kind::QueryError, "there is no table to merge"));
        };
        let schema = first.merged.points.schema();
        let interval = first.provenance.query.interval_seconds();
        for table in tables {
            if table.merged.points.schema() != schema {
                return Err(incompatible("have different extra columns"));
            }
            if table.provenance.query.interval_seconds() != interval {
                return Err(incompatible("have buckets of different widths (interval=)"));
            }
        }
        let extra: Vec<String> =
            schema.fields().iter().skip(10).map(|field| field.name().clone()).collect();
        let mut merger = Merger::new(&extra);
        for table in tables {
            merger.push_merged(&table.merged)?;
        }
        let provenance = provenance(first, tables);
        Ok(Self { merged: merger.finish()?, unfinished: None, provenance })
    }
}

fn incompatible(why: &str) -> Error {
    Error::new(Kind::QueryError, format!("these scans {why}: they cannot be merged into one table"))
        .with_hint("Use the tables separately: gathered[0], or for table in gathered.")
}

fn provenance(first: &Table, tables: &[Arc<Table>]) -> Provenance {
    let all = || tables.iter().map(|table| &table.provenance);
    let queries: Vec<&Query> = all().map(|one| &one.query).collect();
    let mut queries = match consecutive(&queries) {
        Some(query) => vec![query],
        None => {
            all().flat_map(|one| [&one.query].into_iter().chain(&one.further)).cloned().collect()
        }
    };
    Provenance {
        further: queries.split_off(1),
        query: queries.swap_remove(0),
        host: first.provenance.host.clone(),
        read_at: all().map(|one| one.read_at).min().unwrap_or(first.provenance.read_at),
        pages: all().map(|one| one.pages).sum(),
        resumed_after_pages: all().map(|one| one.resumed_after_pages).sum(),
    }
}

/// One query over the ranges of all queries, if these are consecutive in any order and the queries are
/// otherwise equal.
fn consecutive(queries: &[&Query]) -> Option<Query> {
    let unbounded = queries[0].over(None, None).ok()?;
    let mut ranges: Vec<(Timestamp, Timestamp)> = Vec::with_capacity(queries.len());
    for query in queries {
        if query.over(None, None).ok()? != unbounded {
            return None;
        }
        ranges.push((query.start()?, query.end()?));
    }
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[0].1 != pair[1].0) {
        return None;
    }
    unbounded.over(Some(ranges[0].0), Some(ranges[ranges.len() - 1].1)).ok()
}
