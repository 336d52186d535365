//! [`Shape`]: everything that the interface document leaves open about a page (§2.3). The user can
//! override each of the decoder's assumptions.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};

/// How `timestamp` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimestampForm {
    /// Text is ISO 8601; a number is epoch seconds or milliseconds, the nearer to the query's range.
    Detect,
    /// ISO 8601 text with a zone.
    Iso,
    /// Seconds since 1970-01-01T00:00:00Z, whole or decimal.
    EpochSeconds,
    /// Milliseconds since 1970-01-01T00:00:00Z, whole or decimal.
    EpochMilliseconds,
}

impl TimestampForm {
    /// The name used in reports and settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Detect => "detect",
            Self::Iso => "iso",
            Self::EpochSeconds => "epoch_seconds",
            Self::EpochMilliseconds => "epoch_milliseconds",
        }
    }
}

/// What a page without `nextCursor` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingCursor {
    /// An error: the last page has `null` (§4.4, rule 4).
    Error,
    /// The last page.
    End,
}

/// The member names and forms of a data reply (§2.3). The default follows the document; what the
/// document leaves open is detected.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shape {
    /// Name of the top-level array of series envelopes; `None`: the one member whose elements are
    /// objects with points.
    pub array: Option<String>,
    /// How `timestamp` is written.
    pub timestamp: TimestampForm,
    /// What a page without `nextCursor` means.
    pub missing_cursor: MissingCursor,
    /// If a top-level member of this name is not null, the page is an error.
    pub error_member: String,
    /// The envelope's member with its points.
    pub points: String,
    /// The top-level member with the cursor of the next page.
    pub next_cursor: String,
    /// The envelope's members that identify the series, in the order of the columns.
    pub identity: [String; 5],
    /// The point's member for the bucket timestamp.
    pub timestamp_member: String,
    /// The point's member for the aggregate value.
    pub value: String,
    /// The point's member for the least reading of the bucket.
    pub minimum: String,
    /// The point's member for the greatest reading of the bucket.
    pub maximum: String,
    /// The point's member for the number of readings in the bucket.
    pub sample_count: String,
    /// Where a discovery response has series, ids, names and units.
    pub discovery: Option<DiscoveryShape>,
}

/// Where a discovery response has its series, their ids, names and units (§4.2): names of members, or paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiscoveryShape {
    /// The path of the objects that are series.
    pub series: Option<String>,
    /// The id of the site.
    pub site: Option<String>,
    /// The id of the line.
    pub line: Option<String>,
    /// The id of the machine.
    pub machine: Option<String>,
    /// The id of the device.
    pub device: Option<String>,
    /// The tag GUID.
    pub tag: Option<String>,
    /// The name of the series.
    pub name: Option<String>,
    /// The unit of the series.
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
    /// Refuses a shape in which two members of one level have the same name, or one name is empty.
    ///
    /// # Errors
    /// `Kind::ConfigError` that names the member.
    pub fn check(&self) -> Result<()> {
        let top: Vec<&str> =
            [Some(&self.next_cursor), Some(&self.error_member), self.array.as_ref()]
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect();
        let envelope: Vec<&str> =
            self.identity.iter().chain([&self.points]).map(String::as_str).collect();
        for level in [top, envelope, self.point_members().to_vec()] {
            for (index, name) in level.iter().enumerate() {
                if name.is_empty() {
                    return Err(Error::new(Kind::ConfigError, "a member name of Shape is empty"));
                }
                if level[..index].contains(name) {
                    let message = format!("Shape names the member {name:?} twice");
                    return Err(Error::new(Kind::ConfigError, message));
                }
            }
        }
        Ok(())
    }

    /// The members of a point in the order of the columns.
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
