//! Ranges cut and joined to chains: short ones, so that a cursor that dies costs little, and not
//! more of them than it takes.

use super::feed::Feed;
use super::ranges::{Range, Ranges};
use crate::client::density::Density;

/// A chain is planned to take no more pages.
pub(super) const MOST_PAGES: u64 = 100;
/// Nor to read more windows: how long a range a service answers is not shown (§8).
const MOST_WINDOWS: i64 = 31;

/// The chains that read these ranges, in order. Neighbouring windows are one chain while it is
/// expected to stay short, and while it is at most twice as long as one that proved so; a window
/// that is not, is cut on a smaller grid. While nothing was read, a chain is at most a window.
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

/// The widest grid whose windows are short enough.
fn step(feed: &Feed, density: &Density) -> i64 {
    let is_short = |step: &i64| density.pages(*step).is_none_or(|pages| pages <= MOST_PAGES);
    feed.steps().find(is_short).or_else(|| feed.steps().last()).unwrap_or(feed.window())
}
