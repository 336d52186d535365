//! [`SeenSeries`]: the series that the pages of a client had, for `client.series()` if discovery lists none.

use std::collections::BTreeSet;

use crate::data::Identity;
use crate::lock::Mutex;

/// At most so many are remembered.
const MOST: usize = 1 << 20;

/// The series that the pages of a client had.
#[derive(Debug, Default)]
pub struct SeenSeries(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    known: BTreeSet<Identity>,
    /// Those that were new since the newest discovery request ended.
    fresh: Vec<Identity>,
    /// Those of the last page: the next one of its chain usually has the same, which is quickly told.
    last: Vec<Identity>,
    is_full: bool,
}

impl SeenSeries {
    /// Adds the series of a page.
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

    /// Whether there is such a series among those that are new since [`SeenSeries::forget_fresh`].
    pub(crate) fn has_fresh(&self, is_such: impl Fn(&Identity) -> bool) -> bool {
        self.0.lock().fresh.iter().any(is_such)
    }

    pub(crate) fn forget_fresh(&self) {
        self.0.lock().fresh.clear();
    }

    /// The series, ascending, and whether they are all that there were.
    pub fn all(&self) -> (Vec<Identity>, bool) {
        let state = self.0.lock();
        (state.known.iter().cloned().collect(), !state.is_full)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn series(tag: &str) -> Identity {
        Identity::from([None, None, None, None, Some(Arc::from(tag))])
    }

    #[test]
    fn each_series_is_there_once_whatever_page_had_it() {
        let (seen, a, b) = (SeenSeries::default(), series("a"), series("b"));
        for page in [vec![b.clone()], vec![b.clone()], vec![a.clone(), series("b")], vec![]] {
            seen.learn(&page);
        }
        assert_eq!(seen.all(), (vec![a, b], true));
    }
}
