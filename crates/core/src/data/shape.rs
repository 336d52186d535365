//! The parts of a page that the interface document leaves open. The user can override each
//! assumption.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimestampForm {
    /// Text is ISO 8601. A number is epoch seconds or milliseconds, whichever is nearer to the
    /// query's range.
    Detect,
    /// ISO 8601 text with a zone.
    Iso,
    /// Seconds since 1970-01-01T00:00:00Z, whole or decimal.
    EpochSeconds,
    /// Milliseconds since 1970-01-01T00:00:00Z, whole or decimal.
    EpochMilliseconds,
}

impl TimestampForm {
    /// The name in reports and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Detect => "detect",
            Self::Iso => "iso",
            Self::EpochSeconds => "epoch_seconds",
            Self::EpochMilliseconds => "epoch_milliseconds",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingCursor {
    /// The last page must contain `null`.
    Error,
    End,
}

/// The default follows the interface document, and detects what it leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shape {
    /// The top-level array of series. `None` uses the only member with objects that contain points.
    pub array: Option<String>,
    pub timestamp: TimestampForm,
    pub missing_cursor: MissingCursor,
    /// A page where this top-level member is not null is an error.
    pub error_member: String,
    /// The envelope's member with its points.
    pub points: String,
    /// The top-level member with the next cursor.
    pub next_cursor: String,
    /// The envelope's members, in column order.
    pub identity: [String; 5],
    /// This and the next four are members of a point.
    pub timestamp_member: String,
    pub value: String,
    pub minimum: String,
    pub maximum: String,
    pub sample_count: String,
    pub discovery: Option<DiscoveryShape>,
}

/// The places of ids, names and units in a discovery response, as members or paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiscoveryShape {
    /// The path of the objects that are series.
    pub series: Option<String>,
    pub site: Option<String>,
    pub line: Option<String>,
    pub machine: Option<String>,
    pub device: Option<String>,
    pub tag: Option<String>,
    pub name: Option<String>,
    pub unit: Option<String>,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            array: None,
            timestamp: TimestampForm::Detect,
            missing_cursor: MissingCursor::Error,
            error_member: "error".to_owned(),
            points: "points".to_owned(),
            next_cursor: "nextCursor".to_owned(),
            identity: ["siteId", "lineId", "machineId", "deviceId", "tagGuid"]
                .map(ToOwned::to_owned),
            timestamp_member: "timestamp".to_owned(),
            value: "value".to_owned(),
            minimum: "minimum".to_owned(),
            maximum: "maximum".to_owned(),
            sample_count: "sampleCount".to_owned(),
            discovery: None,
        }
    }
}

impl Shape {
    /// Rejects empty names, and equal names in one level.
    pub fn check(&self) -> Result<()> {
        let top = [&self.next_cursor, &self.error_member].into_iter().chain(&self.array);
        let top: Vec<&str> = top.map(String::as_str).collect();
        let envelope: Vec<&str> =
            self.identity.iter().chain([&self.points]).map(String::as_str).collect();
        for level in [top, envelope, self.point_members().to_vec()] {
            for (index, name) in level.iter().enumerate() {
                if name.is_empty() {
                    return Err(Error::new(Kind::ConfigError, "A member name of Shape is empty."));
                }
                if level[..index].contains(name) {
                    let message = format!("Shape names the member {name:?} twice.");
                    return Err(Error::new(Kind::ConfigError, message));
                }
            }
        }
        Ok(())
    }

    /// The names in column order.
    pub(super) fn point_members(&self) -> [&str; 5] {
        [&self.timestamp_member, &self.value, &self.minimum, &self.maximum, &self.sample_count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_with_a_duplicate_or_empty_member_is_refused() {
        assert!(Shape::default().check().is_ok());
        let shape = Shape { minimum: "value".to_owned(), ..Shape::default() };
        assert_eq!(shape.check().unwrap_err().kind(), Kind::ConfigError);
        let shape = Shape { points: String::new(), ..Shape::default() };
        assert_eq!(shape.check().unwrap_err().kind(), Kind::ConfigError);
    }

    #[test]
    fn forms_are_deserialized_by_name() {
        let read = serde_json::from_str::<Shape>;
        let shape = read(r#"{"timestamp": "iso", "missing_cursor": "end"}"#).unwrap();
        assert_eq!(
            (shape.timestamp, shape.missing_cursor),
            (TimestampForm::Iso, MissingCursor::End)
        );
        assert!(read(r#"{"timestamp": "unix"}"#).is_err());
        assert!(read(r#"{"missing_cursor": ""}"#).is_err());
        assert!(read(r#"{"colour": "red"}"#).is_err());
    }
}
