//! Points as columns. The ids are columns only after [`PointColumns::batch`]: not all callers need
//! them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, SchemaRef};

use super::paged_columns::{PagedColumns, numbered};
use super::schema::{COLUMN_NAMES, batch, broken, schema};
use crate::error::{Error, Kind, Result};

/// The five ids in column order. Null is a distinct id. The pages of a chain share their
/// identities.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Identity(pub Arc<[Option<Arc<str>>; 5]>);

impl From<[Option<Arc<str>>; 5]> for Identity {
    fn from(ids: [Option<Arc<str>>; 5]) -> Self {
        Self(Arc::new(ids))
    }
}

impl Identity {
    /// Equal in memory, which is faster to check.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Consecutive rows of one series. On a page it is an envelope, in a table the complete series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Several envelopes of a page may have the same series.
    pub series: usize,
    pub rows: Range<usize>,
}

/// Value, minimum, maximum; count.
pub(crate) type Values = ([Option<f64>; 3], Option<i64>);

/// One point per row. The values of nulls are NaN or zero.
#[derive(Debug, Clone)]
pub struct PointColumns {
    /// Microseconds in UTC.
    pub timestamps: TimestampMicrosecondArray,
    /// Value, minimum, maximum.
    pub numbers: [Float64Array; 3],
    pub sample_counts: Int64Array,
    /// JSON text.
    pub extras: Vec<StringArray>,
    /// Distinct, in order of arrival.
    pub series: Vec<Identity>,
    /// The envelopes cover all rows in order.
    pub envelopes: Vec<Envelope>,
    pub(super) extra_columns: Vec<String>,
    pub(super) batch: OnceLock<Result<RecordBatch>>,
}

impl PointColumns {
    /// Extra columns contain text or dictionaries of text. Boolean columns are left out.
    #[must_use]
    pub fn from_batch(batch: &RecordBatch) -> Self {
        let keys = [0, 1, 2, 3, 4].map(|index| batch.column(index).as_dictionary::<Int32Type>());
        let (mut series, mut envelopes) = (Vec::new(), Vec::<Envelope>::new());
        let mut known: HashMap<[Option<usize>; 5], usize> = HashMap::new();
        let mut last = None;
        for row in 0..batch.num_rows() {
            let current = keys.map(|keys| keys.key(row));
            if last == Some(current)
                && let Some(envelope) = envelopes.last_mut()
            {
                envelope.rows.end = row + 1;
                continue;
            }
            last = Some(current);
            let number = *known.entry(current).or_insert_with(|| {
                let text = |index: usize| Some(text_of(keys[index], row)?.into());
                series.push(Identity::from(std::array::from_fn(text)));
                series.len() - 1
            });
            envelopes.push(Envelope { series: number, rows: row..row + 1 });
        }
        let texts = |column: &ArrayRef| match column.as_dictionary_opt::<Int32Type>() {
            Some(codes) => (0..codes.len()).map(|row| text_of(codes, row)).collect(),
            None => column.as_string().clone(),
        };
        let more = batch.schema_ref().fields().iter().zip(batch.columns()).skip(COLUMN_NAMES.len());
        let more: Vec<_> =
            more.filter(|(field, _)| *field.data_type() != DataType::Boolean).collect();
        Self {
            timestamps: batch.column(5).as_primitive().clone(),
            numbers: [6, 7, 8].map(|index| batch.column(index).as_primitive().clone()),
            sample_counts: batch.column(9).as_primitive().clone(),
            extras: more.iter().map(|(_, column)| texts(column)).collect(),
            series,
            envelopes,
            extra_columns: more.iter().map(|(field, _)| field.name().clone()).collect(),
            batch: OnceLock::new(),
        }
    }

    pub fn has_points(&self) -> Vec<bool> {
        let mut has_points = vec![false; self.series.len()];
        for envelope in self.envelopes.iter().filter(|envelope| !envelope.rows.is_empty()) {
            has_points[envelope.series] = true;
        }
        has_points
    }

    /// Also returns the number of points removed.
    pub(crate) fn kept(&self, keeps: impl Fn(&Identity) -> bool) -> Result<(Self, u64)> {
        let mut series = Vec::new();
        let mut number = |identity: &Identity| {
            series.push(identity.clone());
            series.len() - 1
        };
        let numbers: Vec<Option<usize>> =
            self.series.iter().map(|one| keeps(one).then(|| number(one))).collect();
        let mut columns = PagedColumns::new(self.extras.len());
        columns.push(self)?;
        let (mut plan, mut envelopes, mut start) = (Vec::new(), Vec::new(), 0);
        for Envelope { series, rows } in &self.envelopes {
            let Some(series) = numbers[*series] else { continue };
            plan.push(numbered(0, rows));
            envelopes.push(Envelope { series, rows: start..start + rows.len() });
            start += rows.len();
        }
        let points = columns.merged(&plan, (series, envelopes), self.extra_columns.clone())?;
        Ok((points, (self.rows() - start) as u64))
    }

