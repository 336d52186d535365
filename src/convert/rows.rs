//! Rows as dicts or `siteline.types.Record` tuples.

use std::cell::OnceCell;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayAccessor, ArrayRef, DictionaryArray, Float64Array, Int64Array,
    TimestampMicrosecondArray,
};
use jiff::SignedDuration;
use pyo3::IntoPyObjectExt as _;

use crate::prelude::*;

const FIELDS: usize = 10;

/// Times are in UTC.
pub(crate) fn rows<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
    times: &mut Times,
    is_named: bool,
) -> PyResult<Bound<'py, PyList>> {
    let width = if is_named { FIELDS } else { batch.num_columns() };
    let columns = batch.columns()[..width].iter().map(Column::new);
    let columns: Vec<Column<'_, 'py>> = columns.collect();
    let schema = batch.schema_ref();
    let names = schema.fields().iter().map(|field| PyString::intern(py, field.name()));
    let names: Vec<_> = names.collect();
    // A dict that has all keys from the start does not grow.
    let template = PyDict::new(py);
    let mut values = vec![py.None().into_bound(py); width];
    for name in &names {
        template.set_item(name, py.None())?;
    }
    let mut rows = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        for (column, (value, name)) in columns.iter().zip(values.iter_mut().zip(&names)) {
            if row > 0 && column.is_repeated(row) {
                continue;
            }
            *value = column.value(py, row, times)?;
            if !is_named && column.is_text() {
                template.set_item(name, &*value)?;
            }
        }
        rows.push(if is_named {
            record(PyTuple::new(py, &values)?)?
        } else {
            let dict = template.copy()?;
            for (column, (value, name)) in columns.iter().zip(values.iter().zip(&names)) {
                if !column.is_text() {
                    dict.set_item(name, value)?;
                }
            }
            dict.into_any()
        });
    }
    PyList::new(py, rows)
}

/// `Record(…)` is a Python function that calls `tuple.__new__`.
fn record(fields: Bound<'_, PyTuple>) -> PyResult<Object<'_>> {
    static MAKE: PyOnceLock<[Py<PyAny>; 2]> = PyOnceLock::new();
    let py = fields.py();
    let [new, class] = MAKE.get_or_try_init(py, || {
        let class = py.import("siteline._records.series")?.getattr("Record")?;
        Ok::<_, PyErr>([py.get_type::<PyTuple>().getattr("__new__")?.unbind(), class.unbind()])
    })?;
    new.bind(py).call1((class, fields))
}

enum Column<'a, 'py> {
    Floats(&'a Float64Array),
    Integers(&'a Int64Array),
    Times(&'a TimestampMicrosecondArray),
    /// Rows with the same text share one object.
    Coded(&'a DictionaryArray<Int32Type>, Vec<OnceCell<Bound<'py, PyString>>>),
    Other(&'a ArrayRef),
}

impl<'a, 'py> Column<'a, 'py> {
    fn new(column: &'a ArrayRef) -> Self {
        if let Some(numbers) = column.as_primitive_opt::<Float64Type>() {
            Self::Floats(numbers)
        } else if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
            Self::Integers(numbers)
        } else if let Some(times) = column.as_primitive_opt::<TimestampMicrosecondType>() {
            Self::Times(times)
        } else if let Some(codes) = column.as_dictionary_opt::<Int32Type>() {
            Self::Coded(codes, vec![OnceCell::new(); codes.values().len()])
        } else {
            Self::Other(column)
        }
    }

    /// Whether the column has few distinct values, such as an id.
    fn is_text(&self) -> bool {
        matches!(self, Self::Coded(..))
    }

    fn is_repeated(&self, row: usize) -> bool {
        matches!(self, Self::Coded(codes, _) if codes.key(row) == codes.key(row - 1))
    }

    fn value(&self, py: Python<'py>, row: usize, times: &mut Times) -> PyResult<Object<'py>> {
        match self {
            Self::Floats(numbers) => object(py, *numbers, row),
            Self::Integers(numbers) => object(py, *numbers, row),
            Self::Times(column) if column.is_valid(row) => times.datetime(py, column.value(row)),
            Self::Times(_) => Ok(py.None().into_bound(py)),
            Self::Coded(codes, known) => {
                let texts = codes.values().as_string::<i32>();
                let code = codes.key(row).filter(|code| texts.is_valid(*code));
                let text = |code: usize| {
                    let made = || PyString::new(py, texts.value(code));
                    OnceCell::get_or_init(&known[code], made).clone()
                };
                code.map(text).into_bound_py_any(py)
            }
            Self::Other(column) => match column.as_boolean_opt() {
                Some(flags) => object(py, flags, row),
                None => object(py, column.as_string::<i32>(), row),
            },
        }
    }
}

fn object<'py, Values>(py: Python<'py>, values: Values, row: usize) -> PyResult<Object<'py>>
where
    Values: ArrayAccessor<Item: IntoPyObject<'py>>,
{
    values.is_valid(row).then(|| values.value(row)).into_bound_py_any(py)
}

/// Aware `datetime` objects. Series share their times, and adding the previous step is faster than making a
/// new object.
#[derive(Default)]
pub(crate) struct Times {
    known: Vec<Option<(i64, Py<PyAny>)>>,
    last: Option<(i64, Py<PyAny>)>,
    step: Option<(i64, Py<PyAny>)>,
}

impl Times {
    const KEPT: usize = 1 << 12;

    fn datetime<'py>(&mut self, py: Python<'py>, at: i64) -> PyResult<Object<'py>> {
        if self.known.is_empty() {
            self.known.resize_with(Self::KEPT, || None);
        }
        // The hash spreads times in equal steps.
        let mixed = at.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52;
        let place = usize::try_from(mixed).unwrap_or_default() % Self::KEPT;
        if let Some((time, object)) = &self.known[place]
            && *time == at
        {
            return Ok(object.bind(py).clone());
        }
        let (before, object) = match self.last.take() {
            Some((before, object)) => (before, object.into_bound(py)),
            None => (0, Timestamp::UNIX_EPOCH.into_pyobject(py)?.into_any()),
        };
        let by = at.saturating_sub(before);
        let step = match self.step.take() {
            Some((known, step)) if known == by => step.into_bound(py),
            _ => SignedDuration::from_micros(by).into_pyobject(py)?.into_any(),
        };
        let made = object.add(&step)?;
        self.step = Some((by, step.unbind()));
        self.last = Some((at, made.clone().unbind()));
        self.known[place] = Some((at, made.clone().unbind()));
        Ok(made)
    }
}
