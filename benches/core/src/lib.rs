//! Other JSON readers on the same pages, to compare siteline's decoder with.
//!
//! | | |
//! |---|---|
//! | [`typed`] | pages as structs, for serde's readers; timestamps stay text there, so they do less |
//! | [`seeds`] | pages straight into columns, by serde's visitors: the best that a bare loop can do |
//! | [`pages`] | rendered bodies from a folder, or one made here from a seed |
//! | [`tally`] | what all of them must agree on before anything is timed |

pub mod columns;
pub mod pages;
pub mod seeds;
pub mod tally;
pub mod timestamp;
pub mod typed;
