//! Points one by one: plain dicts, or `siteline.Record` tuples.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tokio::sync::Mutex;

use crate::client::scan::{Pages, ReadFailure};
use crate::python::conversions::datetime_from_microseconds;
use crate::python::errors::frames;
use crate::python::runtime::block_on;
use crate::python::scan::read_failure;

/// The points of a scan or a table, one by one.
///
/// Safe to share between threads: each point is given once.
#[pyclass(frozen, name = "RecordIterator", module = "siteline")]
pub(crate) struct RecordIterator {
    pages: Option<Arc<Pages>>,
    named: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    batch: Option<RecordBatch>,
    row: usize,
    /// For each column: its dictionary as Python strings, made when the first row is asked for.
    texts: Option<Vec<Vec<Py<PyAny>>>>,
    last_time: Option<(i64, Py<PyAny>)>,
    finished: bool,
}

impl RecordIterator {
    /// Over pages that are still to be read.
    pub(crate) fn reading(pages: Pages, named: bool) -> Self {
        Self { pages: Some(Arc::new(pages)), named, state: Mutex::default() }
    }

    /// Over points at hand.
    pub(crate) fn over(batch: RecordBatch, named: bool) -> Self {
        let state = State { batch: Some(batch), finished: true, ..State::default() };
        Self { pages: None, named, state: Mutex::new(state) }
    }

    async fn refill(&self) -> Result<(), ReadFailure> {
        let mut state = self.state.lock().await;
        if state.has_rows() || state.finished {
            return Ok(());
        }
        let page = match &self.pages {
            Some(pages) => pages.next().await?,
            None => None,
        };
        match page {
            Some(page) => {
                state.batch = Some(page.batch);
                state.row = 0;
                state.texts = None;
            }
            None => state.finished = true,
        }
        Ok(())
    }
}

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            if let Ok(mut state) = self.state.try_lock() {
                if state.has_rows() {
                    return state.next_row(py, self.named).map(Some);
                }
                if state.finished {
                    return Ok(None);
                }
            }
            block_on(py, self.refill())?.map_err(|failure| read_failure(py, failure))?;
        }
    }
}

impl State {
    fn has_rows(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| self.row < batch.num_rows())
    }

    fn next_row<'py>(&mut self, py: Python<'py>, named: bool) -> PyResult<Bound<'py, PyAny>> {
        let Some(batch) = self.batch.clone() else { return Ok(py.None().into_bound(py)) };
        if self.texts.is_none() {
            self.texts = Some(batch.columns().iter().map(|column| texts(py, column)).collect());
        }
        let row = self.row;
        self.row += 1;
        let values = (0..batch.num_columns())
            .map(|index| self.cell(py, &batch, index, row))
            .collect::<PyResult<Vec<_>>>()?;
        if named {
            // Extra columns have no place in the tuple; the dicts carry them.
            let ten = pyo3::types::PyTuple::new(py, values.into_iter().take(10))?;
            return frames(py, "Record")?.call1(ten);
        }
        let dict = PyDict::new(py);
        for (field, value) in batch.schema().fields().iter().zip(values) {
            dict.set_item(PyString::intern(py, field.name()), value)?;
        }
        Ok(dict.into_any())
    }

    fn cell<'py>(
        &mut self,
        py: Python<'py>,
        batch: &RecordBatch,
        index: usize,
        row: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let column = batch.column(index);
        if column.is_null(row) {
            return Ok(py.None().into_bound(py));
        }
        match column.data_type() {
            DataType::Dictionary(..) => {
                let key = column.as_dictionary::<Int32Type>().keys().value(row);
                let text = self
                    .texts
                    .as_ref()
                    .and_then(|texts| texts[index].get(usize::try_from(key).unwrap_or(usize::MAX)));
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
    fn time<'py>(&mut self, py: Python<'py>, at: i64) -> PyResult<Bound<'py, PyAny>> {
        if let Some((known, object)) = &self.last_time
            && *known == at
        {
            return Ok(object.bind(py).clone());
        }
        let object = datetime_from_microseconds(py, at)?;
        self.last_time = Some((at, object.clone().unbind()));
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
