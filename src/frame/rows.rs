//! Rows in memory, sorted by series.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, BooleanArray, make_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use crate::convert::capsule::{broken, fitted};
use crate::convert::columns::{Memory, bytes, timestamps};
use crate::frame::shown::{LABEL, Shown};
use crate::prelude::*;
use siteline_core::data::reshape::{Expected, with_gaps};
use siteline_core::data::{COLUMN_NAMES, Codes, Identity, PointColumns};

const IDS: usize = 5;
/// The column that marks withdrawn points.
pub(crate) const WITHDRAWN: &str = "withdrawn";

/// Five ids, usually a time, the columns of points if `is_points`, and further columns.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) points: Arc<PointColumns>,
    pub(crate) is_points: bool,
    /// The name of the time column.
    time: Option<&'static str>,
    more: Vec<(FieldRef, ArrayRef)>,
}

impl Rows {
    pub(crate) fn of_points(points: Arc<PointColumns>) -> Self {
        Self { points, is_points: true, time: Some("timestamp"), more: Vec::new() }
    }

    /// Rows that have only series and time of `points`; without `time` only series.
    pub(crate) fn keyed(points: PointColumns, time: Option<&'static str>) -> Self {
        Self { points: Arc::new(points), is_points: false, time, more: Vec::new() }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &str, is_nullable: bool, column: ArrayRef) -> Self {
        let field = Field::new(name, column.data_type().clone(), is_nullable);
        self.more.push((Arc::new(field), column));
        self
    }

    /// The first `own` columns are those of the points.
    pub(crate) fn of_batch(
        batch: &RecordBatch,
        is_points: bool,
        time: &str,
        own: usize,
    ) -> Result<Self> {
        let places: Vec<usize> = (0..own).collect();
        let points = batch.project(&places).map_err(|error| broken(&error))?;
        let fields = batch.schema_ref().fields().iter().skip(own).cloned();
        Ok(Self {
            points: Arc::new(PointColumns::from_batch(&points)),
            is_points,
            time: ["start", "timestamp"].into_iter().find(|known| *known == time),
            more: fields.zip(batch.columns().iter().skip(own).cloned()).collect(),
        })
    }

    /// For `of_batch`: a batch, `is_points`, the name of the time column, and the number of columns of the points.
    pub(crate) fn to_batch(&self) -> Result<(RecordBatch, bool, &'static str, usize)> {
        let own = self.points.batch()?;
        let more = self.more.iter();
        let fields = own.schema_ref().fields().iter().chain(more.clone().map(|(field, _)| field));
        let columns = own.columns().iter().chain(more.map(|(_, column)| column));
        let schema = Schema::new(fields.cloned().collect::<Vec<_>>());
        let batch = fitted(schema, columns.cloned().collect())?;
        Ok((batch, self.is_points, self.time.unwrap_or_default(), own.num_columns()))
    }

    pub(crate) fn len(&self) -> usize {
        self.points.rows()
    }

    /// The columns after the ids.
    fn values(&self) -> Vec<(FieldRef, ArrayRef)> {
        let (points, schema) = (&self.points, self.points.schema());
        let fields = &schema.fields()[IDS..];
        let mut values: Vec<(FieldRef, ArrayRef)> = Vec::new();
        if let Some(name) = self.time {
            let field = Arc::new(fields[0].as_ref().clone().with_name(name));
            values.push((field, Arc::new(points.timestamps.clone())));
        }
        if self.is_points {
            let numbers = points.numbers.iter().map(|column| Arc::new(column.clone()) as ArrayRef);
            let counts: ArrayRef = Arc::new(points.sample_counts.clone());
            let texts = points.extras.iter().map(|column| Arc::new(column.clone()) as ArrayRef);
            let own = numbers.chain([counts]).chain(texts);
            values.extend(fields[1..].iter().cloned().zip(own));
        }
        values.extend(self.more.iter().cloned());
        values
    }

    fn plain_schema(&self) -> Schema {
        let own = self.points.schema();
        let values = self.values().into_iter().map(|(field, _)| field);
        Schema::new(own.fields().iter().take(IDS).cloned().chain(values).collect::<Vec<_>>())
    }

    /// The rows without labels, in UTC.
    fn plain_batch(&self) -> Result<RecordBatch> {
        let own = self.points.batch()?;
        let values = self.values().into_iter().map(|(_, column)| column);
        fitted(self.plain_schema(), own.columns().iter().take(IDS).cloned().chain(values).collect())
    }

    pub(crate) fn schema(&self, shown: &Shown) -> SchemaRef {
        shown.schema(&self.plain_schema())
    }

    pub(crate) fn batch(&self, shown: &Shown) -> Result<RecordBatch> {
        shown.batch(&self.plain_batch()?, || Arc::clone(&self.points))
    }

    /// Rows with the same columns.
    fn of_rows(&self, pick: impl Fn(&RecordBatch) -> Result<RecordBatch>) -> Result<Self> {
        let (batch, is_points, time, own) = self.to_batch()?;
        Self::of_batch(&pick(&batch)?, is_points, time, own)
    }

    pub(crate) fn of_series(&self, series: &HashSet<Identity>) -> Result<Self> {
        let rows = self.points.identified().filter(|(ids, _)| series.contains(*ids));
        let rows: Vec<Range<usize>> = rows.map(|(_, rows)| rows).collect();
        self.of_rows(|batch| {
            let columns = batch.columns().iter().map(|column| picked(column, &rows));
            fitted(batch.schema(), columns.collect::<Result<_>>()?)
        })
    }

