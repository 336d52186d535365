use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::data::query::QueryInput;
use crate::data::shape::Shape;

/// A service with scripted replies that records the requests.
#[derive(Default)]
struct Script {
    replies: Mutex<VecDeque<Result<String>>>,
    requests: Mutex<Vec<String>>,
}

impl Script {
    fn new(replies: impl IntoIterator<Item = Result<String>>) -> Self {
        Self { replies: Mutex::new(replies.into_iter().collect()), requests: Mutex::default() }
    }

    fn pages(cursors: &[Option<&str>]) -> Self {
        Self::new(cursors.iter().map(|cursor| Ok(page(*cursor))))
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

impl Fetch for Script {
    async fn fetch<T: Send>(
        &self,
        wire: &str,
        read: impl Fn(&Bytes) -> Result<T> + Send + Sync,
    ) -> Result<T> {
        self.requests.lock().push(wire.to_owned());
        let reply = self.replies.lock().pop_front();
        read(&reply.expect("the script has another reply").map(Bytes::from)?)
    }
}

/// A page of one point with this cursor, or the last page.
fn page(cursor: Option<&str>) -> String {
    let cursor = serde_json::to_string(&cursor).unwrap();
    format!(
        r#"{{"series":[{{"siteId":"S","lineId":null,"machineId":null,"deviceId":null,"tagGuid":"T",
        "points":[{{"timestamp":"2026-11-01T00:00:00Z","value":1}}]}}],"nextCursor":{cursor}}}"#
    )
}

fn query() -> Query {
    Query::new(QueryInput { site: Some("S".to_owned()), ..QueryInput::default() }).unwrap()
}

fn settings() -> Arc<DecodeSettings> {
    Arc::new(DecodeSettings::for_query(&query(), Shape::default(), Vec::new()).unwrap())
}

fn chain() -> Chain {
    Chain::new(query(), settings(), "origin", None)
}

fn resume(bookmark: &Bookmark) -> Chain {
    let bookmark = Bookmark::from_bytes(&bookmark.to_bytes()).unwrap();
    Chain::resume(query(), settings(), "origin", None, &bookmark).unwrap()
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    // Nothing in these tests waits, so one poll suffices.
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("a test without a network waited"),
    }
}

fn next(chain: &mut Chain, script: &Script) -> Result<Option<Page>> {
    wait(chain.next(script))
}

/// Reads to the end or the first error; returns the number of pages.
fn drain(chain: &mut Chain, script: &Script) -> (u64, Option<Error>) {
    let mut pages = 0;
    loop {
        match next(chain, script) {
            Ok(Some(_)) => pages += 1,
            Ok(None) => return (pages, None),
            Err(error) => return (pages, Some(error)),
        }
    }
}

fn rejected(status: u16) -> Error {
    Error::new(Kind::RequestRejected, "no").with(|context| context.status = Some(status))
}

#[test]
fn a_chain_follows_the_cursors_to_an_explicit_null() {
    let script = Script::pages(&[Some("a b"), Some(""), None]);
    let mut chain = chain();
    assert!(chain.bookmark().is_none());
    let first = next(&mut chain, &script).unwrap().unwrap();
    assert_eq!((first.sequence, first.rows(), first.is_last), (1, 1, false));
    assert!(first.raw.is_none() && first.bookmark == chain.bookmark());
    let (pages, error) = drain(&mut chain, &script);
    assert!(pages == 2 && error.is_none());
    assert_eq!(script.requests(), ["siteId=S", "siteId=S&cursor=a%20b", "siteId=S&cursor="]);
    assert_eq!((chain.state(), chain.bookmark(), chain.pages), (&PagingState::Done, None, 3));
    assert!(next(&mut chain, &script).unwrap().is_none());
    assert_eq!(script.requests().len(), 3);
}

#[test]
fn the_body_is_kept_on_request() {
    let script = Script::pages(&[None]);
    let mut chain = chain().keep_raw(true).starting_at(40);
    let page = next(&mut chain, &script).unwrap().unwrap();
    assert!(page.raw.unwrap().starts_with(b"{\"series\""));
    assert_eq!((page.sequence, page.is_last, page.bookmark), (40, true, None));
}

#[test]
fn p1_a_repeated_cursor_is_an_error_and_never_the_end() {
    for cycle in [vec!["a", "a"], vec!["a", "b", "a"], vec!["", ""], vec!["x", "a", "b", "b"]] {
        let cursors: Vec<Option<&str>> = cycle.iter().map(|cursor| Some(*cursor)).collect();
        let mut chain = chain();
        let (pages, error) = drain(&mut chain, &Script::pages(&cursors));
        assert_eq!(error.unwrap().kind(), Kind::CursorLoop, "{cycle:?}");
        assert_eq!(pages, cycle.len() as u64 - 1, "{cycle:?}");
        assert!(chain.bookmark().is_some());
    }
}

