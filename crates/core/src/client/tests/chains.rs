//! Scans of several chains: read concurrently, or page by page.

use std::sync::atomic::AtomicBool;

use super::reads::{next, points};
use super::*;
use crate::client::collect::{CollectOnce, Pace, Step};
use crate::client::scan::Scan;
use crate::client::split::Cut;
use crate::client::table::{ReadFailure, Table};
use crate::client::{ReadSettings, ScanInput};
use crate::data::query::QueryInput;
use crate::data::{AskedRange, AskedTime, Bookmark, DecodeSettings, Query, Shape};
use crate::http::test_server::{Recorded, token_body};

/// Number of chains. Each has two pages, because the service includes the hour at the end.
const PARTS: u64 = 4;

fn scan_with(client: &Client, change: impl FnOnce(&mut QueryInput)) -> Scan {
    let mut input = QueryInput {
        site: vec!["S".to_owned()],
        start: "2026-11-01T00:00:00Z".parse().ok(),
        end: "2026-11-01T04:00:00Z".parse().ok(),
        interval_seconds: Some(3_600),
        ..QueryInput::default()
    };
    change(&mut input);
    let query = Query::new(input).expect("a query");
    let decode = DecodeSettings::for_query(&query, Shape::default(), vec![]).expect("settings");
    let settings = ReadSettings::default();
    Scan::new(client.clone(), query, decode, settings, (None, None)).expect("a scan")
}

fn in_two_parts(scan: &Scan) -> Result<Scan> {
    let input = ScanInput { split: Some(Cut::Parts(2)), ..ScanInput::from(scan) };
    input.scan(scan.client())
}

fn scan(client: &Client) -> Scan {
    scan_with(client, |_| {})
}

fn hours(request: &Recorded) -> (u32, u32) {
    let hour = |name: &str| {
        let (_, rest) = request.raw.split_once(&format!("{name}=2026-11-01T")).expect("a bound");
        rest[..2].parse().expect("an hour")
    };
    (hour("from"), hour("to"))
}

/// A service that returns one hour of the range per page, with the next hour as cursor and `to`
/// inclusive. `answer` may override a reply.
async fn service(answer: impl Fn(&Recorded) -> Option<Act> + Send + Sync + 'static) -> TestServer {
    TestServer::start(move |request| {
        if request.is_token_request() {
            return Act::json(200, &token_body("good-token"));
        }
        if let Some(act) = answer(request) {
            return act;
        }
        let (from, to) = hours(request);
        let cursor = request.raw.split_once("cursor=").map(|(_, rest)| rest[..2].to_owned());
        let hour: u32 = cursor.map_or(from, |cursor| cursor.parse().expect("an hour"));
        let next = if hour < to { format!("\"{:02}\"", hour + 1) } else { "null".to_owned() };
        // The next page of a large page may be prefetched.
        let filler = " ".repeat(if request.raw.contains("pageSize=") { 40_000 } else { 0 });
        Act::json(
            200,
            &format!(
                r#"{{{filler}"series":[{{"siteId":"S","lineId":"L","machineId":"M","deviceId":"D",
                "tagGuid":"T","points":[{{"timestamp":"2026-11-01T{hour:02}:00:00Z",
                "value":{hour}}}]}}],"nextCursor":{next}}}"#
            ),
        )
    })
    .await
}

async fn bench(answer: impl Fn(&Recorded) -> Option<Act> + Send + Sync + 'static) -> Bench {
    Bench::of(service(answer).await, |_| {})
}

/// A service that uses these replies while the flag is set.
async fn broken(
    answer: impl Fn(&Recorded) -> Option<Act> + Send + Sync + 'static,
) -> (Bench, Arc<AtomicBool>) {
    let flag = Arc::new(AtomicBool::new(true));
    let is_set = Arc::clone(&flag);
    let answer =
        move |request: &Recorded| is_set.load(Ordering::SeqCst).then(|| answer(request)).flatten();
    (bench(answer).await, flag)
}

fn wide_with(client: &Client, settings: ReadSettings) -> Scan {
    let input = ScanInput::from(&scan(client));
    let input = ScanInput { settings, split: Some(Cut::Parts(PARTS)), ..input };
    input.scan(client).expect("a scan")
}

fn wide(client: &Client) -> Scan {
    wide_with(client, ReadSettings::default())
}