    /// The rows of missing buckets are not withdrawn.
    pub(crate) fn with_gaps(&self, expected: &Expected) -> Result<Self> {
        let filled = with_gaps(&self.points, expected)?;
        let marks = self.more.iter().find_map(|(field, column)| {
            (field.name() == WITHDRAWN).then(|| column.as_boolean_opt()).flatten()
        });
        let withdrawn = marks.map(|marks| self.spread(marks, &filled));
        let rows = Self::of_points(Arc::new(filled));
        Ok(match withdrawn {
            Some(withdrawn) => rows.with(WITHDRAWN, false, Arc::new(withdrawn)),
            None => rows,
        })
    }

    /// New rows in `to` get no mark.
    fn spread(&self, marks: &BooleanArray, to: &PointColumns) -> BooleanArray {
        let mut marked: HashMap<&Identity, HashSet<i64>> = HashMap::new();
        for (series, rows) in self.points.identified() {
            let rows = rows.filter(|row| marks.value(*row));
            let times = rows.map(|row| self.points.timestamps.value(row));
            marked.entry(series).or_default().extend(times);
        }
        let mut spread = Vec::with_capacity(to.rows());
        for (series, rows) in to.identified() {
            let marked = marked.get(series);
            let is_marked = |time| marked.is_some_and(|times| times.contains(time));
            spread.extend(to.timestamps.values()[rows].iter().map(is_marked));
        }
        BooleanArray::from(spread)
    }

    pub(crate) fn first(&self, count: usize) -> Result<Self> {
        self.of_rows(|batch| Ok(batch.slice(0, count.min(self.len()))))
    }

    /// The columns that `pivot` accepts.
    pub(crate) fn numeric(&self) -> Vec<(FieldRef, ArrayRef)> {
        let is_numeric = |kind: &DataType| matches!(kind, DataType::Float64 | DataType::Int64);
        let values = self.values().into_iter();
        values.filter(|(field, _)| is_numeric(field.data_type())).collect()
    }

    pub(crate) fn columns<'py>(
        &self,
        py: Python<'py>,
        shown: &Shown,
    ) -> PyResult<Bound<'py, PyList>> {
        let list = runs(py, &self.points, shown)?;
        for (field, column) in &self.values() {
            append(py, &list, field, column, shown.zone())?;
        }
        Ok(list)
    }
}

/// The columns of ids and labels.
fn runs<'py>(
    py: Python<'py>,
    points: &PointColumns,
    shown: &Shown,
) -> PyResult<Bound<'py, PyList>> {
    let (list, envelopes) = (PyList::empty(py), &points.envelopes);
    let lengths = envelopes.iter().map(|one| one.rows.len().to_ne_bytes());
    let lengths = bytes(py, envelopes.len(), lengths)?;
    let ids = COLUMN_NAMES.into_iter().take(IDS).enumerate();
    let ids = ids.map(|(place, name)| (name, points.id_codes(place)));
    let label = shown.has_labels().then(|| (LABEL, shown.codes(points)));
    for (name, Codes { texts, of_series }) in ids.chain(label) {
        let codes = envelopes.iter().map(|one| of_series[one.series].unwrap_or(-1).to_ne_bytes());
        let codes = bytes(py, envelopes.len(), codes)?;
        list.append((name, "runs", codes, &lengths, PyList::new(py, texts)?))?;
    }
    Ok(list)
}

fn append(
    py: Python<'_>,
    list: &Bound<'_, PyList>,
    field: &Field,
    column: &ArrayRef,
    zone: &str,
) -> PyResult<()> {
    let name = field.name();
    if let Some(numbers) = column.as_primitive_opt::<Float64Type>() {
        list.append((name, "float", Memory::of(numbers)))
    } else if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
        let missing = numbers.nulls().map(|nulls| {
            bytes(py, nulls.len(), nulls.iter().map(|is_there| [u8::from(!is_there)]))
        });
        list.append((name, "integer", Memory::of(numbers), missing.transpose()?))
    } else if let Some(codes) = column.as_dictionary_opt::<Int32Type>() {
        let texts = if codes.is_empty() { None } else { Some(codes.values().as_string::<i32>()) };
        let texts = PyList::new(py, texts.into_iter().flat_map(|texts| texts.iter()))?;
        let rows = codes.keys().values();
        // The four changes fit in a byte.
        let rows = bytes(py, rows.len(), rows.iter().map(|code| [code.to_le_bytes()[0]]))?;
        list.append((name, "codes", rows, texts))
    } else if let Some(texts) = column.as_string_opt::<i32>() {
        list.append((name, "text", PyList::new(py, texts.iter())?))
    } else if let Some(flags) = column.as_boolean_opt().filter(|_| !field.is_nullable()) {
        let flags = flags.values().iter();
        list.append((name, "bool", bytes(py, flags.len(), flags.map(|flag| [u8::from(flag)]))?))
    } else if let Some(flags) = column.as_boolean_opt() {
        list.append((name, "flags", PyList::new(py, flags.iter())?))
    } else {
        list.append(timestamps(name, column.as_primitive(), zone))
    }
}

fn picked(column: &ArrayRef, rows: &[Range<usize>]) -> Result<ArrayRef> {
    let data = column.to_data();
    let count = rows.iter().map(ExactSizeIterator::len).sum();
    let mut kept = MutableArrayData::new(vec![&data], false, count);
    for range in rows {
        kept.try_extend(0, range.start, range.end).map_err(|error| broken(&error))?;
    }
    Ok(make_array(kept.freeze()))
}
