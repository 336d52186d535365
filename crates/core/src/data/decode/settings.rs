//! The settings of the decoder: names, forms, and the query's range.

use std::sync::Arc;

use jiff::Timestamp;

use crate::data::query::Query;
use crate::data::report::shown_name;
use crate::data::schema::COLUMN_NAMES;
use crate::data::selection::NamedSeries;
use crate::data::shape::Shape;
use crate::error::{Error, Kind, Result};

/// The largest number of extra columns.
pub(super) const MOST_EXTRA_COLUMNS: usize = 50;

/// The settings of the decoder.
#[derive(Debug, Clone, Default)]
pub struct DecodeSettings {
    /// Names and forms.
    pub shape: Shape,
    /// Start of the query's range, used to detect the epoch unit and to count points outside.
    pub start: Option<Timestamp>,
    /// End of the query's range, exclusive.
    pub end: Option<Timestamp>,
    /// Bucket width, used to count points off the grid.
    pub interval_seconds: Option<u32>,
    /// Unknown members to keep, of the point or else of its envelope: one Utf8 column of JSON text for
    /// each.
    pub extra_columns: Vec<String>,
    /// The series that are kept because discovery lists them under a name of the selection.
    pub named: Option<Arc<NamedSeries>>,
}

impl DecodeSettings {
    /// The settings for the pages of a query.
    ///
    /// # Errors
    /// `Kind::ConfigError` for an invalid shape or extra column ([`DecodeSettings::check`]).
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

    /// Refuses a shape with a duplicate name, and an extra column that is empty, a duplicate, one of
    /// the ten columns or a member that has a column.
    ///
    /// # Errors
    /// `Kind::ConfigError` that names the column.
    pub fn check(&self) -> Result<()> {
        self.shape.check()?;
        if self.extra_columns.len() > MOST_EXTRA_COLUMNS {
            let message = format!("extra_columns has more than {MOST_EXTRA_COLUMNS} names");
            return Err(Error::new(Kind::ConfigError, message));
        }
        let members = self.shape.point_members();
        let identity = self.shape.identity.iter().map(String::as_str);
        let taken: Vec<&str> = COLUMN_NAMES
            .into_iter()
            .chain(members)
            .chain(identity)
            .chain([self.shape.points.as_str()])
            .collect();
        for (index, name) in self.extra_columns.iter().enumerate() {
            let why = if name.is_empty() {
                "is empty"
            } else if taken.contains(&name.as_str()) {
                "has a column already"
            } else if self.extra_columns[..index].contains(name) {
                "comes twice"
            } else {
                continue;
            };
            let message = format!("extra_columns: {:?} {why}", shown_name(name));
            return Err(Error::new(Kind::ConfigError, message));
        }
        Ok(())
    }
}
