//! Points one by one: plain dicts, or `siteline.Record` tuples.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::client::pages::{Pages, Taken};
use crate::data::COLUMN_NAMES;
use crate::error::Error;
use crate::python::conversions::datetime_from_microseconds;
use crate::python::errors::{frames, raise};
use crate::python::page::fill;
use crate::python::progress::{Reporter, end, told};
use crate::python::runtime::{block_on, detached, guarded};
use crate::python::stored::Stored;

/// So many points of a store are held at a time.
const BATCH: usize = 1 << 13;

/// The points of a scan, a table or a store, one by one.
///
/// Safe to share between threads: each point is given once. A failure carries ``.bookmark``; the
/// points before it were handed out already. Holds one page at most.
///
/// >>> record = next(scan.records())
/// >>> record["tag_guid"] is not None, record["timestamp"].isoformat()
/// (True, '2026-11-01T00:00:00+00:00')
#[pyclass(frozen, generic, name = "RecordIterator", module = "siteline")]
pub(crate) struct RecordIterator {
    pages: Option<Arc<Pages>>,
    /// Where further points come from a store.
    stored: Option<Mutex<Stored>>,
    reporter: Option<Reporter>,
    named: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The page at hand, until its last row is taken.
    rows: Option<Arc<Rows>>,
    row: usize,
}

/// A page's points, and what they share as Python objects.
struct Rows {
    batch: RecordBatch,
    /// For each column its dictionary as Python strings, made when the first row is asked for.
    texts: PyOnceLock<Vec<Vec<Py<PyAny>>>>,
    last_time: Mutex<Option<(i64, Py<PyAny>)>>,
}

impl RecordIterator {
    /// Over pages that are still to be read.
    pub(crate) fn reading(pages: Pages, named: bool, reporter: Option<Reporter>) -> Self {
        let pages = Some(Arc::new(pages));
        Self { pages, stored: None, reporter, named, state: Mutex::default() }
    }

    /// Over points of a store that are still to be read.
    pub(crate) fn stored(stored: Stored, named: bool) -> Self {
        let stored = Some(Mutex::new(stored));
        Self { pages: None, stored, reporter: None, named, state: Mutex::default() }
    }

    /// Over points at hand.
    pub(crate) fn over(batch: RecordBatch, named: bool) -> Self {
        let state = State { rows: Rows::new(batch), row: 0 };
        Self { pages: None, stored: None, reporter: None, named, state: Mutex::new(state) }
    }

    /// Reads on in the store; `false` where there is nothing more. Whoever waits for the store does so
    /// without the interpreter.
    fn read_on(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(stored) = &self.stored else { return Ok(false) };
        py.check_signals()?;
        let read = detached(py, || {
            let mut stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have been faster.
            if state.rows.is_none() {
                let Some(batch) = stored.next_batch(BATCH)? else { return Ok(false) };
                *state = State { rows: Rows::new(batch), row: 0 };
            }
            Ok(true)
        })?;
        read.map_err(|error: Error| raise(py, &error))
    }

    /// The next row that is at hand. Building it runs Python code, which may ask for the next row
    /// itself: so it is taken under the lock and built outside.
    fn take(&self) -> At {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(pages) = &self.pages
                && pages.check_process().is_err()
            {
                return At::Nothing;
            }
            if let Some((rows, row)) = state.take() {
                return At::Row(rows, row);
            }
            match self.pages.as_ref().map(|pages| pages.take()) {
                Some(Taken::Page(page)) => {
                    *state = State { rows: Rows::new(page.batch), row: 0 };
                }
                Some(Taken::Nothing) => return At::Nothing,
                None if self.stored.is_some() => return At::Nothing,
                Some(Taken::Ended) | None => return At::End,
            }
        }
    }
}

