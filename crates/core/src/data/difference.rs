//! Compares the points of a page with stored points, which are passed batch by batch and not kept.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::DataType;

use super::point_columns::{Identity, PointColumns, Values};
use super::schema::COLUMN_NAMES;
use super::table::TableBuilder;
use crate::arrow::{Column, WrongColumn, doubles, integers, texts, times};
use crate::error::{Error, Kind, Result};

#[derive(Debug)]
pub struct Difference {
    /// Not stored.
    pub inserted: PointColumns,
    /// Stored with other values, or withdrawn.
    pub changed: PointColumns,
    /// Stored with the same values.
    pub unchanged: PointColumns,
    /// Stored points of the range that the page lacks, without withdrawn ones.
    pub missing: PointColumns,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    /// A later row has the same point.
    Superseded,
    New,
    Changed,
    Unchanged,
}

pub struct Comparison {
    points: Arc<PointColumns>,
    rows: Vec<Row>,
    /// The place of each series, for `places`.
    series: HashMap<Identity, usize>,
    /// The row of each point, by series and timestamp.
    places: HashMap<(usize, i64), usize>,
    /// Stored points can be missing in this range.
    range: Range<i64>,
    missing: TableBuilder,
}

struct Stored<'a> {
    ids: [Column<&'a str>; 5],
    timestamps: Column<i64>,
    numbers: [Column<f64>; 3],
    counts: Column<i64>,
    flagged: Option<&'a BooleanArray>,
}

/// The series of consecutive stored points.
struct Current<'a> {
    ids: [Option<&'a str>; 5],
    identity: Identity,
    /// `None` if the page lacks it.
    series: Option<usize>,
}

impl<'a> Current<'a> {
    fn new(ids: [Option<&'a str>; 5], known: &HashMap<Identity, usize>) -> Self {
        let identity = Identity::from(ids.map(|id| id.map(Arc::from)));
        let series = known.get(&identity).copied();
        Self { ids, identity, series }
    }
}

impl Comparison {
    /// Later rows win. The range is in microseconds.
    pub fn new(points: Arc<PointColumns>, range: Range<i64>) -> Self {
        let mut series = HashMap::new();
        let mut places = HashMap::with_capacity(points.rows());
        let mut rows = vec![Row::New; points.rows()];
        for (identity, own) in points.identified() {
            let next = series.len();
            let index = *series.entry(identity.clone()).or_insert(next);
            for row in own {
                let earlier = places.insert((index, points.timestamps.value(row)), row);
                if let Some(earlier) = earlier {
                    rows[earlier] = Row::Superseded;
                }
            }
        }
        Self { points, rows, series, places, range, missing: TableBuilder::new(0) }
    }

