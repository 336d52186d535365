//! A frame as `pickle` keeps it: its rows as an Arrow IPC stream, and where they are from. The pages of a read
//! that failed and the names of discovery are not kept. Points of a store are pickled as the path of the store
//! and the selection.

use std::io::Cursor;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::root_as_message;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use jiff::Timestamp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::{Deserialize, Serialize};

use super::rows::Rows;
use super::shown::Ids;
use super::stored::Stored;
use super::{Data, Facts, Frame, Origin, broken, identities};
use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::{detached, guarded};
use crate::bridge::runtime::step;
use crate::convert::capsule::fitted;
use crate::convert::state::{dict, restore};
use siteline_core::client::table::{Provenance, StoreShare, Table};
use siteline_core::data::reshape::{Expected, Measure, Wide};
use siteline_core::data::{Identity, MergeReport, Merged, PointColumns, Query, QueryInput, schema};
use siteline_core::error::{Error, Kind, Result};
use siteline_core::store::{Store, StoreOptions};
use siteline_core::sync::{PinnedRead, PinnedState};

/// A table without its points.
#[derive(Serialize, Deserialize)]
struct TableState {
    query: QueryInput,
    further: Vec<QueryInput>,
    host: String,
    read_at: Timestamp,
    pages: u64,
    resumed_after_pages: u64,
    not_listed: Vec<String>,
    #[serde(default)]
    through: Vec<StoreShare>,
    is_partial: bool,
    /// Where a read stopped that `resume(onto=)` continues.
    #[serde(default)]
    stopped_at: Option<[u8; 32]>,
    report: MergeReport,
}

impl From<&Table> for TableState {
    fn from(table: &Table) -> Self {
        let Provenance { query, further, host, read_at, pages, resumed_after_pages, .. } =
            &table.provenance;
        Self {
            query: query.input().clone(),
            further: further.iter().map(|query| query.input().clone()).collect(),
            host: host.clone(),
            read_at: *read_at,
            pages: *pages,
            resumed_after_pages: *resumed_after_pages,
            not_listed: table.provenance.not_listed.clone(),
            through: table.provenance.through.clone(),
            is_partial: table.is_partial,
            stopped_at: table.stopped_at,
            report: table.merged.report.clone(),
        }
    }
}

impl TableState {
    /// The table with its points.
    ///
    /// # Errors
    /// `QueryError` for a wrong query.
    fn table(self, points: PointColumns) -> Result<Table> {
        let query = Query::new(self.query)?;
        let further = self.further.into_iter().map(Query::new).collect::<Result<_>>()?;
        let provenance = Provenance {
            query,
            further,
            host: self.host,
            read_at: self.read_at,
            pages: self.pages,
            resumed_after_pages: self.resumed_after_pages,
            not_listed: self.not_listed,
            listed: Arc::default(),
            through: self.through,
        };
        let merged = Merged { points: Arc::new(points), report: self.report };
        let table = Table::whole(merged, provenance);
        Ok(Table { stopped_at: self.stopped_at, is_partial: self.is_partial, ..table })
    }
}

/// What a frame is, without its rows.
#[derive(Serialize, Deserialize)]
struct Kept {
    kind: String,
    every: Option<i64>,
    form: Form,
    interval_seconds: Option<u32>,
    bounds: Option<(i64, i64)>,
    read: Option<(Timestamp, Option<u32>)>,
    expected: Option<Expected>,
}

/// The form of the rows.
#[derive(Serialize, Deserialize)]
enum Form {
    Read(Option<TableState>),
    Rows { is_points: bool, time: String, own: usize },
    Wide { measure: String, series: Vec<Ids> },
    Stored { path: PathBuf, read_only: bool, read: PinnedState },
}

/// The state of a pickled frame: what it is, its rows, its provenance and its report.
type State<'py> = (Bound<'py, PyAny>, Bound<'py, PyBytes>, Bound<'py, PyAny>, Bound<'py, PyAny>);

const KINDS: [&str; 7] =
    ["points", "changes", "resampled", "pivoted", "completeness", "gaps", "series"];

