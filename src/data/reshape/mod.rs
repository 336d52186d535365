//! Points in another shape: [`Wide`], a column for each series; [`rebucket`], larger buckets, of local time
//! where asked.

mod local_grid;
mod rebucket;
mod series;
mod wide;

pub(crate) use local_grid::LocalGrid;
pub(crate) use rebucket::{Rebucketed, Reduction, rebucket};
pub(crate) use wide::{Measure, Wide};
