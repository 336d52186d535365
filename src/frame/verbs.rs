//! Methods that make frames of frames.

use std::collections::{BTreeSet, HashSet};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::Buffer;
use jiff::tz::TimeZone;

use super::facts::Facts;
use super::rows::Rows;
use super::stored::{ROWS, Stored};
use super::{Data, Frame, Origin, identities};
use crate::convert::arrow_stream::ArrowStream;
use crate::convert::asked_time::zone;
use crate::prelude::*;
use siteline_base::arrow::ids;
use siteline_core::data::reshape::{
    Completing, Coverage, Every, LocalGrid, Measure, Partial, Rebucket, Rebucketed, Rebucketing,
    Reduction, Wide, gap_list,
};
use siteline_core::data::{COLUMN_NAMES, Choice as _, Identity, Ids, PointColumns, TableBuilder};
use siteline_core::store::SeriesFilter;
use siteline_core::sync::ReadSpec;

/// The names of columns, and the texts of some of them.
type NamesAndIds = (Vec<String>, Vec<Vec<Option<String>>>);

/// `origin` is the first start in microseconds of the zone's clock.
fn periods(
    every: &Object<'_>,
    tz: &str,
    origin: Option<i64>,
) -> PyResult<(Every, LocalGrid, TimeZone)> {
    let (_, zone) = zone(PyString::new(every.py(), tz).as_any())?;
    let every = length(every)?;
    Ok((every, LocalGrid::new(zone.clone(), every, origin).or_raise()?, zone))
}

fn length(every: &Object<'_>) -> PyResult<Every> {
    if every.extract().is_ok_and(|text: &str| text == "1mo") {
        return Ok(Every::Month);
    }
    let width = microseconds(every, "every")?;
    if width == 0 {
        let message = "every= is 0. A bucket is longer than that.";
        return Err(refuse(every.py(), Kind::QueryError, message));
    }
    Ok(Every::Microseconds(width))
}

fn microseconds(given: &Object<'_>, name: &str) -> PyResult<i64> {
    Ok(i64::try_from(duration(given, name)?.as_micros()).unwrap_or(i64::MAX))
}

fn notes(made: &Rebucketed, partial: Partial, zone: &TimeZone) -> Vec<String> {
    let mut notes = Vec::new();
    let times = made.points.timestamps.values().iter().zip(made.partial.values());
    let times: BTreeSet<i64> =
        times.filter(|(_, is_partial)| *is_partial).map(|(at, _)| *at).collect();
    if let (Partial::Null, Some(first), Some(last)) = (partial, times.first(), times.last()) {
        let shown = |at: &i64| {
            let at = Timestamp::from_microsecond(*at).unwrap_or_default();
            zone.to_datetime(at).strftime("%Y-%m-%d %H:%M").to_string()
        };
        let which = match times.len() {
            1 => format!("The period from {} was not read completely and has", shown(first)),
            count => format!(
                "{count} periods between {} and {} were not read completely and have",
                shown(first),
                shown(last)
            ),
        };
        notes.push(format!(
            "{which} no value. Write partial=\"keep\" for the value of the part that was read, or \
             partial=\"drop\" for no row."
        ));
    }
    if made.unweighted > 0 {
        notes.push(format!(
            "Some means are not weighted, because buckets have no sample_count: {} periods.",
            made.unweighted
        ));
    }
    notes
}

impl Frame {
    fn made(&self, kind: &'static str, data: Data) -> Self {
        let origin = match &self.origin {
            Origin::Read(_) | Origin::Page(_) => Origin::Made(self.facts()),
            other => other.clone(),
        };
        Self { every: self.every, is_part: self.is_part, ..Self::new(kind, data, origin) }
    }

    pub(super) fn rows_there(&self, py: Python<'_>) -> PyResult<Rows> {
        self.there.as_ref().map_or_else(|| self.rows(py), |rows| Ok(rows.clone()))
    }