impl Frame {
    fn form(&self) -> PyResult<(Form, Option<RecordBatch>)> {
        Ok(match (&self.origin, &self.data) {
            (Origin::Page(_), _) => {
                let why = "A page cannot be pickled or copied: pickle the result of its to_pandas() or \
                           to_arrow().";
                return Err(PyTypeError::new_err(why));
            }
            (Origin::Stored(stored), Data::Stream) => {
                let Stored { store, read } = &**stored;
                let (path, read_only) = (store.path().to_path_buf(), store.options().read_only);
                (Form::Stored { path, read_only, read: read.state() }, None)
            }
            (Origin::Read(table), Data::Rows(rows)) => {
                (Form::Read(Some(TableState::from(&**table))), Some(rows.plain_batch().or_raise()?))
            }
            (Origin::Unread, Data::Rows(rows)) if self.kind == "points" => {
                (Form::Read(None), Some(rows.plain_batch().or_raise()?))
            }
            (_, Data::Rows(rows)) => {
                let (is_points, time, own) = rows.form();
                let form = Form::Rows { is_points, time: time.to_owned(), own };
                (form, Some(rows.plain_batch().or_raise()?))
            }
            (_, Data::Wide(wide)) => {
                let ids =
                    |one: &Identity| one.0.each_ref().map(|id| id.as_deref().map(str::to_owned));
                let series = wide.series.iter().map(ids).collect();
                let form = Form::Wide { measure: wide.measure.name().to_owned(), series };
                (form, Some(plain_wide(wide).or_raise()?))
            }
            (_, Data::Stream) => return Err(PyTypeError::new_err("This frame cannot be pickled.")),
        })
    }
}

#[pymethods]
impl Frame {
    /// The state for `restore()`.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<State<'py>> {
        let (form, batch) = self.form()?;
        let rows = batch.map(|batch| detached(py, || written(&batch))?.or_raise()).transpose()?;
        let kept = Kept {
            kind: self.kind.to_owned(),
            every: self.every,
            form,
            interval_seconds: self.interval_seconds(),
            bounds: self.bounds(),
            read: self.read_facts(),
            expected: self.expected().ok(),
        };
        let is_derived = matches!(kept.form, Form::Rows { .. } | Form::Wide { .. });
        let nothing = || PyDict::new(py).into_any();
        let provenance = if is_derived { self.provenance(py)? } else { nothing() };
        let report = if is_derived { self.report(py)? } else { nothing() };
        Ok((dict(py, &kept)?, PyBytes::new(py, &rows.unwrap_or_default()), provenance, report))
    }

    /// Makes a frame of its state.
    #[staticmethod]
    fn restore(
        py: Python<'_>,
        state: &Bound<'_, PyAny>,
        rows: &[u8],
        provenance: Py<PyAny>,
        report: Py<PyAny>,
    ) -> PyResult<Self> {
        let Kept { kind, every, form, interval_seconds, bounds, read, expected } = restore(state)?;
        let kind = KINDS.into_iter().find(|known| *known == kind);
        let kind = kind.ok_or_else(|| foreign("its kind is unknown")).or_raise()?;
        if let Form::Stored { path, read_only, read } = form {
            return guarded(|| {
                let open = || -> Result<Stored> {
                    let options = StoreOptions { read_only, share: None };
                    let store = Arc::new(Store::open_with(&path, options)?);
                    Ok(Stored { read: PinnedRead::restore(&store, read)?, store })
                };
                Ok(Self::of_store(step(py, open)?.or_raise()?))
            });
        }
        let batch = detached(py, || read_batch(rows))?.or_raise()?;
        let facts = || {
            let expected = expected.ok_or_else(|| {
                Error::new(
                    Kind::QueryError,
                    "it is not known which buckets are missing of this table",
                )
            });
            let listed = None;
            Origin::Derived(Arc::new(Facts {
                provenance,
                report,
                listed,
                expected,
                interval_seconds,
                bounds,
                read,
            }))
        };
        let (data, origin) = match form {
            Form::Read(state) => {
                let points = points_of(&batch).or_raise()?;
                return Ok(match state {
                    None => Self::unread(points),
                    Some(state) => Self::of_table(Arc::new(state.table(points).or_raise()?)),
                });
            }
            Form::Rows { is_points, time, own } => {
                let key = if time.is_empty() { 5 } else { 6 };
                let first = if is_points { own } else { key };
                check_first(&batch, if is_points { 10 } else { key }).or_raise()?;
                if first > batch.num_columns() {
                    return Err(foreign("it has too few columns")).or_raise();
                }
                (Data::Rows(Rows::of_batch(&batch, is_points, &time, first)), facts())
            }
            Form::Wide { measure, series } => {
                let measure = Measure::parse(&measure).or_raise()?;
                (Data::Wide(Arc::new(wide_of(&batch, measure, series).or_raise()?)), facts())
            }
            Form::Stored { .. } => return Err(foreign("it has no rows")).or_raise(),
        };
        Ok(Self { every, ..Self::new(kind, data, origin) })
    }
}

/// A pivoted table with numbers as the names of its columns: labels may be equal.
fn plain_wide(wide: &Wide) -> Result<RecordBatch> {
    let times = Field::new("timestamp", wide.timestamps.data_type().clone(), false);
    let columns = wide.columns.iter().enumerate();
    let columns =
        columns.map(|(n, column)| Field::new(n.to_string(), column.data_type().clone(), true));
    let fields: Vec<Field> = [times].into_iter().chain(columns).collect();
    let times: ArrayRef = Arc::new(wide.timestamps.clone());
    fitted(Schema::new(fields), [times].into_iter().chain(wide.columns.iter().cloned()).collect())
}

