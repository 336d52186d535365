//! Code that the core and the sandbox share: the clock, locks without poisoning, and conversion of
//! Arrow columns to plain values.

pub mod arrow;
pub mod clock;
pub mod lock;
