//! Which versions of which points a read gives.

use std::fmt;

use serde::de::IntoDeserializer as _;
use serde::de::value::Error as NoSuchName;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result, excerpt};

/// The state of knowledge at which points are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// As they are known now.
    Latest,
    /// As they were known when this page request had been applied.
    AsOf(u64),
    /// Only those that are new or changed since then, with a column `change`: `new`, `revised`,
    /// `absent` (flagged since), `returned` (no longer flagged).
    ChangedSince(u64),
}

/// What a read does with points that a later complete read of their window did not bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flagged {
    /// It gives them like all others.
    #[default]
    Keep,
    /// It leaves them out.
    Drop,
    /// It gives them alone.
    Only,
}

impl Flagged {
    /// The value of this name: `keep`, `drop` or `only`.
    ///
    /// # Errors
    /// `QueryError` for another name.
    pub fn parse(name: &str) -> Result<Self> {
        Self::deserialize(name.into_deserializer()).map_err(|_: NoSuchName| {
            let message = format!(
                "flagged={:?} is not known: \"keep\", \"drop\" or \"only\".",
                excerpt(name)
            );
            Error::new(Kind::QueryError, message)
        })
    }
}

impl fmt::Display for Flagged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Which points of a feed a read gives.
#[derive(Debug, Clone)]
pub struct PointFilter {
    /// Bucket timestamps in these half-open ranges, microseconds, ascending and apart; `None`: all.
    pub ranges: Option<Vec<(i64, i64)>>,
    /// At which state of knowledge.
    pub view: View,
    /// What it does with flagged points.
    pub flagged: Flagged,
}