fn wide_of(batch: &RecordBatch, measure: Measure, series: Vec<Ids>) -> Result<Wide> {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
    let times =
        batch.columns().first().and_then(|one| one.as_primitive_opt::<TimestampMicrosecondType>());
    let times = times.ok_or_else(|| foreign("it has no times"))?;
    let columns = batch.columns()[1..].to_vec();
    let mut cells: Vec<u64> = Vec::with_capacity(columns.len() * batch.num_rows());
    for column in &columns {
        if let Some(numbers) = column.as_primitive_opt::<Float64Type>() {
            cells.extend(numbers.values().iter().map(|number| number.to_bits()));
        } else if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
            cells.extend(numbers.values().iter().map(|number| number.cast_unsigned()));
        }
    }
    if cells.len() != columns.len() * batch.num_rows() || columns.len() != series.len() {
        return Err(foreign("it has other columns"));
    }
    let series = identities(series).collect();
    let (timestamps, cells) = (times.clone(), arrow_buffer::Buffer::from_vec(cells));
    Ok(Wide { measure, timestamps, series, labels: None, columns, cells })
}

/// A batch as an Arrow IPC stream.
fn written(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut stream = Vec::with_capacity(batch.get_array_memory_size());
    let mut writer = StreamWriter::try_new(&mut stream, &batch.schema()).map_err(|e| broken(&e))?;
    writer.write(batch).map_err(|error| broken(&error))?;
    writer.finish().map_err(|error| broken(&error))?;
    drop(writer);
    Ok(stream)
}

/// The batch that [`written`] wrote.
///
/// # Errors
/// `QueryError` for anything else.
fn read_batch(stream: &[u8]) -> Result<RecordBatch> {
    check_places(stream).ok_or_else(|| foreign("it is damaged"))?;
    let read = || -> Result<Option<RecordBatch>, ArrowError> {
        StreamReader::try_new(Cursor::new(stream), None)?.next().transpose()
    };
    // It asserts that the length of a buffer fits its type.
    let batch = catch_unwind(read).map_err(|_| foreign("it is damaged"))?;
    let batch = batch.map_err(|error| foreign(&error.to_string()))?;
    batch.ok_or_else(|| foreign("it has no batch"))
}

fn points_of(batch: &RecordBatch) -> Result<PointColumns> {
    check_first(batch, 10)?;
    let extra = batch.schema_ref().fields().iter().skip(10);
    if extra.map(|field| field.data_type()).any(|kind| *kind != DataType::Utf8) {
        return Err(foreign("it has other columns"));
    }
    Ok(PointColumns::from_batch(batch))
}

/// Refuses a batch whose first columns have other types than those of points.
fn check_first(batch: &RecordBatch, count: usize) -> Result<()> {
    let known = schema(&[]);
    // Only the time may have another name.
    let name =
        |place: usize, field: &Field| if place == 5 { String::new() } else { field.name().clone() };
    let kinds = |of: &Schema| -> Vec<(String, DataType)> {
        let fields = of.fields().iter().take(count).enumerate();
        fields.map(|(place, field)| (name(place, field), field.data_type().clone())).collect()
    };
    if kinds(&known) == kinds(batch.schema_ref()) {
        Ok(())
    } else {
        Err(foreign("it has other columns"))
    }
}

/// Whether the buffers of each message are within its body: the reader panics at others. `None` if not.
fn check_places(mut stream: &[u8]) -> Option<()> {
    /// Buffers begin at multiples of it.
    const ALIGNMENT: usize = 8;
    loop {
        let (begin, after) = stream.split_first_chunk()?;
        let (length, after) = match i32::from_le_bytes(*begin) {
            -1 => after
                .split_first_chunk()
                .map(|(length, after)| (i32::from_le_bytes(*length), after))?,
            length => (length, after),
        };
        if length == 0 {
            return Some(());
        }
        let (head, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
        let message = root_as_message(head).ok()?;
        let (body, after) = after.split_at_checked(usize::try_from(message.bodyLength()).ok()?)?;
        let batch = message.header_as_record_batch().or_else(|| {
            message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data())
        });
        for buffer in batch.and_then(|batch| batch.buffers()).into_iter().flatten() {
            let start = usize::try_from(buffer.offset()).ok()?;
            let end = start.checked_add(usize::try_from(buffer.length()).ok()?)?;
            if !start.is_multiple_of(ALIGNMENT) || end > body.len() {
                return None;
            }
        }
        stream = after;
    }
}

fn foreign(why: &str) -> Error {
    Error::new(Kind::QueryError, format!("this is no pickled table: {why}"))
}
