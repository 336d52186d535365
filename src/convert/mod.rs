pub(crate) mod arrow_stream;
pub(crate) mod asked_time;
pub(crate) mod capsule;
pub(crate) mod clock;
pub(crate) mod columns;
pub(crate) mod rows;
pub(crate) mod state;
pub(crate) mod values;
