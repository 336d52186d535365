//! What the decoder has to know besides the body: names, forms, and the query's range.

use jiff::Timestamp;

use crate::data::query::Query;
use crate::data::report::shown_name;
use crate::data::schema::COLUMN_NAMES;
use crate::data::shape::Shape;
use crate::error::{Error, Kind, Result};

/// At most so many extra columns can be asked for.
pub(super) const MOST_EXTRA_COLUMNS: usize = 50;

/// What the decoder needs to know besides the body.
#[derive(Debug, Clone, Default)]
pub struct DecodeSettings {
    /// Names and forms.
    pub shape: Shape,
    /// Start of the query's range: epochs are recognised by it, points before it are counted.
    pub start: Option<Timestamp>,
    /// End of the query's range, exclusive.
    pub end: Option<Timestamp>,
    /// Bucket width, to count points off the grid.
    pub interval_seconds: Option<u32>,
    /// Unknown members to keep: of the point, else of its envelope; one Utf8 column of JSON text
    /// each.
    pub extra_columns: Vec<String>,
}

impl DecodeSettings {
    /// The settings for the pages of a query.
    ///
    /// # Errors
    /// `Kind::ConfigError` for a shape or extra column that cannot be ([`DecodeSettings::check`]).
    pub fn for_query(query: &Query, shape: Shape, extra_columns: Vec<String>) -> Result<Self> {
        let (start, end) = (query.start(), query.end());
        let interval_seconds = query.interval_seconds();
        let settings = Self { shape, start, end, interval_seconds, extra_columns };
        settings.check()?;
        Ok(settings)
    }

    /// Refuses a shape with a name twice, and an extra column that is empty, repeated, one of the
    /// ten columns or a member that already has a column.
    ///
    /// # Errors
    /// `Kind::ConfigError` naming the column.
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