    /// Passes the points to `add`, those of a store in parts of a few megabytes.
    fn each_part(
        &self,
        py: Python<'_>,
        mut add: impl FnMut(&PointColumns) -> Result<()> + Send,
    ) -> PyResult<()> {
        let Data::Stream(stored) = &self.data else {
            let rows = self.rows_there(py)?;
            return detached(py, || add(&rows.points))?.or_raise();
        };
        let mut batches = stored.batches(py, super::Shown::default())?;
        let mut next = || -> Result<bool> {
            let Some(batch) = batches.next_batch(ROWS)? else { return Ok(false) };
            add(&PointColumns::from_batch(&batch)).map(|()| true)
        };
        while step(py, &mut next)?.or_raise()? {
            py.check_signals()?;
        }
        Ok(())
    }

    fn picked(&self, series: &HashSet<Identity>) -> Result<Data> {
        match &self.data {
            Data::Rows(rows) => Ok(Data::Rows(rows.of_series(series)?)),
            Data::Wide(wide) => {
                let kept: Vec<usize> = (0..wide.series.len())
                    .filter(|place| series.contains(&wide.series[*place]))
                    .collect();
                Ok(Data::Wide(Arc::new(columns_of(wide, &kept, wide.timestamps.len()))))
            }
            Data::Stream(_) => Ok(self.data.clone()),
        }
    }
}

fn columns_of(wide: &Wide, kept: &[usize], rows: usize) -> Wide {
    let columns = kept.iter().map(|place| wide.columns[*place].slice(0, rows)).collect();
    let series = kept.iter().map(|place| wide.series[*place].clone()).collect();
    wide_of(wide.measure, wide.timestamps.slice(0, rows), series, columns)
}

pub(super) fn wide_of(
    measure: Measure,
    timestamps: TimestampMicrosecondArray,
    series: Vec<Identity>,
    columns: Vec<ArrayRef>,
) -> Wide {
    let mut cells: Vec<u64> = Vec::with_capacity(columns.len() * timestamps.len());
    for column in &columns {
        if let Some(numbers) = column.as_primitive_opt::<Float64Type>() {
            cells.extend(numbers.values().iter().map(|number| number.to_bits()));
        } else {
            let numbers = column.as_primitive::<Int64Type>().values();
            cells.extend(numbers.iter().map(|number| number.cast_unsigned()));
        }
    }
    Wide { measure, timestamps, series, columns, cells: Buffer::from_vec(cells) }
}

#[pymethods]
impl Frame {
    fn keep(&self, py: Python<'_>, series: Vec<Ids>) -> PyResult<Self> {
        if let Data::Stream(stored) = &self.data {
            let mut read = stored.read.clone();
            let picked = SeriesFilter { series: Some(series), ..SeriesFilter::default() };
            read.state.spec = ReadSpec { series: picked, ..read.state.spec };
            return Ok(Self::of_store(Stored { store: Arc::clone(&stored.store), read }));
        }
        let series: HashSet<Identity> = identities(series).collect();
        let data = detached(py, || self.picked(&series))?.or_raise()?;
        let there = self.there.as_ref().map(|rows| rows.of_series(&series)).transpose();
        Ok(Self { there: there.or_raise()?, ..self.made(self.kind, data) })
    }

    fn first(&self, py: Python<'_>, count: usize) -> PyResult<Self> {
        let data = match &self.data {
            Data::Rows(rows) => Data::Rows(rows.first(count).or_raise()?),
            Data::Wide(wide) => {
                let rows = count.min(wide.timestamps.len());
                let all: Vec<usize> = (0..wide.series.len()).collect();
                Data::Wide(Arc::new(columns_of(wide, &all, rows)))
            }
            Data::Stream(stored) => {
                let mut batches = stored.batches(py, super::Shown::default())?;
                let batch = step(py, || batches.next_batch(count.max(1)))?.or_raise()?;
                let empty = || RecordBatch::new_empty(stored.read.state.spec.view.schema());
                let batch = batch.unwrap_or_else(empty);
                let first = batch.slice(0, count.min(batch.num_rows()));
                let rows = Rows::of_batch(&first, true, "timestamp", COLUMN_NAMES.len());
                Data::Rows(rows.or_raise()?)
            }
        };
        Ok(Self { is_part: true, ..self.made(self.kind, data) })
    }

