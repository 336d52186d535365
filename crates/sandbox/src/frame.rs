//! Frames to load: the rows of Arrow batches become points or readings, grouped by series.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::dataset::{Point, Reading};
use super::error::SandboxError;
use super::identity::{Identity, Names, add_names};
use siteline_base::arrow::{self, Column, WrongColumn, doubles, integers, times};

const DAY: i64 = 86_400_000_000;
const SECOND: i64 = 1_000_000;

/// The rows of a frame, grouped by series: aggregated points if the frame has a column
/// `minimum`, `maximum` or `sample_count`, otherwise raw readings.
#[derive(Debug)]
pub struct Frame {
    default_ids: Identity,
    rows: usize,
    is_aggregated: bool,
    series: BTreeMap<Identity, Vec<Point>>,
    names: BTreeMap<Identity, Names>,
}

const NAMES: [&str; 6] = ["site_name", "line_name", "machine_name", "device_name", "name", "unit"];

/// The bucket width in seconds, and the rows of each series.
pub(super) enum Rows {
    Points(u32, Vec<(Identity, Vec<Point>)>),
    Readings(u32, Vec<(Identity, Vec<Reading>)>),
}

impl Frame {
    /// An id without a column is taken from `default_ids`.
    pub fn new(default_ids: Identity) -> Self {
        let (series, names) = (BTreeMap::new(), BTreeMap::new());
        Self { default_ids, rows: 0, is_aggregated: false, series, names }
    }

    pub(super) fn take_names(&mut self) -> BTreeMap<Identity, Names> {
        std::mem::take(&mut self.names)
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the rows of a batch. It has `timestamp` and `value`, and optionally `minimum`, `maximum`,
    /// `sample_count`, `available_at`, ids, names and `unit`. The last name of a series counts.
    /// Fails for a column that is missing or of a wrong type, and for a timestamp that is null.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<(), SandboxError> {
        let timestamp = required(batch, "timestamp", times)?;
        let value = required(batch, "value", doubles)?;
        let minimum = optional(batch, "minimum", doubles)?;
        let maximum = optional(batch, "maximum", doubles)?;
        let sample_count = optional(batch, "sample_count", integers)?;
        let available_at = optional(batch, "available_at", times)?;
        let ids = self.ids(batch)?;
        let mut names = [const { None }; 6];
        for (column, name) in names.iter_mut().zip(NAMES) {
            *column = optional(batch, name, arrow::ids)?;
        }
        self.rows += batch.num_rows();
        self.is_aggregated |= minimum.is_some() || maximum.is_some() || sample_count.is_some();
        // Equal ids of a column share their memory, so their addresses identify the series.
        let mut series: HashMap<_, (Identity, Vec<Point>, Names)> = HashMap::new();
        for row in 0..batch.num_rows() {
            let null = || SandboxError::new("The column \"timestamp\" holds a null.");
            let point = Point {
                timestamp: timestamp[row].ok_or_else(null)?,
                value: value[row],
                minimum: at(minimum.as_ref(), row),
                maximum: at(maximum.as_ref(), row),
                sample_count: at(sample_count.as_ref(), row),
                available_at: at(available_at.as_ref(), row),
            };
            let key = ids.each_ref().map(|ids| ids[row].as_ref().map(Arc::as_ptr));
            let ids = || identity(ids.each_ref().map(|ids| ids[row].clone()));
            let new = || (ids(), Vec::new(), Names::default());
            let (_, points, known) = series.entry(key).or_insert_with(new);
            points.push(point);
            add_names(known, names.each_ref().map(|column| at(column.as_ref(), row)));
        }
        for (identity, points, new) in series.into_values() {
            add_names(self.names.entry(identity.clone()).or_default(), new);
            self.series.entry(identity).or_default().extend(points);
        }
        Ok(())
    }

