//! The settings of the decoder: names, forms, and the query's range.

use std::sync::Arc;

use jiff::Timestamp;

use crate::data::query::Query;
use crate::data::report::shown_name;
use crate::data::schema::COLUMN_NAMES;
use crate::data::selection::NamedSeries;
use crate::data::shape::Shape;
use crate::error::{Error, Kind, Result};

pub(super) const MOST_EXTRA_COLUMNS: usize = 50;

#[derive(Debug, Clone, Default)]
pub struct DecodeSettings {
    pub shape: Shape,
    /// To detect the epoch unit and to count points outside.
    pub start: Option<Timestamp>,
    /// Exclusive.
    pub end: Option<Timestamp>,
    /// To count points off the grid.
    pub interval_seconds: Option<u32>,
    /// Unknown members of a point, or otherwise of its envelope, as JSON text.
    pub extra_columns: Vec<String>,
    /// The series that discovery lists under a selected name.
    pub named: Option<Arc<NamedSeries>>,
}

impl DecodeSettings {
    pub(crate) fn for_query(
        query: &Query,
        shape: Shape,
        extra_columns: Vec<String>,
    ) -> Result<Self> {
        let (start, end) = (query.start(), query.end());
        let interval_seconds = query.interval_seconds();
        let settings = Self { shape, start, end, interval_seconds, extra_columns, named: None };
        settings.check()?;
        Ok(settings)
    }

    /// Rejects an invalid shape, and extra columns that are empty, duplicates, or already a column.
    pub fn check(&self) -> Result<()> {
        self.shape.check()?;
        if self.extra_columns.len() > MOST_EXTRA_COLUMNS {
            let message = format!("extra_columns contains more than {MOST_EXTRA_COLUMNS} names.");
            return Err(Error::new(Kind::ConfigError, message));
        }
        let members = self.shape.point_members();
        let identity = self.shape.identity.iter().map(String::as_str);
        let taken: Vec<&str> = COLUMN_NAMES
            .into_iter()
            .chain(members)
            .chain(identity)
            .chain([self.shape.points.as_str(), "label", "withdrawn", "change"])
            .collect();
        for (index, name) in self.extra_columns.iter().enumerate() {
            let why = if name.is_empty() {
                "is empty"
            } else if taken.contains(&name.as_str()) {
                "already has a column"
            } else if self.extra_columns[..index].contains(name) {
                "occurs twice"
            } else {
                continue;
            };
            let message = format!("extra_columns: {:?} {why}.", shown_name(name));
            return Err(Error::new(Kind::ConfigError, message));
        }
        Ok(())
    }
}