    /// Adds a row of nulls for each bucket that was read and has no point.
    fn with_gaps(&self, py: Python<'_>) -> PyResult<Self> {
        let expected = self.coverage().expected().or_raise()?;
        let rows = self.rows_there(py)?;
        let filled = detached(py, || rows.with_gaps(&expected))?.or_raise()?;
        Ok(Self { there: Some(rows), ..self.made("points", Data::Rows(filled)) })
    }

    /// Warns about periods without a value.
    #[pyo3(signature = (every, agg, partial, tz, origin=None))]
    fn resample(
        &self,
        py: Python<'_>,
        every: &Object<'_>,
        agg: Text<'_>,
        partial: Text<'_>,
        tz: &str,
        origin: Option<i64>,
    ) -> PyResult<Self> {
        let reduction = Reduction::parse(agg.0).or_raise()?;
        let partial = Partial::parse(partial.0).or_raise()?;
        let (every, mut grid, zone) = periods(every, tz, origin)?;
        let width = self.facts().interval_seconds.map(|seconds| i64::from(seconds) * 1_000_000);
        let (grid, coverage) = (&mut grid, &self.coverage());
        let how = Rebucket { width, grid, reduction, coverage, partial };
        let mut made = Rebucketing::new(how);
        self.each_part(py, |points| made.add(points))?;
        let made = detached(py, || made.finish())?.or_raise()?;
        guarded(|| warn(py, &notes(&made, partial, &zone)))?;
        let rows = Rows::of_points(Arc::new(made.points))
            .with("buckets", false, Arc::new(made.buckets))
            .with("expected", true, Arc::new(made.expected))
            .with("partial", false, Arc::new(made.partial));
        Ok(Self { every: Some(every), ..self.made("resampled", Data::Rows(rows)) })
    }

    /// Counts the buckets of each period.
    #[pyo3(signature = (every, tz, origin=None, silent=Vec::new()))]
    fn completeness(
        &self,
        py: Python<'_>,
        every: &Object<'_>,
        tz: &str,
        origin: Option<i64>,
        silent: Vec<Ids>,
    ) -> PyResult<Self> {
        let silent: Vec<Identity> = identities(silent).collect();
        let (every, mut grid, _) = periods(every, tz, origin)?;
        let expected = self.coverage().expected().or_raise()?;
        let mut counted = Completing::new(&expected, &mut grid).or_raise()?;
        self.each_part(py, |points| counted.add(points))?;
        let found = detached(py, || counted.finish(&silent))?.or_raise()?;
        let rows = Rows::keyed(found.rows, Some("timestamp"))
            .with("share", false, Arc::new(found.share))
            .with("buckets", false, Arc::new(found.buckets))
            .with("missing", false, Arc::new(found.missing))
            .with("unread", false, Arc::new(found.unread))
            .with("expected", false, Arc::new(found.expected));
        Ok(Self { every: Some(every), ..self.made("completeness", Data::Rows(rows)) })
    }

    /// Lists the ranges of missing buckets.
    #[pyo3(signature = (longer_than=None, silent=Vec::new()))]
    fn gaps(
        &self,
        py: Python<'_>,
        longer_than: Option<&Object<'_>>,
        silent: Vec<Ids>,
    ) -> PyResult<Self> {
        let silent: Vec<Identity> = identities(silent).collect();
        let longer = optional(longer_than, "longer_than", microseconds)?.unwrap_or(0);
        let expected = self.coverage().expected().or_raise()?;
        let rows = self.rows_there(py)?;
        let found =
            detached(py, || gap_list(&rows.points, &expected, longer, &silent))?.or_raise()?;
        let rows = Rows::keyed(found.rows, Some("start"))
            .with("end", false, Arc::new(found.ends))
            .with("buckets", false, Arc::new(found.buckets));
        Ok(self.made("gaps", Data::Rows(rows)))
    }

