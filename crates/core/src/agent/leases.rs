//! [`Leases`]: the pages that an agent has granted, until it is told what became of them.

use std::collections::HashMap;
use std::time::Duration;

use super::message::Report;
use crate::clock::Moment;
use crate::http::{Outcome, Reservation};

/// Nobody reports after this time: clients use a page for half of it, and a request takes the rest at
/// most.
const OLD: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(super) struct Leases {
    /// Tokens and pages that were granted.
    pub(super) granted: u64,
    open: HashMap<String, (Reservation, Duration)>,
}

impl Leases {
    /// Keeps a page. Returns its name, which no page of another agent has.
    pub(super) fn grant(&mut self, page: Reservation, now: Duration) -> String {
        self.granted += 1;
        let name = uuid::Uuid::new_v4().simple().to_string();
        self.open.insert(name.clone(), (page, now));
        name
    }

    /// Takes the reported pages, each once. Forgets those of clients that ended without a report, which
    /// stay counted like those of a killed process.
    pub(super) fn settled(
        &mut self,
        reports: &[Report],
        passed: Duration,
        now: Moment,
    ) -> Vec<(Reservation, Outcome)> {
        self.open.retain(|_, (_, since)| passed.saturating_sub(*since) <= OLD);
        let settled = reports.iter().filter_map(|report| {
            let (reservation, _) = self.open.remove(&report.page)?;
            Some((reservation, report.outcome.outcome(now)))
        });
        settled.collect()
    }

    /// Pages without a report.
    pub(super) fn lent(&self) -> u64 {
        self.open.len() as u64
    }
}
