//! Helpers of the store's tests: pages, temporary folders, and a naive model of the store.

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
use crate::data::ranges::Ranges;
use crate::data::report::PageReport;
use crate::data::{Identity, Page, TableBuilder};
use crate::http::test_server::{TestFolder, assert_error};

/// Width of a bucket in microseconds.
const MINUTE: i64 = 60_000_000;

const READ_ONLY: StoreOptions = StoreOptions { read_only: true, share: None };

/// A folder that is removed when its test ends.
pub(crate) struct Folder(TestFolder);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TestFolder::new())
    }

    fn file(&self) -> PathBuf {
        self.0.join("plant.siteline")
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.file()).unwrap()
    }

    fn store_with(&self, limits: RecentLimits) -> Store {
        Store { limits, ..self.store() }
    }

    /// Queries a number with another connection.
    fn number(&self, sql: &str) -> i64 {
        let connection = Connection::open(self.file()).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Executes statements with another connection.
    fn execute(&self, sql: &str) {
        Connection::open(self.file()).unwrap().execute_batch(sql).unwrap();
    }

    /// The names of its files, with the store's name removed.
    fn names(&self) -> Vec<String> {
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let entries = std::fs::read_dir(&*self.0).unwrap().flatten().map(name);
        let mut names: Vec<String> =
            entries.map(|name| name.trim_start_matches("plant.siteline").to_owned()).collect();
        names.sort();
        names
    }
}

/// A folder and its new store. Binding both drops the store before the folder.
fn new_store() -> (Folder, Store) {
    let folder = Folder::new();
    let store = folder.store();
    (folder, store)
}

/// A new store with this number of [filled](Request::filled) pages.
fn filled_store(pages: u64) -> (Folder, Store) {
    let (folder, store) = new_store();
    for sequence in 1..=pages {
        Request::filled(sequence).apply_to(&store, b"state").unwrap();
    }
    (folder, store)
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

fn ids_of(series: u8) -> SeriesIds {
    identity(series).0.each_ref().map(|id| id.as_deref().map(str::to_owned))
}

fn time_of(minute: i64) -> Timestamp {
    Timestamp::from_microsecond(minute * MINUTE).unwrap()
}

/// A page with an envelope per run of points of a series. The count of a point is its minute.
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

/// A page and its chain. Times are minutes.
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

    /// A chain of one page with a point in each of 900 minutes.
    fn filled(sequence: u64) -> Self {
        let points: Vec<Point> = (0..900).map(|m| (1, m, Some(value(sequence)))).collect();
        Self::whole(sequence, 0, 900, &points)
    }

    /// Applies the page, read a minute after the previous request.
    fn apply_to(&self, store: &dyn Target, state: &[u8]) -> Result<Applied> {
        let page = page(self.sequence, self.is_last, &self.points);
        self.apply_page(store, page, state, 10_000 + self.sequence.cast_signed(), Some(60))
    }

    /// Applies another page with the numbers and the chain of this one.
    fn apply_page(
        &self,
        store: &dyn Target,
        page: Page,
        state: &[u8],
        read_at: i64,
        interval_seconds: Option<u32>,
    ) -> Result<Applied> {
        let chain =
            ChainRange { first: self.first, start: time_of(self.start), end: time_of(self.end) };
        let delivery = Delivery {
            batch_first: page.sequence,
            page: Arc::new(page),
            read_at: time_of(read_at),
            chain,
            interval_seconds,
            is_only_chain: true,
        };
        store.apply("line", Some(&delivery), state)
    }
}

/// A row as it is read: series, minute, bits of the value, and `change`.
type Shown = (u8, i64, Option<u64>, Option<String>);

fn all(view: View, flagged: Flagged) -> PointFilter {
    PointFilter { ranges: Ranges::all(), view, flagged, series: SeriesFilter::default() }
}

fn read(store: &Store, filter: PointFilter) -> Result<Vec<Shown>> {
    let mut reader = store.read("line", filter)?;
    let mut shown = Vec::new();
    while let Some(batch) = reader.next_batch(7)? {
        shown.extend(rows(&batch));
    }
    Ok(shown)
}

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
    read(store, all(View::LATEST, Flagged::Drop)).unwrap()
}

/// Also checks that the columns are consistent.
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