    pub fn rows(&self) -> usize {
        self.timestamps.values().len()
    }

    #[inline]
    pub(crate) fn values(&self, row: usize) -> Values {
        let number = |column: &Float64Array| column.is_valid(row).then(|| column.value(row));
        let count = self.sample_counts.is_valid(row).then(|| self.sample_counts.value(row));
        (self.numbers.each_ref().map(number), count)
    }

    pub fn schema(&self) -> SchemaRef {
        schema(&self.extra_columns)
    }

    pub fn extra_columns(&self) -> &[String] {
        &self.extra_columns
    }

    pub fn identified(&self) -> impl Iterator<Item = (&Identity, Range<usize>)> {
        self.envelopes.iter().map(|envelope| (&self.series[envelope.series], envelope.rows.clone()))
    }

    /// The ten columns and the extra ones. The first call builds the ids. The other columns are
    /// shared.
    pub fn batch(&self) -> Result<RecordBatch> {
        self.batch.get_or_init(|| self.write()).clone()
    }

    fn write(&self) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(10 + self.extras.len());
        for index in 0..5 {
            arrays.push(self.dictionary(self.id_codes(index))?);
        }
        arrays.push(Arc::new(self.timestamps.clone()) as ArrayRef);
        arrays.extend(self.numbers.iter().map(|numbers| Arc::new(numbers.clone()) as ArrayRef));
        arrays.push(Arc::new(self.sample_counts.clone()));
        arrays.extend(self.extras.iter().map(|texts| Arc::new(texts.clone()) as ArrayRef));
        batch(self.schema(), arrays)
    }

    pub fn dictionary(&self, Codes { texts, of_series }: Codes<'_>) -> Result<ArrayRef> {
        let total: usize = texts.iter().map(|text| text.len()).sum();
        if i32::try_from(total).is_err() {
            return Err(Error::new(Kind::BodyTooLarge, "The ids or labels exceed 2 GiB of text."));
        }
        let mut keys = Vec::with_capacity(self.rows());
        let mut validity = NullBufferBuilder::new(self.rows());
        for envelope in &self.envelopes {
            let (key, rows) = (of_series[envelope.series], envelope.rows.len());
            keys.resize(keys.len() + rows, key.unwrap_or_default());
            match key {
                Some(_) => validity.append_n_non_nulls(rows),
                None => validity.append_n_nulls(rows),
            }
        }
        let keys = Int32Array::new(keys.into(), validity.finish());
        let texts = Arc::new(StringArray::from_iter_values(texts));
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, texts).map_err(broken)?))
    }

    pub fn id_codes(&self, index: usize) -> Codes<'_> {
        self.codes(|identity| identity.0[index].as_deref().map(Cow::Borrowed))
    }

    /// No row contains the texts of series without points.
    pub fn codes<'a>(&'a self, text: impl Fn(&'a Identity) -> Option<Cow<'a, str>>) -> Codes<'a> {
        let mut texts = Vec::new();
        let mut known: HashMap<Cow<'a, str>, i32> = HashMap::new();
        let mut code = |(identity, has_points): (&'a Identity, bool)| {
            let text = text(identity).filter(|_| has_points)?;
            // Cannot overflow, because this many series do not fit into memory.
            let next = i32::try_from(texts.len()).unwrap_or(i32::MAX);
            let code = *known.entry(text.clone()).or_insert(next);
            if code == next {
                texts.push(text);
            }
            Some(code)
        };
        let of_series = self.series.iter().zip(self.has_points()).map(&mut code).collect();
        Codes { texts, of_series }
    }
}

fn text_of(codes: &DictionaryArray<Int32Type>, row: usize) -> Option<&str> {
    let (key, texts) = (codes.key(row)?, codes.values().as_string::<i32>());
    texts.is_valid(key).then(|| texts.value(key))
}

/// The distinct texts of the series, and the index of each series' text.
pub struct Codes<'a> {
    pub texts: Vec<Cow<'a, str>>,
    pub of_series: Vec<Option<i32>>,
}
