//! [`Batch`]: the pages that an agent has granted to a process, and what is to be reported of them.

use std::collections::HashMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::message::{Lease, PageOutcome, Report};
use crate::clock::{Clock, Moment, Reading};
use crate::http::{Outcome, Reservation};

/// The most pages of one lease.
pub(super) const MOST_PAGES: u64 = 16;
/// The most reports of one message: an agent reads no longer ones.
const MOST_REPORTS: usize = 256;
/// Pages are used so long. An agent that is started again forgets twice as late which requests may be
/// of another day.
const VALID: Duration = Duration::from_secs(300);
/// After so long without a lease the next one is small again.
const QUIET: Duration = Duration::from_secs(60);

/// A page that may be requested: it is counted already.
#[derive(Debug)]
struct Page {
    lease: String,
    number: u64,
    /// The requests that are left of the allowance after it.
    must_remain: u64,
    granted: Duration,
    granted_wall: Timestamp,
}

impl Page {
    /// By two clocks: one stands still while the machine sleeps, the other may be set back.
    fn is_valid(&self, clock: &Clock) -> bool {
        let wall = clock.wall().duration_since(self.granted_wall);
        let valid = SignedDuration::try_from(VALID).unwrap_or(SignedDuration::MAX);
        clock.monotonic().saturating_sub(self.granted) < VALID && wall < valid
    }

    fn report(self, outcome: PageOutcome) -> Report {
        Report { lease: self.lease, page: self.number, outcome }
    }
}

/// The pages of one process.
#[derive(Debug, Default)]
pub(super) struct Batch {
    free: Vec<Page>,
    /// Those under way, by the number of their reservation.
    under_way: HashMap<u64, Page>,
    next: u64,
    /// What became of others, not told yet; with the readings of their replies.
    told_next: Vec<(Page, Outcome)>,
    /// How many pages the latest lease asked for, and when.
    asked: Option<(u64, Duration)>,
    /// The newest reading of the service's time.
    reading: Option<Reading>,
    /// What is left of the allowance, as the latest lease said, with the pages of this process.
    left: Option<u64>,
}

impl Batch {
    /// Whether a page is there for a request that leaves so many.
    pub(super) fn has_page(&mut self, clock: &Clock, must_remain: u64) -> bool {
        self.drop_old(clock);
        self.free.iter().any(|page| page.must_remain >= must_remain)
    }

    /// Takes a page for a request that leaves so many.
    pub(super) fn take(&mut self, clock: &Clock, must_remain: u64) -> Option<Reservation> {
        self.drop_old(clock);
        // Those that leave more can do for any request: they are taken last.
        let fits = |page: &&Page| page.must_remain >= must_remain;
        let least = self.free.iter().filter(fits).map(|page| page.must_remain).min()?;
        let place = self.free.iter().position(|page| page.must_remain == least)?;
        let page = self.free.remove(place);
        self.next += 1;
        self.under_way.insert(self.next, page);
        self.left = self.left.map(|left| left.saturating_sub(1));
        Some(Reservation::elsewhere(self.next))
    }

    /// What became of a request. A page of which no byte was sent can be used again.
    pub(super) fn settle(&mut self, reservation: &Reservation, outcome: Outcome, clock: &Clock) {
        let Some(page) = self.under_way.remove(&reservation.number()) else { return };
        if let Outcome::Replied { reading: Some(reading), .. } = outcome {
            self.reading = Some(reading);
        }
        if outcome == Outcome::Unsent && page.is_valid(clock) {
            self.left = self.left.map(|left| left.saturating_add(1));
            self.free.push(page);
        } else {
            self.told_next.push((page, outcome));
        }
    }

    /// How many pages to ask for: one at first, twice as many each time.
    pub(super) fn wanted(&mut self, clock: &Clock) -> u64 {
        let now = clock.monotonic();
        let wanted = match self.asked {
            Some((pages, at)) if now.saturating_sub(at) < QUIET => (2 * pages).min(MOST_PAGES),
            _ => 1,
        };
        self.asked = Some((wanted, now));
        wanted
    }

    pub(super) fn add(&mut self, lease: &Lease, must_remain: u64, clock: &Clock) {
        let (granted, granted_wall) = (clock.monotonic(), clock.wall());
        self.free.extend((0..lease.pages.min(MOST_PAGES)).map(|number| {
            let lease = lease.name.clone();
            Page { lease, number, must_remain, granted, granted_wall }
        }));
        self.left = lease.allowance.left.map(|left| left.saturating_add(self.free_pages()));
        let known = Reading { service: lease.service_time, boot: clock.moment().boot };
        self.reading.get_or_insert(known);
    }

    pub(super) fn observe(&mut self, reading: Reading) {
        self.reading = Some(reading);
    }

    pub(super) fn reading(&self) -> Option<Reading> {
        self.reading
    }

    /// Takes what is to be told, the rest of many with the next message. Where telling it fails, the
    /// agent counts too many, never too few.
    pub(super) fn reports(&mut self, now: Moment) -> Vec<Report> {
        let now_told = self.told_next.len().min(MOST_REPORTS);
        self.told_next
            .drain(..now_told)
            .map(|(page, outcome)| page.report(PageOutcome::new(outcome, now)))
            .collect()
    }

