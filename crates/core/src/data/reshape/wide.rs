//! One column per series and one row per bucket. All cells are in one buffer, column after column,
//! which pandas uses directly.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch,
    TimestampMicrosecondArray,
};
use arrow_buffer::{Buffer, NullBuffer, NullBufferBuilder, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use serde::{Deserialize, Serialize};

use super::super::point_columns::{Identity, PointColumns};
use super::super::schema::{COLUMN_NAMES, batch, time_field, timestamp_array};
use super::series::{Rows, Series, by_series};
use crate::error::{Error, Kind, Result};

/// 16 GiB. Series that share few timestamps need a cell for every timestamp.
const MOST_CELLS: usize = 1 << 31;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Measure {
    /// Value, minimum or maximum.
    Number(usize),
    SampleCount,
}

#[derive(Debug, Clone)]
pub struct Wide {
    pub measure: Measure,
    /// The timestamps of all series, ascending.
    pub timestamps: TimestampMicrosecondArray,
    /// The series in table order.
    pub series: Vec<Identity>,
    /// Null if the series lacks the bucket or its value.
    pub columns: Vec<ArrayRef>,
    /// Column after column. Null cells contain NaN or 0.
    pub cells: Buffer,
}

impl Measure {
    pub fn parse(name: &str) -> Result<Self> {
        let place = COLUMN_NAMES.iter().skip(6).position(|known| *known == name);
        match place {
            Some(3) => Ok(Self::SampleCount),
            Some(number) => Ok(Self::Number(number)),
            None => Err(Error::new(
                Kind::QueryError,
                format!("value={name:?} is unknown. Use one of {}.", COLUMN_NAMES[6..].join(", ")),
            )),
        }
    }
}

impl Wide {
    pub fn new(points: &PointColumns, measure: Measure) -> Result<Self> {
        let series = by_series(points);
        let all = all_times(&series)?;
        let (cells, columns) = match measure {
            Measure::Number(place) => fill(&series, &all, &points.numbers[place], f64::NAN)?,
            Measure::SampleCount => fill(&series, &all, &points.sample_counts, 0)?,
        };
        let series = series.into_iter().map(|series| series.identity.clone()).collect();
        Ok(Self { measure, timestamps: timestamp_array(all), series, columns, cells })
    }

    /// The names of the columns. Fails if two series have the same label.
    pub fn names(&self, label: impl Fn(&Identity) -> String) -> Result<Vec<String>> {
        let names: Vec<String> = self.series.iter().map(label).collect();
        let mut known = HashMap::new();
        for (name, series) in names.iter().zip(&self.series) {
            if let Some(other) = known.insert(name, series) {
                let [one, other] = [other, series].map(quoted_ids);
                let message =
                    format!("Two series would have the column {name:?}: ({one}) and ({other}).");
                return Err(Error::new(Kind::QueryError, message)
                    .with_hint("Keep one of them with find(), or use labels= that differ."));
            }
        }
        Ok(names)
    }

    /// The columns have these names, and the timestamps are in this zone.
    #[must_use]
    pub fn schema(&self, names: Vec<String>, zone: &str) -> Schema {
        let names = names.into_iter().zip(&self.columns);
        let columns =
            names.map(|(name, column)| Field::new(name, column.data_type().clone(), true));
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()));
        let times = time_field().with_data_type(zoned);
        Schema::new([times].into_iter().chain(columns).collect::<Vec<_>>())
    }

    /// `timestamp`, then a column for each series.
    pub fn batch(&self, schema: SchemaRef, zone: &str) -> Result<RecordBatch> {
        let times: ArrayRef = Arc::new(self.timestamps.clone().with_timezone(zone));
        batch(schema, [times].into_iter().chain(self.columns.iter().cloned()).collect())
    }
}

/// The ids of a series, for an error.
fn quoted_ids(series: &Identity) -> String {
    let id =
        |id: &Option<Arc<str>>| id.as_deref().map_or("null".to_owned(), |id| format!("{id:?}"));
    series.0.each_ref().map(id).join(", ")
}

