//! Cuts and joins ranges to chains: short ones, so that a rejected cursor costs little, but no more
//! of them than necessary.

use super::feed::Feed;
use super::ranges::{Range, Ranges};
use crate::client::density::Density;

/// The most pages that a chain is planned to take.
pub(super) const MOST_PAGES: u64 = 100;
/// The most windows of a chain: the longest range that a service answers is not documented (§8).
const MOST_WINDOWS: i64 = 31;

/// The chains that read these ranges, in order. Neighbouring windows are joined to one chain of at
/// most [`MOST_PAGES`] expected pages, at most twice as long as the longest chain read so far; at
/// first a chain is one window. A window of more pages is cut on a smaller grid.
pub(super) fn chains(ranges: &Ranges, feed: &Feed, density: &Density) -> Vec<Range> {
    let step = step(feed, density);
    let most = feed.window().saturating_mul(MOST_WINDOWS);
    let limit = density.allowed().clamp(feed.window(), most);
    let is_short = |range: Range| {
        let pages = density.pages(range.seconds());
        pages.is_none_or(|pages| pages <= MOST_PAGES) && range.seconds() <= limit
    };
    let mut chains: Vec<Range> = Vec::new();
    for range in ranges.iter() {
        for part in range.cut(step) {
            let joined = chains.last().map(|last| Range::new(last.start, part.end));
            match (chains.last_mut(), joined) {
                (Some(last), Some(joined)) if last.end == part.start && is_short(joined) => {
                    *last = joined;
                }
                _ => chains.push(part),
            }
        }
    }
    chains
}

/// The widest grid whose steps take at most [`MOST_PAGES`].
fn step(feed: &Feed, density: &Density) -> i64 {
    let is_short = |step: &i64| density.pages(*step).is_none_or(|pages| pages <= MOST_PAGES);
    feed.steps().find(is_short).or_else(|| feed.steps().last()).unwrap_or(feed.window())
}
