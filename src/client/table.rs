//! [`Table`]: what one read gave, merged, and where its numbers come from; [`Table::concat`] makes one
//! of several.

use std::sync::Arc;

use jiff::Timestamp;

use crate::data::{Bookmark, Merged, Merger, Query};
use crate::error::{Error, Kind, Result};

/// What one whole read gave: every point once, by its highest version, in canonical order.
#[derive(Debug)]
pub struct Table {
    /// The points and what was merged on the way.
    pub merged: Merged,
    /// The pages themselves, where the read is to go on: `Scan::resume` merges onto them.
    pub(super) unfinished: Option<Unfinished>,
    /// Where the points come from.
    pub provenance: Provenance,
}

/// What a failed read had read, and where exactly it stopped: what follows fits nowhere else.
#[derive(Debug, Clone)]
pub(super) struct Unfinished {
    pub(super) merger: Merger,
    pub(super) stopped_at: Bookmark,
}

/// Where numbers come from.
#[derive(Debug, Clone)]
pub struct Provenance {
    /// The query, printable. Of several that were gathered: the first, or one over all of their
    /// range where they adjoin.
    pub query: Query,
    /// The queries after it, where several were gathered that do not adjoin.
    pub further: Vec<Query>,
    /// The service's host.
    pub host: String,
    /// The service's time when the read began.
    pub read_at: Timestamp,
    /// Pages read.
    pub pages: u64,
    /// Pages of the chain before these, whose points are not here: 0 for the whole. Other than 0
    /// where a read was resumed without what had been read.
    pub resumed_after_pages: u64,
}

/// A read that failed half way: why, where to go on, and what had been read and paid for.
#[derive(Debug)]
pub struct ReadFailure {
    /// Why.
    pub error: Error,
    /// Where `Scan::resume` goes on; `None` where nothing had been read.
    pub bookmark: Option<Bookmark>,
    /// What had been read, merged; `None` where it was handed out page by page.
    pub partial: Option<Arc<Table>>,
}

impl From<Error> for ReadFailure {
    fn from(error: Error) -> Self {
        Self { error, bookmark: None, partial: None }
    }
}

impl Table {
    /// All these tables as one: nobody knows whether `to` is inclusive, so a point at a seam may be
    /// in two of them; it stands once, as the later table has it.
    ///
    /// # Errors
    /// `QueryError` for no table, for tables with different extra columns, and for buckets of
    /// different widths: a point of the one would take the place of a point of the other.
    pub fn concat(tables: &[Arc<Self>]) -> Result<Self> {
        let Some(first) = tables.first() else {
            return Err(Error::new(Kind::QueryError, "there is no table to merge"));
        };
        let schema = first.merged.points.schema();
        let interval = first.provenance.query.interval_seconds();
        for table in tables {
            if table.merged.points.schema() != schema {
                return Err(apart("have different extra columns"));
            }
            if table.provenance.query.interval_seconds() != interval {
                return Err(apart("have buckets of different widths (interval=)"));
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

fn apart(why: &str) -> Error {
    Error::new(Kind::QueryError, format!("these scans {why}: they are not one table"))
        .with_hint("Take the tables one by one: gathered[0], or for table in gathered.")
}

fn provenance(first: &Table, tables: &[Arc<Table>]) -> Provenance {
    let all = || tables.iter().map(|table| &table.provenance);
    let queries: Vec<&Query> = all().map(|one| &one.query).collect();
    let mut queries = match adjoining(&queries) {
        Some(whole) => vec![whole],
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

/// The one query whose parts these are, in whatever order: they ask the same of ranges that adjoin.
fn adjoining(queries: &[&Query]) -> Option<Query> {
    let question = queries[0].over(None, None).ok()?;
    let mut ranges: Vec<(Timestamp, Timestamp)> = Vec::with_capacity(queries.len());
    for query in queries {
        if query.over(None, None).ok()? != question {
            return None;
        }
        ranges.push((query.start()?, query.end()?));
    }
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[0].1 != pair[1].0) {
        return None;
    }
    question.over(Some(ranges[0].0), Some(ranges[ranges.len() - 1].1)).ok()
}