#[test]
fn p1_a_resumed_chain_detects_a_cycle_of_a_thousand_cursors() {
    let names: Vec<String> = (0..1_000).map(|n| format!("c{n}")).collect();
    let mut cursors: Vec<Option<&str>> = names.iter().map(|name| Some(name.as_str())).collect();
    cursors.push(Some("c0"));
    let script = Script::pages(&cursors);
    let mut chain = chain();
    for _ in 0..500 {
        next(&mut chain, &script).unwrap();
    }
    let mut resumed = resume(&chain.bookmark().unwrap());
    let (pages, error) = drain(&mut resumed, &script);
    assert_eq!((pages, error.unwrap().kind()), (500, Kind::CursorLoop));
    assert_eq!(resumed.pages, 1_000);
}

#[test]
fn p2_a_chain_without_an_end_stops_at_max_pages_with_a_bookmark() {
    let names: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    let cursors: Vec<Option<&str>> = names.iter().map(|name| Some(name.as_str())).collect();
    let script = Script::pages(&cursors);
    let mut chain = Chain::new(query(), settings(), "origin", Some(3));
    let (pages, error) = drain(&mut chain, &script);
    let error = error.unwrap();
    assert_eq!((pages, error.kind()), (3, Kind::QueryError));
    assert!(error.to_string().contains("max_pages=3"), "{error}");
    assert_eq!(script.requests().len(), 3);
    let bookmark = chain.bookmark().unwrap();
    let mut resumed = Chain::resume(query(), settings(), "origin", Some(3), &bookmark).unwrap();
    assert_eq!(drain(&mut resumed, &script).0, 3);
    assert_eq!(resumed.pages, 6);
}

#[test]
fn p2_a_chain_that_ends_at_max_pages_is_complete() {
    let mut chain = Chain::new(query(), settings(), "origin", Some(2));
    let (pages, error) = drain(&mut chain, &Script::pages(&[Some("a"), None]));
    assert!(pages == 2 && error.is_none());
}

/// Replies with new cursors for ever: the points of a page follow from its number, from 0.
struct Endless<P: Fn(u64) -> Vec<u64>>(P, Mutex<u64>);

impl<P: Fn(u64) -> Vec<u64> + Send + Sync> Fetch for Endless<P> {
    async fn fetch<T: Send>(
        &self,
        _wire: &str,
        read: impl Fn(&Bytes) -> Result<T> + Send + Sync,
    ) -> Result<T> {
        let number = std::mem::replace(&mut *self.1.lock(), 0);
        *self.1.lock() = number + 1;
        let point = |at| format!(r#"{{"timestamp":{},"value":{number}}}"#, 1_800_000_000 + at);
        let points: Vec<String> = (self.0)(number).into_iter().map(point).collect();
        let body = format!(
            r#"{{"series":[{{"siteId":"S","lineId":null,"machineId":null,"deviceId":null,
            "tagGuid":"T","points":[{}]}}],"nextCursor":"c{number}"}}"#,
            points.join(",")
        );
        read(&Bytes::from(body))
    }
}

