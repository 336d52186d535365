//! What a run may still read, of all its feeds and in order. It is kept up to date feed by feed, so
//! that what a page changes costs the same whatever the number of feeds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::plan::PlanStep;
use super::task::Why;
use crate::client::Spending;

/// The place of a step in the order: its class, its start, its feed, and its number in the feed's plan.
type Place = (Why, i64, usize, usize);

/// The next step of each feed, in order, and the sums of what is expected of all its steps.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    steps: BTreeMap<Place, PlanStep>,
    feeds: Vec<FeedSteps>,
    all: Sums,
}

/// The steps of one feed: the place of the first, and the sums of all.
#[derive(Debug, Default, Clone, Copy)]
struct FeedSteps {
    first: Option<Place>,
    sums: Sums,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    pages: u128,
    /// The number of steps of which no pages are known.
    unknown: usize,
    /// The pages of the steps that do not fill; one where they are not known.
    urgent: u128,
}

/// A chain that is being read.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// Its step, with the pages that are left of it.
    pub(super) step: PlanStep,
    pub(super) spending: Arc<Spending>,
}

impl Agenda {
    /// Of so many feeds, none of which has a step.
    pub(super) fn new(feeds: usize) -> Self {
        Self { feeds: vec![FeedSteps::default(); feeds], ..Self::default() }
    }

    /// Replaces the steps of a feed. The first in order is the one that may begin: after it the feed is
    /// planned again.
    pub(super) fn replace(&mut self, feed: usize, steps: &[PlanStep]) {
        let sums = Sums::of(steps);
        let place = |(number, step): (usize, &PlanStep)| {
            ((step.why, step.range.start, feed, number), *step)
        };
        let first = steps.iter().enumerate().map(place).min_by_key(|(place, _)| *place);
        let new = FeedSteps { first: first.map(|(place, _)| place), sums };
        let old = std::mem::replace(&mut self.feeds[feed], new);
        if let Some(place) = old.first {
            self.steps.remove(&place);
        }
        self.steps.extend(first);
        let all = &mut self.all;
        all.pages = all.pages - old.sums.pages + sums.pages;
        all.unknown = all.unknown - old.sums.unknown + sums.unknown;
        all.urgent = all.urgent - old.sums.urgent + sums.urgent;
    }

    /// The next step of each feed, in the order in which they are read.
    pub(super) fn steps(&self) -> impl Iterator<Item = &PlanStep> {
        self.steps.values()
    }

    /// The expected pages of all steps; `None` where those of one are not known.
    pub(super) fn pages(&self) -> Option<u64> {
        (self.all.unknown == 0).then(|| u64::try_from(self.all.pages).unwrap_or(u64::MAX))
    }

    /// The expected pages of the steps that do not fill.
    pub(super) fn urgent_pages(&self) -> u64 {
        u64::try_from(self.all.urgent).unwrap_or(u64::MAX)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl Sums {
    fn of(steps: &[PlanStep]) -> Self {
        let urgent = steps.iter().filter(|step| !step.fills);
        Self {
            pages: steps.iter().filter_map(|step| step.pages).map(u128::from).sum(),
            unknown: steps.iter().filter(|step| step.pages.is_none()).count(),
            urgent: urgent.map(|step| step.pages.map_or(1, u128::from)).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ranges::Range;
    use super::*;

    fn step(feed: usize, why: Why, start: i64, pages: Option<u64>) -> PlanStep {
        let range = Range::new(start, start + 10);
        PlanStep { feed, why, range, pages, fills: why == Why::Backfill }
    }

    fn shown(agenda: &Agenda) -> Vec<(Why, i64, usize)> {
        agenda.steps().map(|step| (step.why, step.range.start, step.feed)).collect()
    }

    #[test]
    fn the_next_steps_of_all_feeds_are_in_order_of_class_then_time_then_feed() {
        let mut agenda = Agenda::new(4);
        assert!(agenda.is_empty());
        agenda.replace(1, &[step(1, Why::Backfill, 0, None), step(1, Why::Recent, 20, Some(1))]);
        agenda.replace(0, &[step(0, Why::Settle, 10, Some(4)), step(0, Why::Recent, 20, Some(2))]);
        agenda.replace(2, &[step(2, Why::Settle, 0, Some(1)), step(2, Why::Backfill, 10, Some(1))]);
        agenda.replace(3, &[step(3, Why::Recent, 10, Some(1))]);
        let expected =
            [(Why::Recent, 10, 3), (Why::Recent, 20, 0), (Why::Recent, 20, 1), (Why::Settle, 0, 2)];
        assert_eq!(shown(&agenda), expected, "the first of each feed");
        agenda.replace(0, &[]);
        agenda.replace(3, &[step(3, Why::Backfill, 0, Some(1))]);
        assert_eq!(shown(&agenda), [expected[2], expected[3], (Why::Backfill, 0, 3)]);
    }

    #[test]
    fn of_two_steps_of_a_feed_with_the_same_start_the_first_of_its_plan_comes_first() {
        let mut agenda = Agenda::new(1);
        let long = PlanStep { range: Range::new(0, 99), ..step(0, Why::Resume, 0, None) };
        agenda.replace(0, &[long, step(0, Why::Resume, 0, None)]);
        let ends: Vec<i64> = agenda.steps().map(|step| step.range.end).collect();
        assert_eq!(ends, [99]);
    }

    #[test]
    fn the_pages_are_those_of_the_steps_that_are_there() {
        let mut agenda = Agenda::new(2);
        assert_eq!((agenda.pages(), agenda.urgent_pages()), (Some(0), 0));
        agenda.replace(
            0,
            &[step(0, Why::Recent, 0, Some(3)), step(0, Why::Backfill, 0, Some(u64::MAX))],
        );
        agenda.replace(1, &[step(1, Why::Settle, 0, None)]);
        assert_eq!((agenda.pages(), agenda.urgent_pages()), (None, 4), "one of them is not known");
        agenda.replace(1, &[]);
        assert_eq!((agenda.pages(), agenda.urgent_pages()), (Some(u64::MAX), 3));
        agenda.replace(0, &[step(0, Why::Recent, 0, Some(2))]);
        assert_eq!((agenda.pages(), agenda.urgent_pages()), (Some(2), 2));
    }
}
