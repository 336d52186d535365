//! Other JSON readers of the same pages, for comparison with siteline's decoder.
//!
//! | | |
//! |---|---|
//! | [`typed`] | pages as structs, for serde's readers; timestamps stay text, so they do less work |
//! | [`seeds`] | pages directly into columns, by serde's visitors: the fastest bare loop |
//! | [`pages`] | rendered bodies from a folder |
//! | [`tally`] | a checksum: all readers must agree on it before they are timed |

pub mod columns;
pub mod pages;
pub mod seeds;
pub mod tally;
pub mod timestamp;
pub mod typed;