/// Reads until the chain is found endless, at most this many pages; returns their number.
fn pages_until_endless(
    chain: &mut Chain,
    most: u64,
    points: impl Fn(u64) -> Vec<u64> + Send + Sync,
) -> Option<u64> {
    let script = Endless(points, Mutex::new(0));
    for pages in 0..most {
        match wait(chain.next(&script)) {
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
fn p14_a_chain_that_brings_nothing_new_ends_at_ten_times_the_expected_pages() {
    let none = |_| vec![];
    for (expected, pages) in [(None, 1_024), (Some(1), 100), (Some(60), 600)] {
        let mut chain = chain().expecting(expected, 0);
        assert_eq!(pages_until_endless(&mut chain, 9_999, none), Some(pages), "{expected:?}");
        // The same points again and again, on pages that are cut elsewhere each time.
        let cycle = |number: u64| (0..7).map(|row| (number * 7 + row) % 100).collect();
        let mut chain = self::chain().expecting(expected, 0);
        let ended = pages_until_endless(&mut chain, 9_999, cycle).expect("found");
        assert!(ended >= pages && ended <= pages + 103, "{ended} for {expected:?}");
    }
}

#[test]
fn p14_the_error_says_how_many_pages_were_expected_and_read() {
    let mut chain = chain().expecting(Some(3), 0);
    assert_eq!(pages_until_endless(&mut chain, 999, |_| vec![]), Some(100));
    let text = next(&mut chain, &Script::default()).expect_err("the same again").to_string();
    for part in ["100 pages were read (3 were expected)", "counted", "last 100", "max_pages="] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn p14_a_chain_that_brings_new_points_is_never_cut_short() {
    // A few points at a time, as from a service that reduces the page size.
    let mut chain = chain().expecting(Some(1), 0);
    assert_eq!(pages_until_endless(&mut chain, 3_000, |number| vec![number]), None);
    // A new point after 99 pages without one, or with old ones.
    for old in [vec![], vec![0]] {
        let rare = |number| if number % 100 == 99 { vec![number] } else { old.clone() };
        let mut chain = self::chain().expecting(Some(1), 0);
        assert_eq!(pages_until_endless(&mut chain, 1_050, rare), None);
    }
}

/// The same chain in runs of so many pages each, until it is found endless; returns its pages.
fn pages_of_runs(
    run: u64,
    most: u64,
    points: impl Fn(u64) -> Vec<u64> + Send + Sync,
) -> Option<u64> {
    let script = Endless(points, Mutex::new(0));
    let mut chain = chain().expecting(Some(1), 0);
    for pages in 0..most {
        if pages % run == 0
            && let Some(bookmark) = chain.bookmark()
        {
            let resumed = Chain::resume(query(), settings(), "origin", None, &bookmark).unwrap();
            chain = resumed.expecting(Some(1), chain.idle());
        }
        if let Err(error) = wait(chain.next(&script)) {
            assert_eq!((error.kind(), *script.1.lock()), (Kind::EndlessChain, pages));
            return Some(pages);
        }
    }
    None
}

#[test]
fn p14_the_same_page_for_ever_is_found_over_runs_of_a_few_pages_each() {
    for run in [5, 30, 90] {
        let ended = pages_of_runs(run, 999, |_| vec![1, 2, 3]).expect("found");
        assert!(ended >= 151 && ended <= 151 + 100 / (run - 1) + run, "{ended} in runs of {run}");
        // New points, one a page or on every third page.
        assert_eq!(pages_of_runs(run, 1_500, |number| vec![number]), None);
        let some = |number| if number % 3 == 0 { vec![number] } else { vec![] };
        assert_eq!(pages_of_runs(run, 1_500, some), None);
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
fn p14_p2_max_pages_takes_the_place_of_the_rule() {
    let script = Endless(|_| vec![], Mutex::new(0));
    let mut chain = Chain::new(query(), settings(), "origin", Some(2_000)).expecting(Some(1), 0);
    for _ in 0..2_000 {
        assert!(wait(chain.next(&script)).unwrap().is_some());
    }
    assert_eq!(wait(chain.next(&script)).unwrap_err().kind(), Kind::QueryError);
}

#[test]
fn p14_no_page_is_prefetched_where_the_chain_may_be_found_endless() {
    let script = Endless(|_| vec![], Mutex::new(0));
    let mut chain = chain().expecting(Some(1), 40);
    let prefetched = |chain: &Chain| chain.wire_after_next(&Cursor::new("new")).is_some();
    for page in 0..99 {
        assert!(prefetched(&chain), "{page}");
        wait(chain.next(&script)).unwrap();
    }
    assert!(!prefetched(&chain));
    assert_eq!(chain.idle(), 40 + 99);
}

#[test]
fn p4_the_error_for_a_too_long_cursor_has_its_length() {
    let long = "x".repeat(65_536);
    for status in [414, 431] {
        let script = Script::new([Ok(page(Some(&long))), Err(rejected(status))]);
        let error = drain(&mut chain(), &script).1.unwrap();
        assert_eq!(error.kind(), Kind::RequestRejected);
        assert!(error.to_string().contains("65536 bytes"), "{error}");
        assert!(!error.to_string().contains("xxx"));
    }
}

#[test]
fn p5_an_empty_page_with_a_cursor_does_not_end_the_chain() {
    let empty = r#"{"series":[],"nextCursor":"b"}"#.to_owned();
    let script = Script::new([Ok(page(Some("a"))), Ok(empty), Ok(page(None))]);
    let mut chain = chain();
    assert!(next(&mut chain, &script).unwrap().unwrap().rows() > 0);
    assert!(next(&mut chain, &script).unwrap().unwrap().rows() == 0);
    assert!(next(&mut chain, &script).unwrap().unwrap().is_last);
}

#[test]
fn p6_a_refused_cursor_and_a_refused_query_give_different_errors() {
    for status in [400, 404, 410] {
        let script = Script::new([Err(rejected(status))]);
        assert_eq!(drain(&mut chain(), &script).1.unwrap().kind(), Kind::RequestRejected);
        let script = Script::new([Ok(page(Some("a"))), Err(rejected(status))]);
        let error = drain(&mut chain(), &script).1.unwrap();
        assert_eq!((error.kind(), error.context().status), (Kind::CursorRejected, Some(status)));
    }
}

#[test]
fn p7_after_any_error_the_same_request_is_repeated() {
    let script = Script::new([
        Ok(page(Some("a&b"))),
        Err(Error::new(Kind::TransportError, "reset")),
        Ok("{\"series\":3}".to_owned()),
        Err(rejected(409)),
        Ok(page(None)),
    ]);
    let mut chain = chain();
    next(&mut chain, &script).unwrap();
    let bookmark = chain.bookmark();
    for kind in [Kind::TransportError, Kind::ProtocolError, Kind::RequestRejected] {
        assert_eq!(next(&mut chain, &script).unwrap_err().kind(), kind);
        assert_eq!(chain.bookmark(), bookmark);
    }
    assert!(next(&mut chain, &script).unwrap().unwrap().is_last);
    let requests = script.requests();
    assert!(requests[1..].iter().all(|wire| wire == "siteId=S&cursor=a%26b"), "{requests:?}");
}

#[test]
fn h8_truncated_json_is_an_error_within_the_attempt_of_the_sender() {
    let script = Script::new([Ok(page(None)[..90].to_owned()), Ok(page(None))]);
    let mut chain = chain();
    let error = next(&mut chain, &script).unwrap_err();
    assert_eq!(error.kind(), Kind::TruncatedBody);
    assert_eq!(error.transience(), crate::error::Transience::Transient);
    assert!(next(&mut chain, &script).unwrap().unwrap().is_last);
    assert_eq!(script.requests(), ["siteId=S"; 2]);
}

#[test]
fn p8_two_chains_of_one_query_are_independent() {
    let (one, two) = (Script::pages(&[Some("a"), None]), Script::pages(&[Some("a"), None]));
    let (mut first, mut second) = (chain(), chain());
    next(&mut first, &one).unwrap();
    assert_eq!(drain(&mut second, &two).0, 2);
    assert_eq!(drain(&mut first, &one).0, 1);
}

#[test]
fn p9_a_dropped_chain_sends_no_more_requests() {
    let script = Script::pages(&[Some("a"), None]);
    let mut chain = chain();
    next(&mut chain, &script).unwrap();
    drop(chain);
    assert_eq!(script.requests().len(), 1);

    let chain = self::chain();
    drop(chain);
    assert_eq!(script.requests().len(), 1);
}

#[test]
fn p12_a_bookmark_of_another_query_or_host_is_refused() {
    let script = Script::pages(&[Some("a")]);
    let mut chain = chain();
    next(&mut chain, &script).unwrap();
    let bookmark = chain.bookmark().unwrap();
    let other = Query::new(QueryInput::default()).unwrap();
    for (query, origin) in [(other, "origin"), (query(), "elsewhere")] {
        let refused = Chain::resume(query, settings(), origin, None, &bookmark);
        assert_eq!(refused.unwrap_err().kind(), Kind::BookmarkError);
    }
}

#[test]
fn p8_the_future_of_a_page_is_send() {
    fn send<T: Send>(future: T) -> T {
        future
    }
    let script = Script::pages(&[None]);
    let mut chain = chain();
    assert!(wait(send(chain.next(&script))).unwrap().is_some());
}

#[test]
fn debug_of_a_chain_does_not_show_a_cursor() {
    let script = Script::pages(&[Some("sesame"), Some("sesame")]);
    let mut chain = chain();
    next(&mut chain, &script).unwrap();
    let error = next(&mut chain, &script).unwrap_err();
    let printed = format!("{chain:?} {:?} {error} {error:?}", chain.bookmark());
    assert!(!printed.contains("sesame"), "{printed}");
    assert!(printed.contains("cursor#"), "{printed}");
}

proptest! {
    #[test]
    fn p12_a_resumed_chain_reads_the_pages_that_the_first_would_have_read(
        length in 2..12_usize, at in 1..11_usize
    ) {
        let at = at.min(length - 1);
        let names: Vec<String> = (1..length).map(|n| format!("/{n}+")).collect();
        let mut cursors: Vec<Option<&str>> = names.iter().map(|name| Some(name.as_str())).collect();
        cursors.push(None);
        let (unbroken, resumed) = (Script::pages(&cursors), Script::pages(&cursors));
        drain(&mut chain(), &unbroken);
        let mut first = chain();
        for _ in 0..at {
            next(&mut first, &resumed).unwrap();
        }
        let mut second = resume(&first.bookmark().unwrap());
        let mut sequence = at as u64;
        while let Some(page) = next(&mut second, &resumed).unwrap() {
            sequence += 1;
            prop_assert_eq!(page.sequence, sequence);
        }
        prop_assert_eq!(unbroken.requests(), resumed.requests());
    }
}