    /// The pages that are neither used nor under way.
    pub(super) fn free_pages(&self) -> u64 {
        self.free.len() as u64
    }

    /// Gives up the pages that nobody uses.
    pub(super) fn give_back(&mut self) {
        let unused = std::mem::take(&mut self.free);
        self.told_next.extend(unused.into_iter().map(|page| (page, Outcome::Unsent)));
        self.asked = None;
    }

    pub(super) fn left(&self) -> Option<u64> {
        self.left
    }

    fn drop_old(&mut self, clock: &Clock) {
        let old = self.free.extract_if(.., |page| !page.is_valid(clock));
        let old: Vec<_> = old.map(|page| (page, Outcome::Unsent)).collect();
        self.told_next.extend(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::AllowanceState;

    fn lease(pages: u64) -> Lease {
        let allowance = AllowanceState {
            used: pages,
            limit: None,
            left: None,
            resets_at: Timestamp::MAX,
            token_requests: 0,
            token_requests_this_hour: 0,
        };
        let (token, pause_until, name) = (None, None, "lease".to_owned());
        let (resets_at, service_time) = (Timestamp::MAX, Timestamp::UNIX_EPOCH);
        Lease { token, name, pages, allowance, resets_at, pause_until, service_time }
    }

    fn clock() -> Clock {
        Clock::frozen_at("2026-11-20T12:00:00Z".parse().expect("a time"))
    }

    fn unsent(batch: &mut Batch, clock: &Clock) -> usize {
        let told = batch.reports(clock.moment());
        told.iter().filter(|report| matches!(report.outcome, PageOutcome::Unsent)).count()
    }

    #[test]
    fn a8_pages_are_used_for_five_minutes_by_the_clock_that_is_ahead() {
        for step in [false, true] {
            let (clock, mut batch) = (clock(), Batch::default());
            batch.add(&lease(3), 0, &clock);
            clock.advance(VALID.saturating_sub(Duration::from_secs(1)));
            assert!(batch.take(&clock, 0).is_some());
            if step {
                clock.step(SignedDuration::from_secs(1));
            } else {
                clock.advance(Duration::from_secs(1));
            }
            assert!(batch.take(&clock, 0).is_none());
            assert_eq!((unsent(&mut batch, &clock), batch.free_pages()), (2, 0));
        }
    }

    #[test]
    fn a8_a_page_that_was_not_sent_is_used_again_and_one_that_was_is_reported_once() {
        let (clock, mut batch) = (clock(), Batch::default());
        batch.add(&lease(1), 0, &clock);
        for outcome in [Outcome::Unsent, Outcome::Unsent, Outcome::Lost] {
            let page = batch.take(&clock, 0).expect("a page");
            assert!(batch.take(&clock, 0).is_none(), "it is under way");
            batch.settle(&page, outcome, &clock);
            batch.settle(&page, Outcome::Lost, &clock);
        }
        let told = batch.reports(clock.moment());
        assert!(matches!(told[..], [Report { page: 0, outcome: PageOutcome::Lost, .. }]));
        assert!(batch.reports(clock.moment()).is_empty());
    }

    #[test]
    fn a_page_that_leaves_enough_is_found_and_the_others_are_for_those_who_need_less() {
        let (clock, mut batch) = (clock(), Batch::default());
        batch.add(&lease(1), 0, &clock);
        batch.add(&lease(1), 50, &clock);
        assert!(!batch.has_page(&clock, 51) && batch.has_page(&clock, 50));
        assert!(batch.take(&clock, 0).is_some() && batch.has_page(&clock, 50));
        assert!(batch.take(&clock, 10).is_some());
        assert!(batch.take(&clock, 0).is_none());
    }

    #[test]
    fn leases_grow_while_pages_are_used_and_begin_small_after_a_pause() {
        let (clock, mut batch) = (clock(), Batch::default());
        let wanted: Vec<_> = (0..6).map(|_| batch.wanted(&clock)).collect();
        assert_eq!(wanted, [1, 2, 4, 8, 16, 16]);
        clock.advance(QUIET);
        assert_eq!(batch.wanted(&clock), 1);
    }

    #[test]
    fn what_is_given_back_is_reported_and_what_is_under_way_is_not() {
        let (clock, mut batch) = (clock(), Batch::default());
        batch.add(&lease(5), 0, &clock);
        let page = batch.take(&clock, 0).expect("a page");
        batch.give_back();
        assert_eq!(unsent(&mut batch, &clock), 4);
        assert!(!batch.has_page(&clock, 0) && batch.reports(clock.moment()).is_empty());
        let reading = Reading { service: Timestamp::UNIX_EPOCH, boot: clock.moment().boot };
        batch.settle(&page, Outcome::Replied { reading: Some(reading), granted: true }, &clock);
        clock.advance(Duration::from_secs(2));
        let [report] = &batch.reports(clock.moment())[..] else { panic!("one report") };
        let later = clock.moment();
        let Outcome::Replied { reading: Some(heard), granted: true } =
            report.outcome.outcome(later)
        else {
            panic!("a reply")
        };
        assert_eq!(heard.service_at(later.boot), reading.service_at(later.boot));
    }
}