/// Where the iterator stands.
enum At {
    Row(Arc<Rows>, usize),
    End,
    /// The next page is to be read first.
    Nothing,
}

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            match self.take() {
                At::Row(rows, row) => {
                    return guarded(|| rows.object(py, row, self.named)).map(Some);
                }
                At::End => return end(py, self.reporter.as_ref()).map(|()| None),
                At::Nothing => {
                    let Some(pages) = &self.pages else {
                        if guarded(|| self.read_on(py))? {
                            continue;
                        }
                        return Ok(None);
                    };
                    guarded(|| {
                        let filled = block_on(py, pages.fill())?;
                        told(py, pages, self.reporter.as_ref(), filled)
                    })?;
                }
            }
        }
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps the iterator.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives it by value")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.reporter.as_ref().map(|reporter| &reporter.0))
    }

    /// As that of :class:`PageIterator`.
    fn _tell(&self, py: Python<'_>) -> PyResult<()> {
        let Some(pages) = &self.pages else { return Ok(()) };
        told(py, pages, self.reporter.as_ref(), Ok(()))
    }

    /// As that of :class:`PageIterator`.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        end(py, self.reporter.as_ref())
    }

    /// As that of :class:`PageIterator`.
    fn _fill<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        fill(py, self.pages.clone())
    }

    /// The next point that is at hand, or ``None``; and whether there is no further one.
    fn _take<'py>(&self, py: Python<'py>) -> PyResult<(Option<Bound<'py, PyAny>>, bool)> {
        match self.take() {
            At::Row(rows, row) => {
                guarded(|| rows.object(py, row, self.named)).map(|object| (Some(object), false))
            }
            At::End => end(py, self.reporter.as_ref()).map(|()| (None, true)),
            At::Nothing => Ok((None, false)),
        }
    }
}

impl State {
    /// The next row. With the last one the page is let go, before another is asked for.
    fn take(&mut self) -> Option<(Arc<Rows>, usize)> {
        let rows = Arc::clone(self.rows.as_ref()?);
        let row = self.row;
        self.row += 1;
        if self.row == rows.batch.num_rows() {
            self.rows = None;
        }
        Some((rows, row))
    }
}

impl Rows {
    /// `None` for a page without points.
    fn new(batch: RecordBatch) -> Option<Arc<Self>> {
        (batch.num_rows() > 0).then(|| {
            let last_time = Mutex::default();
            Arc::new(Self { batch, texts: PyOnceLock::new(), last_time })
        })
    }

    fn object<'py>(&self, py: Python<'py>, row: usize, named: bool) -> PyResult<Bound<'py, PyAny>> {
        let batch = &self.batch;
        // Extra columns have no place in the tuple; the dicts carry them.
        let columns = if named { COLUMN_NAMES.len() } else { batch.num_columns() };
        let values = (0..columns).map(|index| self.cell(py, index, row));
        if named {
            let ten = PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?;
            return frames(py, "Record")?.call1(ten);
        }
        let dict = PyDict::new(py);
        for (field, value) in batch.schema_ref().fields().iter().zip(values) {
            dict.set_item(PyString::intern(py, field.name()), value?)?;
        }
        Ok(dict.into_any())
    }

    fn cell<'py>(&self, py: Python<'py>, index: usize, row: usize) -> PyResult<Bound<'py, PyAny>> {
        let column = self.batch.column(index);
        if column.is_null(row) {
            return Ok(py.None().into_bound(py));
        }
        match column.data_type() {
            DataType::Dictionary(..) => {
                let texts = self.texts.get_or_init(py, || {
                    self.batch.columns().iter().map(|column| texts(py, column)).collect()
                });
                let key = column.as_dictionary::<Int32Type>().keys().value(row);
                let text = texts[index].get(usize::try_from(key).unwrap_or(usize::MAX));
                Ok(text.map_or_else(|| py.None().into_bound(py), |text| text.bind(py).clone()))
            }
            DataType::Timestamp(..) => {
                let at = column.as_primitive::<TimestampMicrosecondType>().value(row);
                self.time(py, at)
            }
            DataType::Float64 => {
                Ok(column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any())
            }
            DataType::Int64 => {
                Ok(column.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any())
            }
            _ => Ok(column.as_string::<i32>().value(row).into_pyobject(py)?.into_any()),
        }
    }

    /// Neighbouring points of several series share their time: the last one is kept.
    fn time<'py>(&self, py: Python<'py>, at: i64) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(known) = self.last_time.try_lock()
            && let Some((known, object)) = &*known
            && *known == at
        {
            return Ok(object.bind(py).clone());
        }
        let object = datetime_from_microseconds(py, at)?;
        if let Ok(mut known) = self.last_time.try_lock() {
            *known = Some((at, object.clone().unbind()));
        }
        Ok(object)
    }
}

fn texts(py: Python<'_>, column: &ArrayRef) -> Vec<Py<PyAny>> {
    match column.data_type() {
        DataType::Dictionary(..) => column
            .as_dictionary::<Int32Type>()
            .values()
            .as_string::<i32>()
            .iter()
            .map(|text| match text {
                Some(text) => PyString::new(py, text).into_any().unbind(),
                None => py.None(),
            })
            .collect(),
        _ => Vec::new(),
    }
}
