//! [`Pages`]: the pages that an agent granted to a process, and their pending reports.

use std::collections::HashMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::message::{LeasedPage, Report};
use crate::clock::{Clock, Moment, Reading};
use crate::http::{Outcome, Reservation};

/// How long a page may be used. The agent forgets a page after twice this time.
const VALID: Duration = Duration::from_secs(300);

/// A page that may be requested. It is already counted.
#[derive(Debug)]
struct HeldPage {
    name: String,
    /// The requests that remain of the allowance after this page.
    must_remain: u64,
    granted: Duration,
    granted_wall: Timestamp,
}

impl HeldPage {
    /// Checks two clocks: one stops while the machine sleeps, and the other may be set back.
    fn is_valid(&self, clock: &Clock) -> bool {
        let wall = clock.wall().duration_since(self.granted_wall);
        let valid = SignedDuration::try_from(VALID).unwrap_or(SignedDuration::MAX);
        clock.monotonic().saturating_sub(self.granted) < VALID && wall < valid
    }
}

/// The pages of one process.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Pages of requests that were cancelled, or that sent no byte.
    free: Vec<HeldPage>,
    /// Pages in use, by reservation number.
    under_way: HashMap<u64, HeldPage>,
    next: u64,
    unreported: Vec<(HeldPage, Outcome)>,
    /// The newest reading of the service's time.
    pub(super) reading: Option<Reading>,
    /// The remaining allowance that the agent last sent.
    remaining: Option<u64>,
}

impl Pages {
    /// Whether a free page fits a request that must leave `must_remain` requests.
    pub(super) fn has_page(&mut self, clock: &Clock, must_remain: u64) -> bool {
        let old = self.free.extract_if(.., |page| !page.is_valid(clock));
        self.unreported.extend(old.map(|page| (page, Outcome::Unsent)));
        self.free.iter().any(|page| page.must_remain >= must_remain)
    }

    /// Takes a page for a request that must leave `must_remain` requests.
    pub(super) fn take(&mut self, clock: &Clock, must_remain: u64) -> Option<Reservation> {
        if !self.has_page(clock, must_remain) {
            return None;
        }
        let place = self.free.iter().position(|page| page.must_remain >= must_remain)?;
        self.next += 1;
        self.under_way.insert(self.next, self.free.remove(place));
        Some(Reservation::elsewhere(self.next))
    }

    /// Records the outcome of a request. A page can be used again if no byte was sent.
    pub(super) fn settle(&mut self, reservation: &Reservation, outcome: Outcome, clock: &Clock) {
        let Some(page) = self.under_way.remove(&reservation.number()) else { return };
        if let Outcome::Replied { reading: Some(reading), .. } = outcome {
            self.reading = Some(reading);
        }
        if outcome == Outcome::Unsent && page.is_valid(clock) {
            self.free.push(page);
        } else {
            self.unreported.push((page, outcome));
        }
    }

    pub(super) fn add(&mut self, page: LeasedPage, must_remain: u64, clock: &Clock) {
        let (granted, granted_wall) = (clock.monotonic(), clock.wall());
        self.free.push(HeldPage { name: page.page, must_remain, granted, granted_wall });
        self.remaining = page.allowance.left;
        let known = Reading { service: page.service_time, boot: clock.moment().boot };
        self.reading.get_or_insert(known);
    }

    /// Takes the reports. If the call that sends them fails, the agent counts too many, never too
    /// few.
    pub(super) fn reports(&mut self, now: Moment) -> Vec<Report> {
        let unreported = self.unreported.drain(..);
        unreported.map(|(page, outcome)| Report::new(page.name, outcome, now)).collect()
    }

    /// Marks unused pages to be given back.
    pub(super) fn give_back(&mut self) {
        let unused = self.free.drain(..);
        self.unreported.extend(unused.map(|page| (page, Outcome::Unsent)));
    }

    /// The remaining allowance, including the free pages.
    pub(super) fn remaining(&self) -> Option<u64> {
        self.remaining.map(|remaining| remaining.saturating_add(self.free.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::test_harness::noon;
    use crate::http::AllowanceState;

    fn page() -> LeasedPage {
        let allowance = AllowanceState {
            used: 1,
            limit: None,
            left: None,
            resets_at: Timestamp::MAX,
            token_requests: 0,
            token_requests_this_hour: 0,
        };
        LeasedPage { page: "page".to_owned(), allowance, service_time: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn a8_a_page_is_used_for_five_minutes_by_the_clock_that_is_ahead() {
        for step in [false, true] {
            let (clock, mut pages) = (noon(), Pages::default());
            pages.add(page(), 0, &clock);
            pages.add(page(), 0, &clock);
            clock.advance(VALID.saturating_sub(Duration::from_secs(1)));
            assert!(pages.take(&clock, 0).is_some());
            if step {
                clock.step(SignedDuration::from_secs(1));
            } else {
                clock.advance(Duration::from_secs(1));
            }
            assert!(pages.take(&clock, 0).is_none());
            let told = pages.reports(clock.moment());
            assert!(matches!(told[..], [Report { outcome: Outcome::Unsent, .. }]));
        }
    }

    #[test]
    fn a8_an_unsent_page_is_used_again_and_a_sent_one_reported_once() {
        let (clock, mut pages) = (noon(), Pages::default());
        pages.add(page(), 0, &clock);
        for outcome in [Outcome::Unsent, Outcome::Unsent, Outcome::Lost] {
            let page = pages.take(&clock, 0).expect("a page");
            assert!(pages.take(&clock, 0).is_none(), "it is under way");
            pages.settle(&page, outcome, &clock);
            pages.settle(&page, Outcome::Lost, &clock);
        }
        let told = pages.reports(clock.moment());
        assert!(matches!(told[..], [Report { outcome: Outcome::Lost, .. }]));
        assert!(pages.reports(clock.moment()).is_empty());
    }

    #[test]
    fn a_page_that_leaves_too_few_requests_is_not_taken() {
        let (clock, mut pages) = (noon(), Pages::default());
        pages.add(page(), 50, &clock);
        assert!(!pages.has_page(&clock, 51) && pages.take(&clock, 51).is_none());
        assert!(pages.take(&clock, 50).is_some());
    }

    #[test]
    fn the_report_of_a_page_has_the_time_of_its_reply() {
        let (clock, mut pages) = (noon(), Pages::default());
        pages.add(page(), 0, &clock);
        let page = pages.take(&clock, 0).expect("a page");
        pages.give_back();
        assert!(pages.reports(clock.moment()).is_empty(), "it is under way");
        let reading = Reading { service: Timestamp::UNIX_EPOCH, boot: clock.moment().boot };
        pages.settle(&page, Outcome::Replied { reading: Some(reading), granted: true }, &clock);
        clock.advance(Duration::from_secs(2));
        let [report] = &pages.reports(clock.moment())[..] else { panic!("one report") };
        let later = clock.moment();
        let Outcome::Replied { reading: Some(heard), granted: true } = report.outcome(later) else {
            panic!("a reply")
        };
        assert_eq!(heard.service_at(later.boot), reading.service_at(later.boot));
    }
}