    /// The ten columns, and optionally `withdrawn`.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let stored = Stored::of_batch(batch)?;
        let mut current: Option<Current<'_>> = None;
        for row in 0..batch.num_rows() {
            let ids = stored.ids.each_ref().map(|ids| ids[row]);
            let current = match &mut current {
                Some(current) if current.ids == ids => current,
                other => other.insert(Current::new(ids, &self.series)),
            };
            let null = || refused("The column \"timestamp\" contains a null.");
            let timestamp = stored.timestamps[row].ok_or_else(null)?;
            let (values, flagged) = stored.values(row);
            let place = current.series.and_then(|series| self.places.get(&(series, timestamp)));
            match place.copied() {
                Some(known) if flagged || self.points.values(known) != values => {
                    self.rows[known] = Row::Changed;
                }
                Some(known) => self.rows[known] = Row::Unchanged,
                None if !flagged && self.range.contains(&timestamp) => {
                    self.missing.push(timestamp, values.0, values.1);
                    self.missing.series(&current.identity);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Each point occurs once, in page order.
    pub fn finish(self) -> Result<Difference> {
        let Self { points, rows, missing, .. } = self;
        let part = |wanted: Row| {
            let mut part = TableBuilder::new(0);
            for (identity, places) in points.identified() {
                let before = part.rows();
                for row in places.filter(|row| rows[*row] == wanted) {
                    let (numbers, count) = points.values(row);
                    part.push(points.timestamps.value(row), numbers, count);
                }
                if part.rows() > before {
                    part.series(identity);
                }
            }
            part.finish()
        };
        Ok(Difference {
            inserted: part(Row::New)?,
            changed: part(Row::Changed)?,
            unchanged: part(Row::Unchanged)?,
            missing: missing.finish()?,
        })
    }
}

impl<'a> Stored<'a> {
    fn of_batch(batch: &'a RecordBatch) -> Result<Self> {
        let names = COLUMN_NAMES;
        let ids = |index: usize| column(batch, names[index], |name, array| texts(name, array));
        let numbers = |index: usize| column(batch, names[index], doubles);
        let flagged = batch.column_by_name("withdrawn").map(|array| match array.data_type() {
            DataType::Boolean => Ok(array.as_boolean()),
            other => {
                Err(refused(&format!("The column \"withdrawn\" has type {other}, not boolean.")))
            }
        });
        Ok(Self {
            ids: [ids(0)?, ids(1)?, ids(2)?, ids(3)?, ids(4)?],
            timestamps: column(batch, names[5], times)?,
            numbers: [numbers(6)?, numbers(7)?, numbers(8)?],
            counts: column(batch, names[9], integers)?,
            flagged: flagged.transpose()?,
        })
    }

    /// The values, and whether the point is withdrawn.
    fn values(&self, row: usize) -> (Values, bool) {
        let flagged = self.flagged.is_some_and(|flags| flags.is_valid(row) && flags.value(row));
        ((self.numbers.each_ref().map(|numbers| numbers[row]), self.counts[row]), flagged)
    }
}

fn column<'a, T>(
    batch: &'a RecordBatch,
    name: &str,
    read: impl FnOnce(&str, &'a ArrayRef) -> std::result::Result<Column<T>, WrongColumn>,
) -> Result<Column<T>> {
    let missing = || refused(&format!("The stored points have no column {name:?}."));
    let array = batch.column_by_name(name).ok_or_else(missing)?;
    read(name, array).map_err(|wrong| refused(&wrong.to_string()))
}

fn refused(message: &str) -> Error {
    Error::new(Kind::QueryError, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::test_points::{self, Row, rows};

    type Point = (&'static str, i64, Option<f64>);

    fn points(of: &[Point]) -> PointColumns {
        let point = |&(tag, at, value): &Point| (tag, at, ([value, None, None], Some(1)));
        test_points::points(of.iter().map(point))
    }

    fn difference(page: &[Point], stored: &[&[Point]]) -> [Vec<(String, i64, Option<f64>)>; 4] {
        let mut comparison = Comparison::new(Arc::new(points(page)), 0..100);
        for batch in stored {
            comparison.add(&points(batch).batch().expect("a batch")).expect("compared");
        }
        let Difference { inserted, changed, unchanged, missing } =
            comparison.finish().expect("parts");
        let shown = |(tag, at, (numbers, _)): Row| (tag, at, numbers[0]);
        [inserted, changed, unchanged, missing]
            .map(|part| rows(&part).into_iter().map(shown).collect())
    }

    #[test]
    fn the_later_of_two_equal_points_wins() {
        let page = [("a", 1, Some(1.0)), ("b", 1, None), ("a", 1, Some(2.0)), ("a", 0, None)];
        let [inserted, changed, unchanged, missing] =
            difference(&page, &[&[("a", 1, Some(2.0))], &[("a", 0, Some(2.0))]]);
        assert_eq!(inserted, [("b".to_owned(), 1, None)]);
        assert_eq!(unchanged, [("a".to_owned(), 1, Some(2.0))]);
        assert_eq!(changed, [("a".to_owned(), 0, None)]);
        assert_eq!(missing, []);
        let [_, changed, unchanged, _] = difference(&page, &[&[("a", 1, Some(1.0))]]);
        assert_eq!((changed.len(), unchanged.len()), (1, 0), "the earlier row is not compared");
    }

    #[test]
    fn stored_points_may_have_any_order() {
        let page = [("a", 3, None), ("a", 1, None), ("a", 2, None)];
        let stored = [("a", 2, None), ("a", 1, None), ("a", 3, None), ("a", 2, None)];
        let outside = [("a", -1, None), ("c", 99, None), ("c", 100, None), ("a", 0, Some(1.0))];
        let [inserted, changed, unchanged, missing] = difference(&page, &[&stored, &outside]);
        assert_eq!((inserted.len(), changed.len(), unchanged.len()), (0, 0, 3));
        assert_eq!(missing, [("c".to_owned(), 99, None), ("a".to_owned(), 0, Some(1.0))]);
    }
}