    fn ids(&self, batch: &RecordBatch) -> Result<[Column<Arc<str>>; 5], SandboxError> {
        let column = |name: &str, default: &Option<Arc<str>>| {
            let ids = optional(batch, name, arrow::ids)?;
            Ok::<_, SandboxError>(ids.unwrap_or_else(|| vec![default.clone(); batch.num_rows()]))
        };
        Ok([
            column("site_id", &self.default_ids.site)?,
            column("line_id", &self.default_ids.line)?,
            column("machine_id", &self.default_ids.machine)?,
            column("device_id", &self.default_ids.device)?,
            column("tag_guid", &self.default_ids.tag)?,
        ])
    }

    /// The rows as points or readings. `bucket_seconds` is the bucket width of points, by default
    /// [the grid](Self::grid), and the default interval of queries of readings.
    pub(super) fn into_rows(self, bucket_seconds: Option<u32>) -> Result<Rows, SandboxError> {
        if self.is_aggregated {
            let width = bucket_seconds.map_or_else(|| self.grid(), Ok)?;
            return Ok(Rows::Points(width, self.series.into_iter().collect()));
        }
        let width = bucket_seconds.ok_or_else(|| {
            SandboxError::new(
                "Raw readings (no minimum, maximum or sample_count) need bucket=, such as \"1m\".",
            )
        })?;
        let readings = |points: Vec<Point>| points.into_iter().filter_map(reading).collect();
        let series = self.series.into_iter();
        Ok(Rows::Readings(width, series.map(|(id, points)| (id, readings(points))).collect()))
    }

    /// The widest bucket, in seconds and at most a day, with a grid that contains all timestamps.
    fn grid(&self) -> Result<u32, SandboxError> {
        let width = self.series.values().flatten().fold(DAY, |width, point| {
            let (mut one, mut other) = (width, point.timestamp.rem_euclid(DAY));
            while other != 0 {
                (one, other) = (other, one % other);
            }
            one
        });
        let seconds = u32::try_from(width / SECOND).ok().filter(|_| width % SECOND == 0);
        seconds
            .ok_or_else(|| SandboxError::new("The timestamps are not on a grid of whole seconds."))
    }
}

fn identity([site, line, machine, device, tag]: [Option<Arc<str>>; 5]) -> Identity {
    Identity { site, line, machine, device, tag }
}

/// `None` for a row without a value.
fn reading(point: Point) -> Option<Reading> {
    let Point { timestamp, value, available_at, .. } = point;
    value.map(|value| Reading { timestamp, value, available_at })
}

type Read<T> = fn(&str, &arrow_array::ArrayRef) -> Result<Column<T>, WrongColumn>;

fn optional<T>(
    batch: &RecordBatch,
    name: &str,
    read: Read<T>,
) -> Result<Option<Column<T>>, SandboxError> {
    Ok(batch.column_by_name(name).map(|array| read(name, array)).transpose()?)
}

fn required<T>(batch: &RecordBatch, name: &str, read: Read<T>) -> Result<Column<T>, SandboxError> {
    let missing = || SandboxError::new(format!("The frame has no column {name:?}."));
    optional(batch, name, read)?.ok_or_else(missing)
}