fn limited(pages: u64) -> ReadSettings {
    ReadSettings { max_pages: Some(pages), ..ReadSettings::default() }
}

fn is_later(request: &Recorded) -> bool {
    request.raw.contains("cursor=")
}

/// The bookmark, and the table as another process receives it.
fn carried(failure: ReadFailure) -> (Bookmark, Arc<Table>) {
    let (bookmark, table) =
        (failure.bookmark.expect("a bookmark"), failure.partial.expect("pages"));
    let bookmark = Bookmark::from_bytes(&bookmark.to_bytes()).expect("its bytes");
    let Table { merged, stopped_at, is_partial, provenance } = &*table;
    let copy = Table::whole(merged.clone(), provenance.clone());
    assert!(is_partial);
    (bookmark, Arc::new(Table { stopped_at: *stopped_at, is_partial: true, ..copy }))
}

fn assert_same(one: &Table, other: &Table) {
    let batch = |table: &Table| table.merged.points.batch().expect("columns");
    assert_eq!(batch(one), batch(other));
    assert_eq!((one.is_partial, one.stopped_at), (false, None));
}

#[tokio::test]
async fn chains_are_merged_to_the_table_of_one() {
    let bench = bench(|_| None).await;
    let table = CollectOnce::new(wide(&bench.client)).table().await.expect("read");
    assert_eq!(bench.sent(), 8);
    let single = CollectOnce::new(scan(&bench.client)).table().await.expect("read");
    assert_same(&table, &single);
    assert_eq!(table.provenance.query, single.provenance.query);
    let report = &table.merged.report;
    assert_eq!((report.pages, report.points_read, report.repeated), (8, 8, PARTS - 1));
    assert_eq!((table.provenance.pages, table.provenance.resumed_after_pages), (8, 0));
    assert_eq!(bench.server.token_requests().len(), 1, "one token");
    // The range of the whole scan counts, not the range of a part.
    assert_eq!(report.quality.outside_range, single.merged.report.quality.outside_range);
}

#[tokio::test]
async fn each_site_line_and_part_is_a_chain() {
    let bench = bench(|_| None).await;
    let ids = |ids: &[&str]| ids.iter().map(ToString::to_string).collect();
    let lists = scan_with(&bench.client, |input| {
        (input.site, input.line) = (ids(&["A", "B", "A"]), ids(&["1", "2"]));
    });
    let scan = in_two_parts(&lists).expect("a scan");
    assert_eq!(scan.chains().len(), 8);
    let many = (0..5_001).map(|id| format!("l{id}")).collect();
    let many = scan_with(&bench.client, |input| input.line = many);
    let error = in_two_parts(&many).expect_err("too many");
    assert_eq!(error.kind(), Kind::QueryError);
}

#[tokio::test]
async fn concurrency_limits_the_chains_read_at_a_time() {
    let one = ReadSettings { concurrency: Some(1), ..ReadSettings::default() };
    let bench = bench(|_| None).await;
    CollectOnce::new(wide_with(&bench.client, one)).table().await.expect("read");
    let order: Vec<u32> = bench.server.other_requests().iter().map(|r| hours(r).0).collect();
    assert_eq!(order, [0, 0, 1, 1, 2, 2, 3, 3]);

    let bench = self::bench(|_| Some(Act::hang())).await;
    let three = ReadSettings { concurrency: Some(3), ..ReadSettings::default() };
    let collect = CollectOnce::new(wide_with(&bench.client, three));
    let reading = tokio::spawn(async move { collect.table().await.map(drop) });
    until(|| bench.sent() >= 3).await;
    a_while().await;
    assert_eq!(bench.sent(), 3);
    reading.abort();
}

#[tokio::test]
async fn the_first_pages_belong_to_the_first_chain() {
    let bench = bench(|_| None).await;
    let collect = CollectOnce::new(wide(&bench.client));
    let deadline = collect.scan().deadline();
    let step = collect.paced_step(deadline, Pace::First).await.expect("a page");
    assert!(matches!(step, Step::Page(progress) if progress.pages == 1 && !progress.done));
    assert_eq!(bench.sent(), 1);
    let partial = collect.partial().expect("merged").table.expect("a page");
    assert_eq!(points(&partial), 1);
    collect.table().await.expect("the rest");
    assert_eq!(bench.sent(), 8, "the page is kept");
}

