mod endless;

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::data::query::QueryInput;
use crate::data::shape::Shape;
use crate::http::test_server::page_body;

trait Service {
    fn reply(&self, wire: &str) -> Result<String>;
}

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
        Self::new(cursors.iter().map(|cursor| Ok(page_body(0, *cursor))))
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

impl Service for Script {
    fn reply(&self, wire: &str) -> Result<String> {
        self.requests.lock().push(wire.to_owned());
        self.replies.lock().pop_front().expect("the script has another reply")
    }
}

fn query() -> Query {
    Query::new(QueryInput { site: vec!["S".to_owned()], ..QueryInput::default() }).unwrap()
}

fn settings() -> Arc<DecodeSettings> {
    Arc::new(DecodeSettings::for_query(&query(), Shape::default(), Vec::new()).unwrap())
}

fn chain() -> Chain {
    Chain::new(query(), settings(), "origin", None)
}

fn resume(bookmark: &Bookmark) -> Chain {
    let bookmark = Bookmark::from_bytes(&bookmark.to_bytes()).unwrap();
    Chain::new(query(), settings(), "origin", None).resumed(&bookmark).unwrap()
}

fn next(chain: &mut Chain, service: &impl Service) -> Result<Option<Page>> {
    let Some(wire) = chain.wire()? else { return Ok(None) };
    let decode = |text: String| {
        let body = Bytes::from(text);
        let decoding = chain.decoding();
        let decoded = decoding.decode(&body)?;
        Ok((decoding.keep_raw.then_some(body), decoded))
    };
    let reply = service.reply(&wire).and_then(decode);
    chain.accept(reply).map(Some)
}

/// Reads to the end or the first error. Returns the number of pages.
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

#[test]
fn a_chain_follows_the_cursors_to_an_explicit_null() {
    let script = Script::pages(&[Some("a b"), Some(""), None]);
    let mut chain = chain();
    assert!(chain.bookmark().is_none());
    let first = next(&mut chain, &script).unwrap().unwrap();
    assert_eq!((first.sequence, first.rows(), first.is_last), (1, 1, false));
    let digest = |bookmark: Option<Bookmark>| bookmark.map(|bookmark| bookmark.digest());
    assert!(first.raw.is_none() && digest(first.bookmark) == digest(chain.bookmark()));
    let (pages, error) = drain(&mut chain, &script);
    assert!(pages == 2 && error.is_none());
    assert_eq!(script.requests(), ["siteId=S", "siteId=S&cursor=a%20b", "siteId=S&cursor="]);
    assert_eq!((chain.state(), chain.pages), (&PagingState::Done, 3));
    assert!(chain.bookmark().is_none());
    assert!(next(&mut chain, &script).unwrap().is_none());
    assert_eq!(script.requests().len(), 3);
}

#[test]
fn the_body_is_kept_on_request() {
    let script = Script::pages(&[None]);
    let mut chain = chain().keep_raw(true).starting_at(40);
    let page = next(&mut chain, &script).unwrap().unwrap();
    assert!(page.raw.unwrap().starts_with(b"{\"series\""));
    assert_eq!((page.sequence, page.is_last), (40, true));
    assert!(page.bookmark.is_none());
}

#[test]
fn p1_a_repeated_cursor_is_an_error() {
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
fn p1_a_resumed_chain_detects_a_long_cycle() {
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
fn p2_an_endless_chain_stops_at_max_pages() {
    let names: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    let cursors: Vec<Option<&str>> = names.iter().map(|name| Some(name.as_str())).collect();
    let script = Script::pages(&cursors);
    let mut chain = Chain::new(query(), settings(), "origin", Some(3));
    let (pages, error) = drain(&mut chain, &script);
    let error = error.unwrap();
    assert_eq!((pages, error.kind()), (3, Kind::PageLimitReached));
    assert!(error.to_string().contains("max_pages=3"), "{error}");
    assert_eq!(script.requests().len(), 3);
    let bookmark = chain.bookmark().unwrap();
    let mut resumed =
        Chain::new(query(), settings(), "origin", Some(3)).resumed(&bookmark).unwrap();
    assert_eq!(drain(&mut resumed, &script).0, 3);
    assert_eq!(resumed.pages, 6);
}

#[test]
fn p4_the_error_for_a_too_long_cursor_has_its_length() {
    let long = "x".repeat(65_536);
    let refused = |status, unsent| {
        Error::new(Kind::RequestRejected, "no")
            .with(|context| (context.status, context.unsent) = (status, unsent))
    };
    for (status, unsent, is_too_long) in [
        (Some(414), false, true),
        (Some(431), false, true),
        (None, true, true),
        (None, false, false),
        (Some(413), false, false),
    ] {
        let script = Script::new([Ok(page_body(0, Some(&long))), Err(refused(status, unsent))]);
        let error = drain(&mut chain(), &script).1.unwrap();
        assert_eq!(error.kind(), Kind::RequestRejected);
        assert_eq!(error.to_string().contains("65536 bytes"), is_too_long, "{error}");
        assert_eq!(ends_chain(&error), is_too_long, "{error}");
        assert!(!error.to_string().contains("xxx"));
    }
}

#[test]
fn p5_an_empty_page_with_a_cursor_does_not_end_the_chain() {
    let empty = r#"{"series":[],"nextCursor":"b"}"#.to_owned();
    let script = Script::new([Ok(page_body(0, Some("a"))), Ok(empty), Ok(page_body(0, None))]);
    let mut chain = chain();
    assert!(next(&mut chain, &script).unwrap().unwrap().rows() > 0);
    assert!(next(&mut chain, &script).unwrap().unwrap().rows() == 0);
    assert!(next(&mut chain, &script).unwrap().unwrap().is_last);
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
fn p12_a_bookmark_of_another_query_or_host_is_refused() {
    let script = Script::pages(&[Some("a")]);
    let mut chain = chain();
    next(&mut chain, &script).unwrap();
    let bookmark = chain.bookmark().unwrap();
    let other = Query::new(QueryInput::default()).unwrap();
    for (query, origin, text) in
        [(other, "origin", "another query"), (query(), "elsewhere", "another host or subject")]
    {
        let refused = Chain::new(query, settings(), origin, None).resumed(&bookmark).unwrap_err();
        assert_eq!(refused.kind(), Kind::BookmarkError);
        assert!(refused.to_string().contains(text), "{refused}");
    }
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
    fn p12_a_resumed_chain_reads_the_remaining_pages(
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
