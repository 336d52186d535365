//! The facts of a frame: attributes, report, coverage, interval and bounds.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rows::Rows;
use super::stored::Stored;
use super::{Data, Frame, Origin};
use crate::prelude::*;
use siteline_core::client::ListedIds;
use siteline_core::client::table::{Provenance, TableReport};
use siteline_core::data::PointColumns;
use siteline_core::data::reshape::Coverage;
use siteline_core::sync::read_state;

/// Rows that are computed from a read keep its facts, not its points.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(super) attributes: Value,
    /// Null for a store, which is read for its report.
    pub(super) report: Value,
    #[serde(skip)]
    pub(super) listed: Option<Arc<ListedIds>>,
    pub(super) coverage: Coverage,
    pub(super) interval_seconds: Option<u32>,
    pub(super) bounds: Option<(i64, i64)>,
}

impl Facts {
    pub(super) fn new(report: Value, coverage: Coverage) -> Self {
        let (attributes, listed) = (json!({}), None);
        Self { attributes, report, listed, coverage, interval_seconds: None, bounds: None }
    }

    fn of_read(source: &Provenance, report: &TableReport<'_>, coverage: Coverage) -> Self {
        Self {
            attributes: read_attributes(source),
            listed: Some(Arc::clone(&source.listed)),
            interval_seconds: source.query.interval_seconds(),
            bounds: source.bounds(),
            ..Self::new(json!(report), coverage)
        }
    }

    fn of_store(Stored { store, read }: &Stored) -> Self {
        let attributes = json!({
            "store": store.path().to_string_lossy(),
            "feed": read.state.spec.feed,
            "sequence": read.state.sequence,
            "coverage": read.coverage,
        });
        Self {
            attributes,
            interval_seconds: read.feed.input().interval_seconds,
            bounds: read.state.spec.bounds(),
            ..Self::new(Value::Null, read.read_coverage())
        }
    }
}

impl Frame {
    /// The expected points of a sandbox.
    pub(crate) fn unread(points: PointColumns) -> Self {
        let facts = Facts::new(json!(TableReport::unread(&points)), Coverage::All);
        let rows = Rows::of_points(Arc::new(points));
        Self::new("points", Data::Rows(rows), Origin::Made(Arc::new(facts)))
    }

    pub(super) fn facts(&self) -> Arc<Facts> {
        Arc::new(match &self.origin {
            Origin::Made(facts) => return Arc::clone(facts),
            Origin::Stored(stored) => Facts::of_store(stored),
            Origin::Read(table) => {
                Facts::of_read(&table.provenance, &table.report(), table.coverage())
            }
            Origin::Page(of) => {
                let report = TableReport::of_page(&of.page.report, &of.provenance);
                let hint = "Use the table of the whole read.";
                let coverage = Coverage::part("a page is a part of a read", hint);
                Facts { bounds: None, ..Facts::of_read(&of.provenance, &report, coverage) }
            }
        })
    }

    /// The facts without the points and without the store.
    pub(super) fn whole_facts(&self, py: Python<'_>) -> PyResult<Facts> {
        Ok(Facts {
            report: self.counts(py)?,
            coverage: self.coverage(),
            ..Arc::unwrap_or_clone(self.facts())
        })
    }

    pub(super) fn coverage(&self) -> Coverage {
        if self.is_part {
            return Coverage::part("these are the first rows only", "Use the whole table.");
        }
        self.facts().coverage.clone()
    }

    pub(super) fn counts(&self, py: Python<'_>) -> PyResult<Value> {
        match &self.origin {
            Origin::Stored(stored) => guarded(|| stored_report(py, stored)),
            _ => Ok(self.facts().report.clone()),
        }
    }
}

fn read_attributes(of: &Provenance) -> Value {
    // Python has no finer times.
    let micro = Timestamp::from_microsecond(of.read_at.as_microsecond());
    let read_at = micro.unwrap_or(of.read_at);
    let mut members = json!({"query": of.query.to_string(), "host": of.host, "read_at": read_at, "pages": of.pages});
    if of.resumed_after_pages > 0 {
        members["resumed_after_pages"] = of.resumed_after_pages.into();
    }
    if !of.through.is_empty() {
        members["through"] = json!(of.through);
    }
    members
}

fn stored_report(py: Python<'_>, stored: &Stored) -> PyResult<Value> {
    let (spec, coverage) = (&stored.read.state.spec, &stored.read.coverage);
    let state = step(py, || read_state(&stored.store, &spec.feed))?;
    let mut report = json!(coverage);
    report["store"] = stored.store.path().to_string_lossy().into();
    report["feed"] = json!(spec.feed);
    report["sequence"] = stored.read.state.sequence.into();
    report["start"] = json!(spec.start);
    report["end"] = json!(spec.end);
    report["final"] = spec.settled_only.into();
    report["withdrawn"] = stored.count_withdrawn(py)?.into();
    report["settled_through"] = json!(state.or_raise()?.settled_through());
    Ok(report)
}
