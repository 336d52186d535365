//! Values of Python and of the core, from one to the other.

pub(crate) mod arrow_stream;
pub(crate) mod asked_time;
pub(crate) mod capsule;
pub(crate) mod clock;
pub(crate) mod columns;
pub(crate) mod completeness;
pub(crate) mod frames;
pub(crate) mod holder;
pub(crate) mod ipc;
pub(crate) mod keywords;
pub(crate) mod labels;
mod memory;
pub(crate) mod patching;
mod pickled;
pub(crate) mod plots;
pub(crate) mod rebucketed;
mod records;
pub(crate) mod rows;
pub(crate) mod state;
pub(crate) mod table;
pub(crate) mod values;
pub(crate) mod wide;
pub(crate) mod zone;
