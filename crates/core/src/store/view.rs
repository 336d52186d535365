//! Selects the points and versions that a read returns.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde::de::value::Error as NoSuchName;
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use serde::{Deserialize, Serialize};

use super::series_filter::SeriesFilter;
use crate::data::schema;
use crate::error::{Error, Kind, Result, excerpt};

/// The state of the points that a read returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// The current points.
    Latest,
    /// The points as they were after this page request.
    AsOf(u64),
    /// The points that are new or changed since this page request. A column `change` is `new`,
    /// `revised`, `withdrawn`, or `returned` if a point is no longer withdrawn.
    ChangedSince(u64),
    /// The changes between two page requests.
    ChangedBetween(u64, u64),
}

impl View {
    /// Whether the view returns changes instead of points.
    #[must_use]
    pub fn is_log(self) -> bool {
        matches!(self, Self::ChangedSince(_) | Self::ChangedBetween(..))
    }

    /// Returns the same view, fixed at a page request.
    #[must_use]
    pub fn fixed(self, sequence: u64) -> Self {
        match self {
            Self::Latest => Self::AsOf(sequence),
            Self::ChangedSince(since) => Self::ChangedBetween(since, sequence),
            fixed => fixed,
        }
    }

    /// The columns of points, followed by [`View::mark`].
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

/// How a read treats withdrawn points: those that a later complete read of their window lacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flagged {
    #[default]
    Keep,
    Drop,
    /// Returns only withdrawn points.
    Only,
}

/// A read option with a few named values.
pub trait Choice: DeserializeOwned {
    const OPTION: &'static str;
    /// The names, as a list for an error message.
    const CHOICES: &'static str;

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

/// The points of a feed that a read returns.
#[derive(Debug, Clone)]
pub struct PointFilter {
    /// Half-open ranges of bucket timestamps in microseconds, ascending and disjoint. `None` for
    /// all.
    pub ranges: Option<Vec<(i64, i64)>>,
    pub view: View,
    pub flagged: Flagged,
    pub series: SeriesFilter,
}