fn all_times(series: &[Series<'_>]) -> Result<Vec<i64>> {
    let mut all: Vec<i64> = Vec::new();
    for Series { times, .. } in series {
        if **times != all {
            all = union(&all, times);
        }
        if all.len().saturating_mul(series.len()) > MOST_CELLS {
            return Err(too_wide(all.len(), series.len()));
        }
    }
    Ok(all)
}

/// Both lists are ascending.
fn union(one: &[i64], other: &[i64]) -> Vec<i64> {
    let mut all = Vec::with_capacity(one.len().max(other.len()));
    let (mut one, mut other) = (one, other);
    while let ([first, rest @ ..], [second, others @ ..]) = (one, other) {
        all.push(*first.min(second));
        one = if first <= second { rest } else { one };
        other = if second <= first { others } else { other };
    }
    all.extend_from_slice(one);
    all.extend_from_slice(other);
    all
}

fn too_wide(rows: usize, series: usize) -> Error {
    let message = format!("A column for each of {series} series with {rows} rows is too large.");
    Error::new(Kind::QueryError, message)
        .with_hint("Read fewer series or a shorter range. The series have different buckets.")
}

fn fill<T: ArrowPrimitiveType>(
    series: &[Series<'_>],
    all: &[i64],
    source: &PrimitiveArray<T>,
    missing: T::Native,
) -> Result<(Buffer, Vec<ArrayRef>)> {
    let mut cells: Vec<T::Native> = Vec::new();
    let reserved = cells.try_reserve_exact(all.len() * series.len());
    reserved.map_err(|_| too_wide(all.len(), series.len()))?;
    let mut nulls = Vec::with_capacity(series.len());
    for series in series {
        nulls.push(match series.rows {
            Rows::From(first) if *series.times == *all => {
                cells.extend_from_slice(&source.values()[first..first + all.len()]);
                source.nulls().map(|nulls| nulls.slice(first, all.len()))
            }
            _ => spread(series, all, source, missing, &mut cells),
        });
    }
    let cells = Buffer::from_vec(cells);
    let column = |(index, nulls): (usize, Option<NullBuffer>)| {
        let values = ScalarBuffer::new(cells.clone(), index * all.len(), all.len());
        Arc::new(PrimitiveArray::<T>::new(values, nulls)) as ArrayRef
    };
    let columns = nulls.into_iter().enumerate().map(column).collect();
    Ok((cells, columns))
}

/// The series lacks some timestamps.
fn spread<T: ArrowPrimitiveType>(
    series: &Series<'_>,
    all: &[i64],
    source: &PrimitiveArray<T>,
    missing: T::Native,
    cells: &mut Vec<T::Native>,
) -> Option<NullBuffer> {
    let mut validity = NullBufferBuilder::new(all.len());
    let mut next = 0;
    for time in all {
        let row = (series.times.get(next) == Some(time)).then(|| series.rows.row(next));
        next += usize::from(row.is_some());
        let row = row.filter(|row| source.is_valid(*row));
        cells.push(row.map_or(missing, |row| source.value(row)));
        validity.append(row.is_some());
    }
    validity.finish()
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;
    use proptest::prelude::*;

    use super::*;
    use crate::data::{TableBuilder, test_points};
    use crate::http::test_server::assert_error;

    type Point = (&'static str, i64, Option<f64>);

    fn points(of: &[Point]) -> PointColumns {
        let values = |at, value: Option<f64>| ([value, None, Some(1.0)], value.map(|_| at + 3));
        test_points::points(of.iter().map(|&(tag, at, value)| (tag, at, values(at, value))))
    }

    fn joined(series: &Identity) -> String {
        series.0.each_ref().map(|id| id.as_deref().unwrap_or_default()).join(" / ")
    }

    fn cells(wide: &Wide) -> Vec<(String, Vec<Option<f64>>)> {
        let names = wide.names(joined).expect("names").into_iter();
        names
            .zip(&wide.columns)
            .map(|(name, column)| (name, column.as_primitive::<Float64Type>().iter().collect()))
            .collect()
    }

    fn wide(of: &[Point]) -> Wide {
        Wide::new(&points(of), Measure::Number(0)).expect("wide")
    }

    #[test]
    fn counts_are_integers_with_zero_for_null() {
        let points = points(&[("a", 1, Some(4.0)), ("b", 2, None)]);
        let wide = Wide::new(&points, Measure::SampleCount).expect("wide");
        let counts: Vec<&Int64Array> = wide.columns.iter().map(AsArray::as_primitive).collect();
        assert_eq!(counts[0], &Int64Array::from(vec![Some(4), None]));
        assert_eq!(counts[1], &Int64Array::from(vec![None, None]));
        assert_eq!(wide.cells.typed_data::<i64>(), [4, 0, 0, 0]);
    }

    #[test]
    fn two_series_with_one_name_are_refused() {
        let mut table = TableBuilder::new(0);
        for ids in [[Some("a"), None], [Some("a"), Some("")]] {
            table.push(1, [None; 3], None);
            let [site, line] = ids.map(|id| id.map(Arc::from));
            table.series(&Identity::from([site, line, None, None, None]));
        }
        let wide = Wide::new(&table.finish().expect("points"), Measure::Number(0)).expect("wide");
        assert_eq!(wide.columns.len(), 2, "both are there");
        assert_error(wide.names(joined), Kind::QueryError, "Two series would have the column");
    }

    #[test]
    fn only_the_four_measures_have_a_name() {
        let names = ["value", "minimum", "maximum", "sample_count"];
        let known = [0, 1, 2].map(Measure::Number).into_iter().chain([Measure::SampleCount]);
        for (name, measure) in names.into_iter().zip(known) {
            assert_eq!(Measure::parse(name).expect("known"), measure);
        }
        assert_error(
            Measure::parse("timestamp"),
            Kind::QueryError,
            "value, minimum, maximum, sample_count",
        );
    }

    proptest! {
        #[test]
        fn cells_equal_a_lookup(
            of in prop::collection::vec((0..4_usize, 0..12_i64, prop::option::of(-9..9_i32)), 0..40)
        ) {
            let tags = ["a", "b", "c", "d"];
            let point = |(tag, time, value): &(usize, i64, Option<i32>)| {
                (tags[*tag], *time, value.map(f64::from))
            };
            let given: Vec<Point> = of.iter().map(point).collect();
            let wide = wide(&given);
            let mut expected = HashMap::new();
            for (tag, time, value) in &given {
                expected.insert((format!(" /  /  /  / {tag}"), *time), *value);
            }
            let mut times: Vec<i64> = given.iter().map(|(_, time, _)| *time).collect();
            times.sort_unstable();
            times.dedup();
            prop_assert_eq!(wide.timestamps.values().to_vec(), times.clone());
            let schema = Arc::new(wide.schema(wide.names(joined).unwrap(), "UTC"));
            prop_assert_eq!(wide.batch(Arc::clone(&schema), "UTC").unwrap().schema(), schema);
            for (name, column) in cells(&wide) {
                for (time, cell) in times.iter().zip(column) {
                    let known = expected.get(&(name.clone(), *time)).copied().flatten();
                    prop_assert_eq!(cell, known);
                }
            }
        }
    }
}
