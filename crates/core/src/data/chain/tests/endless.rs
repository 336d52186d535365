//! Endless chains (P14), and the limit of `max_pages`.

use super::*;

/// Replies with new cursors forever. The number of a page, from 0, determines its points.
struct Endless<P: Fn(u64) -> Vec<u64>>(P, Mutex<u64>);

impl<P: Fn(u64) -> Vec<u64>> Service for Endless<P> {
    fn reply(&self, _wire: &str) -> Result<String> {
        let number = std::mem::replace(&mut *self.1.lock(), 0);
        *self.1.lock() = number + 1;
        let point = |at| format!(r#"{{"timestamp":{},"value":{number}}}"#, 1_800_000_000 + at);
        let points: Vec<String> = (self.0)(number).into_iter().map(point).collect();
        Ok(format!(
            r#"{{"series":[{{"siteId":"S","lineId":null,"machineId":null,"deviceId":null,
            "tagGuid":"T","points":[{}]}}],"nextCursor":"c{number}"}}"#,
            points.join(",")
        ))
    }
}

/// Reads until the chain is found endless, up to `most` pages. Returns the number of pages.
fn pages_until_endless(
    chain: &mut Chain,
    most: u64,
    points: impl Fn(u64) -> Vec<u64>,
) -> Option<u64> {
    pages_of_runs(chain, u64::MAX, most, points)
}

/// Like [`pages_until_endless`], in runs of this many pages each.
fn pages_of_runs(
    chain: &mut Chain,
    run: u64,
    most: u64,
    points: impl Fn(u64) -> Vec<u64>,
) -> Option<u64> {
    let script = Endless(points, Mutex::new(0));
    for pages in 0..most {
        if pages > 0 && pages % run == 0 {
            let bookmark = chain.bookmark().unwrap();
            *chain = resume(&bookmark).expecting(Some(1), chain.idle());
        }
        match next(chain, &script) {
            Ok(page) => assert!(page.is_some()),
            Err(error) => {
                assert_eq!((error.kind(), *script.1.lock()), (Kind::EndlessChain, pages));
                assert!(chain.bookmark().is_some());
                return Some(pages);
            }
        }
    }
    None
}

#[test]
fn p14_an_idle_chain_ends_at_ten_times_its_pages() {
    let none = |_| vec![];
    for (expected, pages) in [(None, 1_024), (Some(1), 100), (Some(60), 600)] {
        let mut chain = chain().expecting(expected, 0);
        assert_eq!(pages_until_endless(&mut chain, 9_999, none), Some(pages), "{expected:?}");
        // The same points repeat, with different page breaks.
        let cycle = |number: u64| (0..7).map(|row| (number * 7 + row) % 100).collect();
        let mut chain = self::chain().expecting(expected, 0);
        let ended = pages_until_endless(&mut chain, 9_999, cycle).expect("found");
        assert!(ended >= pages && ended <= pages + 103, "{ended} for {expected:?}");
    }
}

#[test]
fn p14_the_error_contains_expected_and_read_pages() {
    let mut chain = chain().expecting(Some(3), 0);
    assert_eq!(pages_until_endless(&mut chain, 999, |_| vec![]), Some(100));
    let text = next(&mut chain, &Script::default()).expect_err("the same again").to_string();
    for part in ["100 pages were read (3 expected)", "counted", "last 100", "max_pages="] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn p14_a_chain_with_new_points_is_never_endless() {
    // Few points per page, as from a service that reduces the page size.
    let mut chain = chain().expecting(Some(1), 0);
    assert_eq!(pages_until_endless(&mut chain, 3_000, |number| vec![number]), None);
    // A new point after 99 pages without one, or with old ones.
    for old in [vec![], vec![0]] {
        let rare = |number| if number % 100 == 99 { vec![number] } else { old.clone() };
        let mut chain = self::chain().expecting(Some(1), 0);
        assert_eq!(pages_until_endless(&mut chain, 1_050, rare), None);
    }
}

#[test]
fn p14_a_repeated_page_is_found_over_short_runs() {
    let pages_of_runs = |run, most, points: &dyn Fn(u64) -> Vec<u64>| {
        pages_of_runs(&mut chain().expecting(Some(1), 0), run, most, points)
    };
    for run in [5, 30, 90] {
        let ended = pages_of_runs(run, 999, &|_| vec![1, 2, 3]).expect("found");
        assert!(ended >= 151 && ended <= 151 + 100 / (run - 1) + run, "{ended} in runs of {run}");
        // New points, one a page or on every third page.
        assert_eq!(pages_of_runs(run, 1_500, &|number| vec![number]), None);
        let some = |number| if number % 3 == 0 { vec![number] } else { vec![] };
        assert_eq!(pages_of_runs(run, 1_500, &some), None);
    }
}

#[test]
fn p14_points_outside_the_range_are_no_new_points() {
    let at = |second: i64| jiff::Timestamp::from_second(1_800_000_000 + second).ok();
    let input = QueryInput { start: at(0), end: at(60), ..QueryInput::default() };
    let query = Query::new(input).unwrap();
    let mut chain = Chain::new(query, settings(), "origin", None).expecting(Some(1), 0);
    assert_eq!(pages_until_endless(&mut chain, 9_999, |number| vec![60 + number]), Some(100));
}

#[test]
fn p14_p2_max_pages_replaces_the_rule() {
    let script = Endless(|_| vec![], Mutex::new(0));
    let mut chain = Chain::new(query(), settings(), "origin", Some(2_000)).expecting(Some(1), 0);
    for _ in 0..2_000 {
        assert!(next(&mut chain, &script).unwrap().is_some());
    }
    assert_eq!(next(&mut chain, &script).unwrap_err().kind(), Kind::PageLimitReached);
}

#[test]
fn p14_a_possibly_endless_chain_is_not_prefetched() {
    let script = Endless(|_| vec![], Mutex::new(0));
    let mut chain = chain().expecting(Some(1), 40);
    let prefetched = |chain: &Chain| chain.wire_after_next(&Cursor::new("new")).is_some();
    for page in 0..99 {
        assert!(prefetched(&chain), "{page}");
        next(&mut chain, &script).unwrap();
    }
    assert!(!prefetched(&chain));
    assert_eq!(chain.idle(), 40 + 99);
}

#[test]
fn p2_no_page_is_prefetched_beyond_max_pages() {
    let prefetched = |chain: &Chain| chain.wire_after_next(&Cursor::new("new")).is_some();
    let script = Endless(|number| vec![number], Mutex::new(0));
    for (limit, pages) in [(1, 0), (2, 1), (4, 3)] {
        let mut chain = Chain::new(query(), settings(), "origin", Some(limit));
        for page in 0..pages {
            assert!(prefetched(&chain), "{page} of {limit}");
            next(&mut chain, &script).unwrap();
        }
        assert!(!prefetched(&chain), "the next page is the last of {limit}");
        // Pages before a resumption do not count.
        let Some(bookmark) = chain.bookmark() else { continue };
        let resumed =
            Chain::new(query(), settings(), "origin", Some(limit)).resumed(&bookmark).unwrap();
        assert!(prefetched(&resumed), "{limit}");
    }
}
