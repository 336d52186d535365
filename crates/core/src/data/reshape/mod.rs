//! Points in other shapes: one column per series ([`Wide`]), larger buckets in UTC or local time
//! ([`Rebucketing`]), and missing buckets ([`with_gaps`], [`Completing`]).

mod completeness;
mod expected;
mod gap_list;
mod gaps;
mod local_grid;
mod rebucket;
mod series;
mod wide;

pub use completeness::{Completeness, Completing};
pub use expected::{Coverage, Expected};
pub use gap_list::{GapList, gap_list};
pub use gaps::with_gaps;
pub use local_grid::{Every, LocalGrid};
pub use rebucket::{Partial, Rebucket, Rebucketed, Rebucketing, Reduction};
pub(crate) use series::{Series, by_series};
pub use wide::{Measure, Wide};