fn at<T: Clone>(column: Option<&Column<T>>, row: usize) -> Option<T> {
    column.and_then(|column| column[row].clone())
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    const MINUTE: i64 = 60 * SECOND;

    fn default_ids() -> Identity {
        Identity::new("S1", "L1", "M1", "D1", "T1")
    }

    fn times(times: Vec<Option<i64>>) -> (&'static str, ArrayRef) {
        ("timestamp", Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")))
    }

    fn numbers(name: &'static str, values: Vec<Option<f64>>) -> (&'static str, ArrayRef) {
        (name, Arc::new(Float64Array::from(values)))
    }

    fn frame(columns: Vec<(&'static str, ArrayRef)>) -> Result<Frame, String> {
        let mut frame = Frame::new(default_ids());
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        frame.append(&batch).map_err(|error| error.to_string())?;
        Ok(frame)
    }

    fn refused(frame: Frame, bucket_seconds: Option<u32>) -> String {
        frame.into_rows(bucket_seconds).map(|_| ()).expect_err("refused").to_string()
    }

    #[test]
    fn rows_are_grouped_by_their_ids_and_missing_ids_are_the_defaults() {
        let ids: ArrayRef = Arc::new(StringArray::from(vec![Some("B"), None, Some("B")]));
        let lines: ArrayRef = Arc::new(Int64Array::from(vec![7, 7, 7]));
        let columns = vec![
            times(vec![Some(0), Some(0), Some(MINUTE)]),
            numbers("value", vec![Some(1.0), Some(2.0), None]),
            numbers("maximum", vec![Some(3.0), None, None]),
            ("site_id", ids),
            ("line_id", lines),
        ];
        let frame = frame(columns).expect("a frame");
        assert_eq!(frame.rows(), 3);
        let Ok(Rows::Points(60, series)) = frame.into_rows(None) else { panic!("points of 60 s") };
        let [(nowhere, one), (site_b, two)] = &series[..] else { panic!("{series:?}") };
        assert_eq!((&nowhere.site, nowhere.line.as_deref()), (&None, Some("7")));
        assert_eq!(*site_b, Identity::new("B", "7", "M1", "D1", "T1"));
        assert_eq!(*one, [Point { value: Some(2.0), ..Point::default() }]);
        let first = Point { value: Some(1.0), maximum: Some(3.0), ..Point::default() };
        assert_eq!(*two, [first, Point { timestamp: MINUTE, ..Point::default() }]);
    }

    #[test]
    fn readings_have_a_value_and_need_a_bucket() {
        let columns = || {
            let available: ArrayRef =
                Arc::new(StringArray::from(vec![Some("1970-01-01T00:00:09Z"), None]));
            let values = numbers("value", vec![Some(1.0), None]);
            vec![times(vec![Some(5), Some(6)]), values, ("available_at", available)]
        };
        let frame_of = || frame(columns()).expect("a frame");
        assert_eq!(
            refused(frame_of(), None),
            "Raw readings (no minimum, maximum or sample_count) need bucket=, such as \"1m\"."
        );
        // A second batch, without the optional column.
        let mut frame = frame_of();
        let next = [times(vec![Some(7)]), numbers("value", vec![Some(2.0)])];
        frame.append(&RecordBatch::try_from_iter(next).expect("a batch")).expect("appended");
        let Ok(Rows::Readings(60, series)) = frame.into_rows(Some(60)) else { panic!("readings") };
        let readings = [(5, 1.0, Some(9 * SECOND)), (7, 2.0, None)]
            .map(|(timestamp, value, available_at)| Reading { timestamp, value, available_at });
        assert_eq!(series, [(default_ids(), readings.to_vec())]);
    }

    #[test]
    fn the_bucket_is_the_widest_grid_of_whole_seconds() {
        let points = |at: &[i64]| {
            let at: Vec<_> = at.iter().copied().map(Some).collect();
            let nothing = vec![None; at.len()];
            frame(vec![times(at), numbers("value", nothing.clone()), numbers("minimum", nothing)])
        };
        for (at, seconds) in [
            (&[][..], 86_400),
            (&[0, DAY], 86_400),
            (&[DAY, DAY + 6 * MINUTE, 2 * DAY + 4 * MINUTE], 120),
            (&[-SECOND], 1),
        ] {
            let rows = points(at).expect("a frame").into_rows(None);
            assert!(matches!(rows, Ok(Rows::Points(width, _)) if width == seconds), "{at:?}");
        }
        let error = refused(points(&[SECOND / 2]).expect("a frame"), None);
        assert_eq!(error, "The timestamps are not on a grid of whole seconds.");
    }

    #[test]
    fn a_frame_needs_its_times_and_values() {
        for (columns, words) in [
            (vec![numbers("value", vec![None])], "The frame has no column \"timestamp\"."),
            (vec![times(vec![Some(0)])], "The frame has no column \"value\"."),
            (
                vec![times(vec![None]), numbers("value", vec![None])],
                "The column \"timestamp\" holds a null.",
            ),
            (
                vec![numbers("timestamp", vec![None]), numbers("value", vec![None])],
                "The column \"timestamp\" holds Float64, not times with a zone.",
            ),
        ] {
            assert_eq!(frame(columns).expect_err("refused"), words);
        }
    }
}
