use super::arguments::microseconds;
use crate::prelude::*;
use siteline_core::data::{Identity, PointColumns, TableBuilder};
use siteline_sandbox::{AsOf, SandboxError, Selection, Truth};

/// Site, line and filters.
pub(super) type Asked = (Option<String>, Option<String>, Vec<(String, Vec<String>)>);

pub(super) fn selection((site, line, filters): Asked) -> PyResult<Selection> {
    let (sites, lines) = (site.into_iter().collect(), line.into_iter().collect());
    let mut selection = Selection { sites, lines, ..Selection::default() };
    for (name, ids) in filters {
        let unknown = || SandboxError::new(format!("The sandbox has no filter {name:?}."));
        *selection.filter(&name).ok_or_else(unknown).or_raise()? = ids;
    }
    Ok(selection)
}

/// `"final"`, or a time.
pub(super) fn as_of(clock: &Clock, at: &Object<'_>) -> PyResult<AsOf> {
    let is_final = at.cast::<PyString>().is_ok_and(|text| text == "final");
    if is_final { Ok(AsOf::Final) } else { microseconds(clock)(at, "at").map(AsOf::Time) }
}

pub(super) fn points(truth: &Truth) -> Result<PointColumns> {
    let identity = |members: [(&str, Option<&str>); 5]| {
        Identity::from(members.map(|(_, text)| text.map(Arc::from)))
    };
    let series: Vec<Identity> =
        truth.series.iter().map(|series| identity(series.members())).collect();
    let mut table = TableBuilder::new(truth.timestamp.len());
    for (row, timestamp) in truth.timestamp.iter().enumerate() {
        let numbers = [truth.value[row], truth.minimum[row], truth.maximum[row]];
        table.push(*timestamp, numbers, truth.sample_count[row]);
        table.series(&series[truth.series_of[row] as usize]);
    }
    table.finish()
}
