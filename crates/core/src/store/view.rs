//! Which versions of which points a read gives.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde::de::value::Error as NoSuchName;
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use serde::{Deserialize, Serialize};

use super::series_filter::SeriesFilter;
use crate::data::schema;
use crate::error::{Error, Kind, Result, excerpt};

/// As of when points are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// As they are known now.
    Latest,
    /// As they were known when this page request had been applied.
    AsOf(u64),
    /// Only those that are new or changed since this page request, with a column `change`: `new`,
    /// `revised`, `withdrawn`, `returned` (no longer withdrawn).
    ChangedSince(u64),
    /// The same as they were known when the second of these page requests had been applied.
    ChangedBetween(u64, u64),
}

impl View {
    /// Whether it shows changes instead of points.
    #[must_use]
    pub fn is_log(self) -> bool {
        matches!(self, Self::ChangedSince(_) | Self::ChangedBetween(..))
    }

    /// The same view, as of this page request.
    #[must_use]
    pub fn fixed(self, sequence: u64) -> Self {
        match self {
            Self::Latest => Self::AsOf(sequence),
            Self::ChangedSince(since) => Self::ChangedBetween(since, sequence),
            fixed => fixed,
        }
    }

    /// The ten columns, and that of [`View::mark`].
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        let points = schema(&[]);
        let mark = Arc::new(self.mark());
        Arc::new(Schema::new(points.fields().iter().cloned().chain([mark]).collect::<Vec<_>>()))
    }

    /// The last column: how each point changed, or whether it is withdrawn.
    #[must_use]
    pub fn mark(self) -> Field {
        let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        if self.is_log() {
            Field::new("change", text, false)
        } else {
            Field::new("withdrawn", DataType::Boolean, false)
        }
    }
}

/// What a read does with flagged points: those that a later complete read of their window lacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flagged {
    /// Reads them like all others.
    #[default]
    Keep,
    /// Omits them.
    Drop,
    /// Reads only them.
    Only,
}

/// An option of a read that has a few values, each with a name.
pub trait Choice: DeserializeOwned {
    const OPTION: &'static str;
    /// The names of its values.
    const CHOICES: &'static str;

    /// The value of this name.
    fn parse(name: &str) -> Result<Self> {
        Self::deserialize(name.into_deserializer()).map_err(|_: NoSuchName| {
            let (option, name) = (Self::OPTION, excerpt(name));
            let message = format!("{option}={name:?} is not one of {}.", Self::CHOICES);
            Error::new(Kind::QueryError, message)
        })
    }
}

impl Choice for Flagged {
    const OPTION: &'static str = "withdrawn";
    const CHOICES: &'static str = "\"keep\", \"drop\" and \"only\"";
}

impl fmt::Display for Flagged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Which points of a feed a read gives.
#[derive(Debug, Clone)]
pub struct PointFilter {
    /// Bucket timestamps in these half-open ranges, in microseconds, ascending and disjoint; `None`
    /// for all.
    pub ranges: Option<Vec<(i64, i64)>>,
    /// As of when.
    pub view: View,
    /// What the read does with flagged points.
    pub flagged: Flagged,
    pub series: SeriesFilter,
}
