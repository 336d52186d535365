//! Times, and the sizes of the campaigns: tests that try random seeds, cases or bits.
//!
//! By default a campaign runs a tenth of its trials. If the variable `SITELINE_LONG` is set, it runs all.

use jiff::Timestamp;
use proptest::prelude::ProptestConfig;

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().expect("a timestamp")
}

/// Returns whether the campaigns run all their trials.
pub(crate) fn is_long() -> bool {
    std::env::var_os("SITELINE_LONG").is_some_and(|value| !value.is_empty())
}

/// The number of trials to run, of a campaign of `all` trials.
pub(crate) fn trials(all: u32) -> u32 {
    if is_long() { all } else { all.div_ceil(10) }
}

/// The step between the trials to run, for a campaign that lists them all.
pub(crate) fn step() -> usize {
    if is_long() { 1 } else { 10 }
}

/// A configuration for a campaign of `all` random cases.
pub(crate) fn cases(all: u32) -> ProptestConfig {
    ProptestConfig::with_cases(trials(all))
}
