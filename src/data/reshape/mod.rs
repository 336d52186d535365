//! Points in another shape: [`Wide`], a column for each series; [`rebucket`], larger buckets, of local time
//! where asked; [`with_gaps`] and [`completeness`], what is missing.

mod completeness;
mod expected;
mod gaps;
mod local_grid;
mod rebucket;
mod series;
mod wide;

pub(crate) use completeness::{Completeness, completeness};
pub(crate) use expected::Expected;
pub(crate) use gaps::with_gaps;
pub(crate) use local_grid::LocalGrid;
pub(crate) use rebucket::{Rebucketed, Reduction, rebucket};
pub(crate) use wide::{Measure, Wide};
