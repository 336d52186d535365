//! What the core and the sandbox share: time, locks without poisoning, and plain values from Arrow
//! columns.

pub mod arrow;
pub mod clock;
pub mod lock;
