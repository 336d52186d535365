//! [`Leases`]: the pages that an agent has granted, until it is told what became of them.

use std::collections::HashMap;
use std::time::Duration;

use super::message::Report;
use crate::clock::Moment;
use crate::http::{Outcome, Reservation};

/// Nobody reports after so long: clients use a page for half of it, and a request takes the rest at
/// most.
const OLD: Duration = Duration::from_secs(600);

/// Pages by their lease.
pub(super) struct Leases {
    /// A name that no agent has had: reports of another's pages are of no use.
    start: String,
    granted: u64,
    open: HashMap<String, Open>,
}

struct Open {
    pages: Vec<Option<Reservation>>,
    since: Duration,
}

impl Leases {
    pub(super) fn new() -> Self {
        Self { start: uuid::Uuid::new_v4().simple().to_string(), granted: 0, open: HashMap::new() }
    }

    /// Keeps pages; returns the name of their lease.
    pub(super) fn grant(&mut self, pages: Vec<Reservation>, now: Duration) -> String {
        self.granted += 1;
        let name = format!("{}-{}", self.start, self.granted);
        if !pages.is_empty() {
            let pages = pages.into_iter().map(Some).collect();
            self.open.insert(name.clone(), Open { pages, since: now });
        }
        name
    }

    /// Takes the pages of which something is reported, each once; and those of clients that have ended
    /// without a word, which stay counted.
    pub(super) fn settled(
        &mut self,
        reports: &[Report],
        passed: Duration,
        now: Moment,
    ) -> Vec<(Reservation, Outcome)> {
        let mut settled = Vec::new();
        for report in reports {
            let Some(open) = self.open.get_mut(&report.lease) else { continue };
            let page = usize::try_from(report.page).ok().and_then(|page| open.pages.get_mut(page));
            if let Some(reservation) = page.and_then(Option::take) {
                settled.push((reservation, report.outcome.outcome(now)));
            }
            if open.pages.iter().all(Option::is_none) {
                self.open.remove(&report.lease);
            }
        }
        for (_, open) in self.open.extract_if(|_, open| passed.saturating_sub(open.since) > OLD) {
            let silent = open.pages.into_iter().flatten();
            settled.extend(silent.map(|reservation| (reservation, Outcome::Lost)));
        }
        settled
    }

    /// Leases so far.
    pub(super) fn count(&self) -> u64 {
        self.granted
    }

    /// Pages of which nothing was reported yet.
    pub(super) fn lent(&self) -> u64 {
        self.open.values().map(|open| open.pages.iter().flatten().count() as u64).sum()
    }
}
