//! Points for the tests of tables, each with the tag of its series.

use std::sync::Arc;

use super::{Identity, PointColumns, TableBuilder};

type Values = ([Option<f64>; 3], Option<i64>);
pub(crate) type Row = (String, i64, Values);

/// A series without other ids.
pub(crate) fn series(tag: &str) -> Identity {
    Identity::from([None, None, None, None, Some(Arc::from(tag))])
}

/// Each point has its own envelope.
pub(crate) fn points<'a>(all: impl IntoIterator<Item = (&'a str, i64, Values)>) -> PointColumns {
    let mut table = TableBuilder::new(0);
    for (tag, timestamp, (numbers, count)) in all {
        table.push(timestamp, numbers, count);
        table.series(&series(tag));
    }
    table.finish().expect("points")
}

/// Also checks that a null number is NaN.
pub(crate) fn rows(points: &PointColumns) -> Vec<Row> {
    let row = |tag: &str, row: usize| {
        let (numbers, count) = points.values(row);
        for (number, column) in numbers.iter().zip(&points.numbers) {
            assert_eq!(number.is_none(), column.value(row).is_nan());
        }
        (tag.to_owned(), points.timestamps.value(row), (numbers, count))
    };
    let tag = |identity: &Identity| identity.0[4].as_deref().unwrap_or_default().to_owned();
    let all = points.identified().map(|(identity, rows)| (tag(identity), rows));
    all.flat_map(|(tag, rows)| rows.map(move |at| row(&tag, at)).collect::<Vec<_>>()).collect()
}
