//! The series on the pages that a client has read, for `client.series()` if discovery lists none.

use std::collections::BTreeSet;

use crate::data::Identity;
use crate::lock::Mutex;

const MOST: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct SeenSeries(Mutex<SeenState>);

#[derive(Debug, Default)]
struct SeenState {
    known: BTreeSet<Identity>,
    /// Series first seen after the latest discovery request ended.
    fresh: Vec<Identity>,
    /// Series of the last page: the next page usually has the same ones.
    last: Vec<Identity>,
    is_full: bool,
}

impl SeenSeries {
    pub(crate) fn learn(&self, series: &[Identity]) {
        let state = &mut *self.0.lock();
        let is_known = state.last.len() == series.len()
            && state.last.iter().zip(series).all(|(one, other)| one.is_shared_with(other));
        if is_known {
            return;
        }
        for one in series {
            if state.known.len() == MOST {
                state.is_full |= !state.known.contains(one);
            } else if !state.known.contains(one) {
                state.known.insert(one.clone());
                state.fresh.push(one.clone());
            }
        }
        state.last = series.to_vec();
    }

    pub(crate) fn has_fresh(&self, is_such: impl Fn(&Identity) -> bool) -> bool {
        self.0.lock().fresh.iter().any(is_such)
    }

    pub(crate) fn forget_fresh(&self) {
        self.0.lock().fresh.clear();
    }

    /// The series in ascending order, and whether the list is complete.
    pub fn all(&self) -> (Vec<Identity>, bool) {
        let state = self.0.lock();
        (state.known.iter().cloned().collect(), !state.is_full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::test_points::series;

    #[test]
    fn each_series_is_listed_once() {
        let (seen, a, b) = (SeenSeries::default(), series("a"), series("b"));
        for page in [vec![b.clone()], vec![b.clone()], vec![a.clone(), series("b")], vec![]] {
            seen.learn(&page);
        }
        assert_eq!(seen.all(), (vec![a, b], true));
    }
}
