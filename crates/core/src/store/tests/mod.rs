//! Helpers of the store's tests: pages written by hand, temporary folders, and a naive model of the
//! store.

mod access;
mod arrivals;
mod codec;
mod faults;
mod files;
mod life;
mod maintenance;
mod model;
mod recent;
mod refusals;
mod requests;
mod ties;
mod views;

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use jiff::Timestamp;

use super::*;
use crate::data::report::PageReport;
use crate::data::{Identity, Page, TableBuilder};

/// Width of a bucket, microseconds.
const MINUTE: i64 = 60_000_000;

/// A folder that is removed when its test ends.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        // Windows uses the number of a process again soon.
        let name = format!("siteline-store-{}", uuid::Uuid::new_v4().simple());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("plant.siteline")
    }

    pub(super) fn store(&self) -> Store {
        Store::open(&self.file()).unwrap()
    }

    /// A store that moves recent points into blocks at these limits.
    fn store_with(&self, limits: RecentLimits) -> Store {
        Store { limits, ..self.store() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// A point of a test: series, minute, value.
type Point = (u8, i64, Option<f64>);

/// A value that differs for each request.
fn value(sequence: u64) -> f64 {
    f64::from(u32::try_from(sequence).unwrap())
}

fn identity(series: u8) -> Identity {
    let tag = (series > 0).then(|| Arc::from(format!("t{series}")));
    Identity::from([Some(Arc::from("S")), None, Some(Arc::from("M")), Some(Arc::from("")), tag])
}

/// The ids of a series, as a filter has them.
fn ids_of(series: u8) -> SeriesIds {
    identity(series).0.each_ref().map(|id| id.as_deref().map(str::to_owned))
}

fn at(minute: i64) -> Timestamp {
    Timestamp::from_microsecond(minute * MINUTE).unwrap()
}

/// A page with an envelope for each run of points of one series. A point's minimum is null, its
/// count the minute.
fn page(sequence: u64, is_last: bool, points: &[Point]) -> Page {
    let mut table = TableBuilder::new(points.len());
    for run in points.chunk_by(|one, next| one.0 == next.0) {
        for (_, minute, value) in run {
            table.push(minute * MINUTE, [*value, None, Some(0.5)], Some(*minute));
        }
        table.series(&identity(run[0].0));
    }
    let (points, report) = (Arc::new(table.finish().unwrap()), PageReport::default());
    Page { points, report, sequence, raw: None, bookmark: None, is_last }
}

/// A page and the chain that it belongs to; times are minutes.
#[derive(Debug, Clone)]
struct Request {
    sequence: u64,
    first: u64,
    start: i64,
    end: i64,
    is_last: bool,
    points: Vec<Point>,
}

impl Request {
    /// A chain of one page.
    fn whole(sequence: u64, start: i64, end: i64, points: &[Point]) -> Self {
        Self { sequence, first: sequence, start, end, is_last: true, points: points.to_vec() }
    }

    /// Applies the page, read a minute after the request before it.
    fn apply_to(&self, store: &dyn Target, state: &[u8]) -> Result<Applied> {
        let page = page(self.sequence, self.is_last, &self.points);
        let read_at = at(10_000 + self.sequence.cast_signed());
        let chain = ChainRange { first: self.first, start: at(self.start), end: at(self.end) };
        let delivery = Delivery {
            batch_first: page.sequence,
            page: Arc::new(page),
            read_at,
            chain,
            interval_seconds: Some(60),
            is_only_chain: true,
        };
        store.apply("line", Some(&delivery), state)
    }
}

/// A row as it is read: series, minute, bits of the value, and `change`.
type Shown = (u8, i64, Option<u64>, Option<String>);

fn all(view: View, flagged: Flagged) -> PointFilter {
    PointFilter { ranges: None, view, flagged, series: SeriesFilter::default() }
}

fn read(store: &Store, filter: PointFilter) -> Result<Vec<Shown>> {
    let mut reader = store.read("line", filter)?;
    let mut shown = Vec::new();
    while let Some(batch) = reader.next_batch(7)? {
        shown.extend(rows(&batch));
    }
    Ok(shown)
}

/// The same by way of [`Reader::read_into`].
fn read_whole(store: &Store, filter: PointFilter) -> Result<Vec<Shown>> {
    let mut reader = store.read("line", filter)?;
    reader.find_blocks()?;
    let mut shown = reader.allocate().unwrap();
    while reader.read_into(&mut shown, 7)? {}
    let (points, marks) = shown.finish()?;
    let columns = points.batch()?.columns().iter().cloned().chain([marks]).collect();
    Ok(rows(&RecordBatch::try_new(reader.schema(), columns).unwrap()))
}

fn latest(store: &Store) -> Vec<Shown> {
    read(store, all(View::Latest, Flagged::Drop)).unwrap()
}

/// A batch's rows; asserts that its columns agree with each other.
fn rows(batch: &RecordBatch) -> Vec<Shown> {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
    let text = |column: usize, row: usize| {
        let column = batch.column(column).as_dictionary::<Int32Type>();
        let names = column.values().as_string::<i32>();
        column.key(row).map(|key| names.value(key).to_owned())
    };
    let times = batch.column(5).as_primitive::<TimestampMicrosecondType>();
    let values = batch.column(6).as_primitive::<Float64Type>();
    let counts = batch.column(9).as_primitive::<Int64Type>();
    let row = |row: usize| {
        let minute = times.value(row) / MINUTE;
        assert_eq!(counts.value(row), minute);
        assert!(batch.column(7).is_null(row));
        assert_eq!((text(0, row).as_deref(), text(1, row)), (Some("S"), None));
        let series = text(4, row).map_or(0, |tag| tag[1..].parse().unwrap());
        let value = values.is_valid(row).then(|| values.value(row).to_bits());
        let is_log = batch.schema().field(10).name() == "change";
        (series, minute, value, is_log.then(|| text(10, row).unwrap()))
    };
    (0..batch.num_rows()).map(row).collect()
}
