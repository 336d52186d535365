//! Points in another shape: [`Wide`], a column for each series.

mod wide;

pub(crate) use wide::{Measure, Wide};
