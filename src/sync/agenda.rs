//! What a run may still read, of all its feeds and in order. It is kept up to date feed by feed, so
//! that what a page changes costs the same whatever the number of feeds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::plan::PlanStep;
use super::task::Why;
use crate::client::Spending;

/// The place of a step in the order: its class, its start, its feed, and its number in the feed's plan.
type Place = (Why, i64, usize, usize);

/// The steps of all feeds in order, and the sums of their expected pages.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    steps: BTreeMap<Place, PlanStep>,
    /// The places of each feed's steps.
    places: Vec<Vec<Place>>,
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
        Self { places: vec![Vec::new(); feeds], ..Self::default() }
    }

    /// Replaces the steps of a feed.
    pub(super) fn replace(&mut self, feed: usize, steps: impl IntoIterator<Item = PlanStep>) {
        for place in std::mem::take(&mut self.places[feed]) {
            if let Some(step) = self.steps.remove(&place) {
                let (pages, unknown, urgent) = counted(&step);
                self.pages -= pages;
                self.unknown -= unknown;
                self.urgent -= urgent;
            }
        }
        for (number, step) in steps.into_iter().enumerate() {
            let place = (step.why, step.range.start, feed, number);
            let (pages, unknown, urgent) = counted(&step);
            self.pages += pages;
            self.unknown += unknown;
            self.urgent += urgent;
            self.steps.insert(place, step);
            self.places[feed].push(place);
        }
    }

    /// The steps in the order in which they are read.
    pub(super) fn steps(&self) -> impl Iterator<Item = &PlanStep> {
        self.steps.values()
    }

    /// The expected pages of all steps; `None` where those of one are not known.
    pub(super) fn pages(&self) -> Option<u64> {
        (self.unknown == 0).then(|| u64::try_from(self.pages).unwrap_or(u64::MAX))
    }

    /// The expected pages of the steps that do not fill.
    pub(super) fn urgent_pages(&self) -> u64 {
        u64::try_from(self.urgent).unwrap_or(u64::MAX)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// The pages of a step, whether they are unknown, and those that others must leave for it.
fn counted(step: &PlanStep) -> (u128, usize, u128) {
    let pages = step.pages.map_or(0, u128::from);
    let urgent = if step.fills { 0 } else { step.pages.map_or(1, u128::from) };
    (pages, usize::from(step.pages.is_none()), urgent)
}

#[cfg(test)]
mod tests {
    use super::super::ranges::Range;
    use super::*;

    fn step(feed: usize, why: Why, start: i64, pages: Option<u64>) -> PlanStep {
        let range = Range::new(start, start + 10);
        PlanStep { feed, why, range, pages, fills: why == Why::Fill }
    }

    fn shown(agenda: &Agenda) -> Vec<(Why, i64, usize)> {
        agenda.steps().map(|step| (step.why, step.range.start, step.feed)).collect()
    }

    #[test]
    fn the_steps_of_all_feeds_are_in_order_of_class_then_time_then_feed() {
        let mut agenda = Agenda::new(2);
        assert!(agenda.is_empty());
        agenda.replace(1, [step(1, Why::Fill, 0, None), step(1, Why::Edge, 20, Some(1))]);
        agenda.replace(0, [step(0, Why::Edge, 20, Some(2)), step(0, Why::Settle, 10, Some(4))]);
        let expected =
            [(Why::Edge, 20, 0), (Why::Edge, 20, 1), (Why::Settle, 10, 0), (Why::Fill, 0, 1)];
        assert_eq!(shown(&agenda), expected);
        agenda.replace(0, []);
        assert_eq!(shown(&agenda), [expected[1], expected[3]]);
    }

    #[test]
    fn two_steps_of_a_feed_with_the_same_start_stay_in_the_order_of_its_plan() {
        let mut agenda = Agenda::new(1);
        let long = PlanStep { range: Range::new(0, 99), ..step(0, Why::Resume, 0, None) };
        agenda.replace(0, [long, step(0, Why::Resume, 0, None)]);
        let ends: Vec<i64> = agenda.steps().map(|step| step.range.end).collect();
        assert_eq!(ends, [99, 10]);
    }

    #[test]
    fn the_pages_are_those_of_the_steps_that_are_there() {
        let mut agenda = Agenda::new(2);
        assert_eq!((agenda.pages(), agenda.urgent_pages()), (Some(0), 0));
        agenda.replace(0, [step(0, Why::Edge, 0, Some(3)), step(0, Why::Fill, 0, Some(u64::MAX))]);
        agenda.replace(1, [step(1, Why::Settle, 0, None)]);
        assert_eq!((agenda.pages(), agenda.urgent_pages()), (None, 4), "one of them is not known");
        agenda.replace(1, []);
        assert_eq!((agenda.pages(), agenda.urgent_pages()), (Some(u64::MAX), 3));
        agenda.replace(0, [step(0, Why::Edge, 0, Some(2))]);
        assert_eq!((agenda.pages(), agenda.urgent_pages()), (Some(2), 2));
    }
}