    /// One column for each series, and one row for each bucket.
    fn pivot(&self, py: Python<'_>, values: &str) -> PyResult<Self> {
        guarded(|| {
            let unknown = |names: Vec<String>| {
                let (values, names) = (excerpt(values), names.join(", "));
                let message = format!("values={values:?} is unknown: give one of {names}");
                refuse(py, Kind::QueryError, message)
            };
            if let (Data::Stream(_), false) = (&self.data, Measure::parse(values).is_ok()) {
                let names = COLUMN_NAMES[6..].iter().map(ToString::to_string);
                return Err(unknown(names.collect()));
            }
            let rows = self.rows(py)?;
            let numeric = rows.numeric();
            let names = || numeric.iter().map(|(field, _)| field.name().clone()).collect();
            let (_, column) = numeric
                .iter()
                .find(|(field, _)| field.name() == values)
                .ok_or_else(|| unknown(names()))?;
            let wide = detached(py, || {
                let mut points: PointColumns = (*rows.points).clone();
                let measure = if let Some(counts) = column.as_primitive_opt::<Int64Type>() {
                    points.sample_counts = counts.clone();
                    Measure::SampleCount
                } else {
                    points.numbers[0] = column.as_primitive::<Float64Type>().clone();
                    Measure::Number(0)
                };
                Wide::new(&points, measure)
            })?
            .or_raise()?;
            Ok(self.made("pivoted", Data::Wide(Arc::new(wide))))
        })
    }

    /// The column names of an Arrow stream, and the ids in its columns `names`; `None` without a stream.
    #[staticmethod]
    fn ids_of(given: &Object<'_>, names: Vec<String>) -> PyResult<Option<NamesAndIds>> {
        let broken = |why: &str| {
            Error::new(Kind::QueryError, format!("the Arrow stream of series= is broken: {why}"))
        };
        guarded(|| {
            let Some(reader) = ArrowStream::open(given, broken)? else { return Ok(None) };
            let own = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
            let mut columns = vec![Vec::new(); names.len()];
            for batch in reader {
                let batch = batch.or_raise()?;
                for (name, column) in names.iter().zip(&mut columns) {
                    let Some(array) = batch.column_by_name(name) else { continue };
                    let wrong = |why| Error::new(Kind::QueryError, format!("series=: {why}"));
                    let ids = ids(name, array).map_err(wrong).or_raise()?.into_iter();
                    column.extend(ids.map(|id| id.map(|id| id.to_string())));
                }
            }
            Ok(Some((own, columns)))
        })
    }

    /// Kinds of columns: `text`, `flag`, `integer`, `float`.
    #[staticmethod]
    fn of_series(
        series: Vec<Ids>,
        columns: Vec<(String, String, Object<'_>)>,
        report: &Object<'_>,
    ) -> PyResult<Self> {
        let mut table = TableBuilder::new(series.len());
        for identity in identities(series) {
            table.push(0, [None; 3], None);
            table.series(&identity);
        }
        let mut rows = Rows::keyed(table.finish().or_raise()?, None);
        for (name, kind, values) in columns {
            let column: ArrayRef = match kind.as_str() {
                "text" => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
                "flag" => Arc::new(BooleanArray::from(values.extract::<Vec<Option<bool>>>()?)),
                "integer" => Arc::new(Int64Array::from(values.extract::<Vec<Option<i64>>>()?)),
                _ => Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?)),
            };
            rows = rows.with(&name, name != "listed", column);
        }
        let coverage = Coverage::part("a table of series has no buckets", "Use a table of points.");
        let facts = Arc::new(Facts::new(restore(report)?, coverage));
        Ok(Self::new("series", Data::Rows(rows), Origin::Made(facts)))
    }
}
