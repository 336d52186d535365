use std::sync::Arc;

use jiff::Timestamp;

use super::plan::Plan;
use super::state::FeedState;
use super::stored::read_states;
use super::task::{Task, Why};
use super::through_store::ThroughStore;
use crate::client::Client;
use crate::client::collect::CollectOnce;
use crate::data::Query;
use crate::data::ranges::Range;
use crate::error::Result;
use crate::store::Store;

/// Plans the cost of reading these scans, without a request. The pages of a scan are known if the
/// client has read a similar scan, or if the store contains a feed with the same parameters. A scan
/// that is read through a store has a chain for each unsettled part.
pub fn plan_scans(
    client: &Client,
    store: Option<&Store>,
    scans: &[(&CollectOnce, &[Arc<ThroughStore>])],
) -> Result<Plan> {
    let states = store.map_or(Ok(Vec::new()), read_states)?;
    let now = client.now();
    let (mut tasks, mut skipped) = (Vec::new(), 0);
    for (scan, through) in scans {
        let is_complete = scan.complete().is_some();
        if through.is_empty() || is_complete {
            let task = |chain: &CollectOnce| chain_task(client, &states, chain, now);
            match scan.chains().as_slice() {
                [] => tasks.push(task(scan)),
                chains => tasks.extend(chains.iter().map(|chain| task(chain))),
            }
        }
        for through in through.iter().filter(|_| !is_complete) {
            let (own, left_out) = through.tasks(now)?;
            tasks.extend(own);
            skipped += left_out;
        }
    }
    let pages = tasks.iter().map(|task| task.pages).sum();
    Ok(Plan { tasks, pages, allowance: client.allowance()?, reserve: 0, skipped, now })
}

fn chain_task(
    client: &Client,
    states: &[(String, FeedState)],
    collected: &CollectOnce,
    now: Timestamp,
) -> Task {
    let query = collected.scan().query();
    let (feed, pages) = match pages_by_feed(states, query) {
        Some((feed, pages)) => (feed, Some(pages)),
        None => (String::new(), client.planned_pages(query)),
    };
    Task {
        feed,
        why: Why::Backfill,
        start: query.start().unwrap_or(Timestamp::UNIX_EPOCH),
        end: query.end().unwrap_or(now),
        pages: collected.pages_left(pages),
    }
}

/// The first feed with the parameters of the query that can estimate its pages.
fn pages_by_feed(states: &[(String, FeedState)], query: &Query) -> Option<(String, u64)> {
    let (start, end) = (query.start()?, query.end()?);
    states.iter().find_map(|(name, state)| {
        state.feed().query(start, end).ok().filter(|same| same == query)?;
        Some((name.clone(), state.density.pages(Range::between(start, end).seconds())?))
    })
}

#[cfg(test)]
mod tests {
    use super::super::feed::{Feed, FeedInput};
    use super::*;
    use crate::test_kit::at;

    /// The state of a feed of this site, which has read one day with this number of pages.
    fn state(site: &str, pages: Option<u64>) -> FeedState {
        let input = FeedInput::new("feed", at("2026-01-01T00:00:00Z"));
        let feed = Feed::new(FeedInput { site: Some(site.to_owned()), ..input }).expect("a feed");
        let mut state = FeedState::new(&feed, "http://127.0.0.1:1");
        if let Some(pages) = pages {
            state.density.learn(86_400, pages, 1_350 * pages, 1_350);
        }
        state
    }

    #[test]
    fn a_matching_feed_estimates_the_pages() {
        let known = [("other", "S2", Some(9)), ("new", "S1", None), ("read", "S1", Some(3))];
        let states = known.map(|(name, site, pages)| (name.to_owned(), state(site, pages)));
        let [start, end] = ["2026-02-01T00:00:00Z", "2026-02-03T00:00:00Z"].map(at);
        let query = |site| state(site, None).feed().query(start, end).expect("a query");
        assert_eq!(pages_by_feed(&states, &query("S1")), Some(("read".to_owned(), 6)));
        assert_eq!(pages_by_feed(&states, &query("S2")), Some(("other".to_owned(), 18)));
        assert_eq!(pages_by_feed(&states, &query("S3")), None, "no feed reads it");
        assert_eq!(pages_by_feed(&states[..2], &query("S1")), None, "no estimate");
        let unbounded = query("S1").over(Some(start), None).expect("a query");
        assert_eq!(pages_by_feed(&states, &unbounded), None);
    }
}