#[tokio::test]
async fn a_pause_holds_for_all_chains() {
    let bench = bench(|_| None).await;
    let scans = wide(&bench.client).chain_scans(None);
    let pause = Some(Duration::from_secs(600));
    let error = Error::new(Kind::RateLimited, "later").with(|context| context.retry_after = pause);
    scans[0].together.pause.close(bench.client.time().clock(), &error);
    let failure = CollectOnce::new(scans[1].clone()).table().await.expect_err("a pause");
    assert_eq!((failure.error.kind(), bench.sent()), (Kind::RateLimited, 0));
}

#[tokio::test]
async fn a_failed_resumption_has_the_pages_of_both() {
    let (bench, broken) = broken(|request| {
        let fails = matches!((hours(request).0, is_later(request)), (1, true) | (2, false));
        fails.then(|| Act::json(403, r#"{"error":"bad"}"#))
    })
    .await;
    let one = ReadSettings { concurrency: Some(1), ..ReadSettings::default() };
    let scan = wide_with(&bench.client, one);
    let failure = CollectOnce::new(scan.clone()).table().await.expect_err("part 1");
    let (first, onto) = carried(failure);
    let halves = in_two_parts(&self::scan(&bench.client));
    for other in [self::scan(&bench.client), halves.expect("parts")] {
        let error = other.resume(first.clone(), None).expect_err("other chains");
        assert_eq!(error.kind(), Kind::BookmarkError);
    }
    let rest = scan.resume(first.clone(), Some(onto)).expect("its own");
    let failure = CollectOnce::new(rest).table().await.expect_err("part 1 again");
    let (second, onto) = carried(failure);
    assert_eq!((first.pages(), second.pages(), points(&onto)), (3, 3, 2));
    broken.store(false, Ordering::SeqCst);
    let rest = scan.resume(second, Some(onto)).expect("its own");
    let table = CollectOnce::new(rest).table().await.expect("the rest");
    assert_eq!((points(&table), table.provenance.pages), (5, 8));
}

#[tokio::test]
async fn p6_only_the_chain_with_a_rejected_cursor_restarts() {
    let (bench, broken) = broken(|request| {
        let fails = hours(request).0 == 1 && is_later(request);
        fails.then(|| Act::json(400, r#"{"error":"bad"}"#))
    })
    .await;
    let one = ReadSettings { concurrency: Some(1), ..ReadSettings::default() };
    let collect = CollectOnce::new(wide_with(&bench.client, one));
    let failure = collect.table().await.expect_err("part 1");
    assert_eq!(failure.error.kind(), Kind::CursorRejected);
    assert_eq!(failure.partial.as_deref().map(|table| table.provenance.pages), Some(3));
    let partial = collect.partial().expect("merged");
    assert_eq!(partial.bookmark.map(|bookmark| bookmark.pages()), Some(2));
    broken.store(false, Ordering::SeqCst);
    let before = bench.sent();
    collect.table().await.expect("the rest");
    assert_eq!(bench.sent() - before, 6);
}

#[tokio::test]
async fn a_cancelled_read_keeps_the_pages_of_each_chain() {
    let (bench, broken) = broken(|request| is_later(request).then(Act::hang)).await;
    let collect = Arc::new(CollectOnce::new(wide(&bench.client)));
    let reading = {
        let collect = Arc::clone(&collect);
        tokio::spawn(async move { collect.table().await.map(drop) })
    };
    until(|| bench.sent() >= 8).await;
    assert_eq!(
        collect.partial().expect("merged").table.as_deref().map(points),
        Some(4),
        "during it"
    );
    reading.abort();
    reading.await.expect_err("aborted");
    broken.store(false, Ordering::SeqCst);
    let partial = collect.partial().expect("merged");
    assert_eq!(partial.bookmark.map(|bookmark| bookmark.pages()), Some(4));
    collect.table().await.expect("the rest");
    assert_eq!(bench.sent(), 12);
}

#[tokio::test]
async fn max_pages_limits_the_pages_of_all_chains() {
    let bench = bench(|_| None).await;
    let input = ScanInput::from(&wide_with(&bench.client, limited(3)));
    // The next pages of large pages would be prefetched.
    let query = QueryInput { page_size: Some(1), ..input.query.clone() };
    let collect =
        CollectOnce::new(ScanInput { query, ..input }.scan(&bench.client).expect("a scan"));
    for (requests, read) in [(3, 3), (6, 6)] {
        let failure = collect.table().await.expect_err("eight pages");
        assert_eq!(failure.error.kind(), Kind::PageLimitReached);
        assert_eq!(
            failure.error.context().message,
            "max_pages=3 was reached before the end of the read."
        );
        assert_eq!(bench.sent(), requests);
        let partial = failure.partial.expect("pages");
        assert_eq!((partial.provenance.pages, partial.merged.report.points_read), (read, read));
    }
    assert_eq!(collect.table().await.expect("two pages").provenance.pages, 8);
    assert_eq!(bench.sent(), 8);
    let exact = CollectOnce::new(wide_with(&bench.client, limited(8)));
    exact.table().await.expect("as many as allowed");
}

#[tokio::test]
async fn b5_chains_never_exceed_the_allowance() {
    let set = |settings: &mut ClientSettings| settings.daily_allowance = Some(5);
    let bench = Bench::of(service(|_| None).await, set);
    let failure = CollectOnce::new(wide(&bench.client)).table().await.expect_err("eight pages");
    assert_eq!(failure.error.kind(), Kind::AllowanceExhausted);
    assert_eq!((bench.sent(), bench.used()), (5, 5));
    let partial = failure.partial.expect("pages");
    assert_eq!(partial.provenance.pages, 5, "all counted pages are kept");
}

#[tokio::test]
async fn progress_counts_all_chains() {
    let bench = bench(|_| None).await;
    let collect = CollectOnce::new(wide(&bench.client));
    let deadline = collect.scan().deadline();
    let mut pages = 0;
    while let Step::Page(progress) = collect.step(deadline).await.expect("read") {
        pages += 1;
        assert_eq!((progress.pages, progress.points, progress.done), (pages, pages, pages == 8));
        assert_eq!(progress.pages_expected, (pages == 8).then_some(8));
    }
    assert_eq!(pages, 8);
    let again = CollectOnce::new(wide(&bench.client));
    let Step::Page(progress) = again.step(deadline).await.expect("read") else { panic!("a page") };
    assert_eq!(progress.pages_expected, Some(8), "as the first read had");
}

#[tokio::test]
async fn pages_follow_one_chain_at_a_time() {
    let bench = bench(|_| None).await;
    let scan = wide(&bench.client);
    let pages = scan.pages().expect("chains");
    let mut bookmarks = Vec::new();
    while let Some(page) = next(&pages).await.expect("read") {
        assert_eq!(page.is_last, page.bookmark.is_none());
        assert_eq!(page.sequence, bookmarks.len() as u64 + 1);
        bookmarks.extend(page.bookmark);
    }
    let order: Vec<u32> = bench.server.other_requests().iter().map(|r| hours(r).0).collect();
    assert_eq!((order, bookmarks.len()), (vec![0, 0, 1, 1, 2, 2, 3, 3], 7));
    for (read, bookmark) in (1..).zip(bookmarks) {
        assert_eq!(bookmark.pages(), read);
        let pages = scan.resume(bookmark, None).expect("its own").pages().expect("chains");
        let mut rest = 0;
        while next(&pages).await.expect("read").is_some() {
            rest += 1;
        }
        assert_eq!(read + rest, 8);
    }
    let limited = wide_with(&bench.client, limited(3)).pages().expect("chains");
    for _ in 0..3 {
        next(&limited).await.expect("read").expect("a page");
    }
    assert_eq!(next(&limited).await.expect_err("a limit").error.kind(), Kind::PageLimitReached);
}

#[tokio::test]
async fn the_deadline_is_of_the_whole_read() {
    // A busy machine may need longer than a short deadline for the first pages.
    for milliseconds in [200, 2_000, 20_000] {
        let bench = bench(|request| is_later(request).then(Act::hang)).await;
        let deadline = Some(Duration::from_millis(milliseconds));
        let settings = ReadSettings { deadline, ..ReadSettings::default() };
        let failure = CollectOnce::new(wide_with(&bench.client, settings)).table().await;
        let failure = failure.expect_err("no second page arrives");
        assert_eq!(failure.error.kind(), Kind::DeadlineExceeded);
        if failure.bookmark.map(|bookmark| bookmark.pages()) == Some(4) {
            return;
        }
    }
    panic!("the first pages did not arrive");
}

#[tokio::test]
async fn p12_a_bookmark_supplies_relative_bounds() {
    let bench = bench(|_| None).await;
    let asked = |start: &str, end: Option<&str>| {
        let time = |text: &str| AskedTime::parse(text, None).expect("a time");
        let range = AskedRange { start: Some(time(start)), end: end.map(time) };
        let query = QueryInput { interval_seconds: Some(3_600), ..QueryInput::default() };
        let input = ScanInput { query, ..ScanInput::default() };
        input.scan_from_now(&bench.client, range, None, None).expect("a scan").value
    };
    let scan = asked("-11h", None);
    let page = next(&scan.pages().expect("a chain")).await.expect("read").expect("a page");
    let bookmark = Bookmark::from_bytes(&page.bookmark.expect("more").to_bytes()).expect("bytes");
    bench.clock().advance(Duration::from_secs(7_200));
    let later = asked("-11h", None);
    assert_ne!(later.query(), scan.query());
    let resumed = later.resume(bookmark.clone(), None).expect("the same form");
    assert_eq!(resumed.query(), scan.query());
    assert_eq!(resumed.decode_settings().start, scan.query().start());
    for (start, end) in [("-12h", None), ("-11h", Some("now")), ("2026-11-01T03:00:00Z", None)] {
        let error = asked(start, end).resume(bookmark.clone(), None).expect_err("another form");
        assert_eq!(error.kind(), Kind::BookmarkError, "{start}");
    }
    let exact = QueryInput { ..scan.query().input().clone() };
    let exact = ScanInput { query: exact, ..ScanInput::default() }.scan(&bench.client);
    exact.expect("a scan").resume(bookmark, None).expect("equal values");
}

#[tokio::test]
async fn parts_have_the_settings_of_their_scan() {
    let bench = bench(|_| None).await;
    let pages = scan(&bench.client).pages().expect("a chain");
    let first = next(&pages).await.expect("read").expect("a page");
    let bookmark = first.bookmark.expect("more");
    let limit = Some(Duration::from_secs(9));
    let settings = ReadSettings { deadline: limit, keep_raw: true, ..limited(1) };
    let plain = scan(&bench.client);
    let decode =
        DecodeSettings { extra_columns: vec!["q".to_owned()], ..plain.decode_settings().clone() };
    let (client, query) = (bench.client.clone(), plain.query().clone());
    let set = Scan::new(client, query, decode, settings, (None, None)).expect("a scan");
    for part in set.split(Cut::Parts(2)).expect("parts") {
        let given = part.read_settings();
        assert_eq!((given.max_pages, given.deadline, given.keep_raw), (Some(1), limit, true));
        assert_eq!(part.decode_settings().extra_columns, ["q"]);
        assert_eq!(part.decode_settings().start, part.query().start());
    }
    let refused = |scan: Scan| scan.split(Cut::Parts(1)).expect_err("refused").to_string();
    assert!(refused(plain.resume(bookmark, None).expect("its own")).contains("bookmark"));
    assert!(refused(scan_with(&bench.client, |input| input.start = None)).contains("start="));
    assert!(refused(scan_with(&bench.client, |input| input.end = None)).contains("end="));
    let no_interval = scan_with(&bench.client, |input| input.interval_seconds = None);
    assert!(refused(no_interval).contains("interval="));
    assert_eq!(bench.sent(), 1, "a split sends no request");
}

#[tokio::test]
async fn b13_a_client_estimates_pages_of_known_queries() {
    let bench = bench(|_| None).await;
    let scan = scan(&bench.client);
    assert_eq!(bench.client.densities().pages(scan.query()), None);
    CollectOnce::new(scan.clone()).table().await.expect("read");
    assert_eq!(bench.client.densities().pages(scan.query()), Some(5));
    let parts = scan.split(Cut::Parts(4)).expect("parts");
    let pages = parts.iter().map(|part| bench.client.densities().pages(part.query()));
    assert_eq!(pages.sum::<Option<u64>>(), Some(8), "an extra page for each part");
    let other = scan_with(&bench.client, |input| input.page_size = Some(10));
    assert_eq!(bench.client.densities().pages(other.query()), None);
}
