//! Scans read concurrently, and their merged tables.

use futures_util::FutureExt as _;

use super::prefetch::{a_while, large, until};
use super::reads::{body, next};
use super::*;
use crate::client::ReadSettings;
use crate::client::collect::CollectOnce;
use crate::client::gather::{GatherFailure, Gathering};
use crate::client::scan::Scan;
use crate::client::split::Cut;
use crate::client::table::Table;
use crate::data::query::QueryInput;
use crate::data::{DecodeSettings, Query, Shape};
use crate::http::test_server::{Recorded, token_body};

const PARTS: usize = 4;

pub(super) fn scan_with(client: &Client, change: impl FnOnce(&mut QueryInput)) -> Scan {
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
    Scan::new(client.clone(), query, decode, ReadSettings::default())
}

pub(super) fn scan(client: &Client) -> Scan {
    scan_with(client, |_| {})
}

/// The parts of the range, an hour each.
fn parts(client: &Client) -> Vec<Arc<CollectOnce>> {
    let parts = scan(client).split(Cut::Parts(PARTS as u64)).expect("parts");
    parts.into_iter().map(|part| Arc::new(CollectOnce::new(part))).collect()
}

/// The hours of a request's range.
pub(super) fn hours(request: &Recorded) -> (u32, u32) {
    let hour = |name: &str| {
        let (_, rest) = request.raw.split_once(&format!("{name}=2026-11-01T")).expect("a bound");
        rest[..2].parse().expect("an hour")
    };
    (hour("from"), hour("to"))
}

/// A service that answers each request with the next hour of its range, with the following hour as its
/// cursor and `to` inclusive. `answer` may override a reply.
pub(super) async fn service(
    answer: impl Fn(&Recorded) -> Option<Act> + Send + Sync + 'static,
) -> TestServer {
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
        // A large page, whose next one may be prefetched.
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

pub(super) async fn bench(
    answer: impl Fn(&Recorded) -> Option<Act> + Send + Sync + 'static,
) -> Bench {
    Bench::of(service(answer).await, |_| {})
}

/// Uses these replies while the flag is set.
pub(super) fn while_set(
    flag: &Arc<std::sync::atomic::AtomicBool>,
    answer: impl Fn(&Recorded) -> Option<Act> + Send + Sync + 'static,
) -> impl Fn(&Recorded) -> Option<Act> + Send + Sync + 'static {
    let flag = Arc::clone(flag);
    move |request| flag.load(Ordering::SeqCst).then(|| answer(request)).flatten()
}

async fn gather(
    bench: &Bench,
    collects: &[Arc<CollectOnce>],
    concurrency: usize,
) -> Result<Vec<Arc<Table>>, GatherFailure> {
    let gathering = Gathering::new(&bench.client, collects.to_vec(), concurrency);
    finish(gathering.expect("scans of this client")).await
}

/// Reads all scans and returns their tables, in the given order.
pub(super) async fn finish(mut gathering: Gathering) -> Result<Vec<Arc<Table>>, GatherFailure> {
    while gathering.step().await?.is_some() {}
    Ok(gathering.tables())
}

pub(super) fn points(table: &Table) -> usize {
    table.merged.points.rows()
}

#[tokio::test]
async fn gathered_parts_are_merged_to_the_complete_table_without_duplicates() {
    let bench = bench(|_| None).await;
    let collects = parts(&bench.client);
    let tables = gather(&bench, &collects, 8).await.expect("read");
    // Each part also has the hour at its `to`.
    assert_eq!(tables.iter().map(|table| points(table)).collect::<Vec<_>>(), [2; PARTS]);
    let starts = tables.iter().map(|table| table.provenance.query.start());
    assert!(starts.is_sorted(), "in the given order");
    let joined = Table::concat(&tables).expect("one table");
    let single = CollectOnce::new(scan(&bench.client)).table().await.expect("read");
    let batch = |table: &Table| table.merged.points.batch().expect("columns");
    assert_eq!(batch(&joined), batch(&single));
    assert_eq!(joined.provenance.query, single.provenance.query);
    assert!(joined.provenance.further.is_empty());
    let report = &joined.merged.report;
    assert_eq!((report.pages, report.repeated, report.revised), (8, PARTS as u64 - 1, 0));
    assert_eq!((joined.provenance.pages, report.points_read), (8, 8));
    assert_eq!(bench.server.token_requests().len(), 1, "one token");
}

#[tokio::test]
async fn scans_are_started_in_the_given_order_and_with_limited_concurrency() {
    let bench = bench(|_| None).await;
    gather(&bench, &parts(&bench.client), 1).await.expect("read");
    let sent: Vec<u32> = bench.server.other_requests().iter().map(|r| hours(r).0).collect();
    assert_eq!(sent, [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(bench.server.requests().last().map(|r| r.connection), Some(0), "one connection");

    let bench = self::bench(|_| Some(Act::hang())).await;
    let collects = parts(&bench.client);
    let reading = {
        let gathering = Gathering::new(&bench.client, collects, 3).expect("scans");
        tokio::spawn(finish(gathering))
    };
    while bench.server.other_requests().len() < 3 {
        tokio::task::yield_now().await;
    }
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let mut sent: Vec<u32> = bench.server.other_requests().iter().map(|r| hours(r).0).collect();
    sent.sort_unstable();
    assert_eq!(sent, [0, 1, 2]);
    reading.abort();
}

#[tokio::test]
async fn a_remembered_scan_costs_no_request() {
    let bench = bench(|_| None).await;
    let collects = parts(&bench.client);
    let first = collects[2].table().await.expect("read");
    assert_eq!(bench.server.other_requests().len(), 2);
    let tables = gather(&bench, &collects, 2).await.expect("read");
    assert!(Arc::ptr_eq(&tables[2], &first));
    assert_eq!(bench.server.other_requests().len(), 8);
    gather(&bench, &collects, 2).await.expect("remembered");
    collects[0].table().await.expect("remembered");
    assert_eq!(bench.server.other_requests().len(), 8);
}

#[tokio::test]
async fn the_first_error_cancels_the_rest_and_a_second_gather_continues_each_scan() {
    let broken = Arc::new(std::sync::atomic::AtomicBool::new(true));
    // The second page of part 1 is refused; that of part 2 never arrives.
    let answer =
        while_set(&broken, |request| match (hours(request).0, request.raw.contains("cursor=")) {
            (1, true) => Some(Act::json(400, r#"{"error":"bad"}"#)),
            (2, true) => Some(Act::hang()),
            _ => None,
        });
    let bench = bench(answer).await;
    let collects = parts(&bench.client);
    collects[0].table().await.expect("read before");
    let failure = gather(&bench, &collects, 3).await.expect_err("part 1");
    assert_eq!((failure.index, failure.error.kind()), (1, Kind::CursorRejected));
    assert_eq!(failure.scans[1].bookmark.as_ref().map(crate::data::Bookmark::pages), Some(1));
    assert_eq!(failure.scans.len(), PARTS);
    assert!(failure.scans[0].is_whole && failure.scans[0].bookmark.is_none());
    let read = |index: usize| failure.scans[index].table.as_deref().map_or(0, points);
    assert_eq!((read(0), read(1)), (2, 1));
    for scan in &failure.scans {
        let is_partial = scan.bookmark.is_some();
        assert_eq!(is_partial, scan.table.is_some() && !scan.is_whole);
    }

    broken.store(false, Ordering::SeqCst);
    let mut again = collects.clone();
    let stopped = &failure.scans[1];
    let rest =
        collects[1].scan().resume(stopped.bookmark.clone().expect("one"), stopped.table.clone());
    again[1] = Arc::new(CollectOnce::new(rest.expect("its own bookmark")));
    let tables = gather(&bench, &again, 8).await.expect("the rest");
    for (part, scan) in (0..).zip(&failure.scans) {
        let sent = bench.server.other_requests();
        let is_first = |r: &&Recorded| hours(r).0 == part && !r.raw.contains("cursor=");
        let requests = sent.iter().filter(is_first).count();
        assert!(requests == 1 || scan.table.is_none(), "part {part}: a page was read again");
    }
    let joined = Table::concat(&tables).expect("one table");
    assert_eq!((points(&joined), joined.provenance.resumed_after_pages), (5, 0));
}

#[tokio::test]
async fn a_cancelled_gathering_keeps_the_pages_of_each_scan() {
    let broken = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let answer = while_set(&broken, |request| request.raw.contains("cursor=").then(Act::hang));
    let bench = bench(answer).await;
    let collects = parts(&bench.client);
    let gathering = Gathering::new(&bench.client, collects.clone(), 8).expect("scans");
    let reading = tokio::spawn(finish(gathering));
    while bench.server.other_requests().len() < 2 * PARTS {
        tokio::task::yield_now().await;
    }
    reading.abort();
    reading.await.expect_err("aborted");
    broken.store(false, Ordering::SeqCst);
    for collect in &collects {
        let partial = collect.partial().expect("merged");
        assert_eq!(partial.bookmark.map(|bookmark| bookmark.pages()), Some(1));
        assert_eq!(partial.table.as_deref().map(points), Some(1));
        assert_eq!((collect.pages_left(Some(2)), collect.pages_left(None)), (Some(1), None));
    }
    gather(&bench, &collects, 8).await.expect("the rest");
    assert_eq!(bench.server.other_requests().len(), 3 * PARTS);
    assert_eq!(collects[0].pages_left(None), Some(0), "remembered");
}

#[tokio::test]
async fn if_no_task_can_be_started_scans_are_read_in_place() {
    let broken = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let answer = while_set(&broken, |request| match hours(request) {
        (0, _) => Some(Act::with_headers(403, &[], "")),
        _ => Some(Act::hang()),
    });
    let set = |settings: &mut ClientSettings| settings.spawner = Arc::new(|_| None);
    let bench = Bench::of(service(answer).await, set);
    let collects = parts(&bench.client);
    let failure = gather(&bench, &collects, 8).await.expect_err("refused, and the others hang");
    assert_eq!(failure.index, 0);
    broken.store(false, Ordering::SeqCst);
    assert_eq!(gather(&bench, &collects, 8).await.expect("read").len(), PARTS);
}

#[tokio::test]
async fn r5_a_step_that_ends_after_the_gathering_leaves_no_prefetch() {
    // The abort handle has no effect, as if each step had just ended.
    let set = |settings: &mut ClientSettings| {
        settings.spawner = Arc::new(|work| {
            tokio::spawn(work);
            Some(tokio::spawn(async {}).abort_handle())
        });
    };
    let script = vec![large(&body(0, Some("a"))), Act::hang()];
    let bench = Bench::with(vec![], script, set).await;
    let collect = Arc::new(CollectOnce::new(reads::scan(&bench)));
    let mut gathering = Gathering::new(&bench.client, vec![Arc::clone(&collect)], 1).expect("one");
    assert!(gathering.step().now_or_never().is_none(), "started");
    drop(gathering);
    until(|| collect.partial().is_ok_and(|partial| partial.table.is_some())).await;
    a_while().await;
    assert!(bench.server.other_requests().len() == 2 && !collect.has_prefetched());
}

#[tokio::test]
async fn b5_no_request_exceeds_the_allowance() {
    let set = |settings: &mut ClientSettings| settings.daily_allowance = Some(5);
    let bench = Bench::of(service(|_| None).await, set);
    let failure = gather(&bench, &parts(&bench.client), 8).await.expect_err("eight pages");
    assert_eq!(failure.error.kind(), Kind::AllowanceExhausted);
    assert_eq!(bench.server.other_requests().len(), 5);
    assert_eq!(bench.client.allowance().expect("memory").used, 5);
    let read: usize =
        failure.scans.iter().filter_map(|scan| scan.table.as_deref()).map(points).sum();
    assert_eq!(read, 5, "all counted pages are kept");
    assert!(!failure.scans[failure.index].is_whole);
}

#[tokio::test]
async fn each_page_is_reported_as_progress_of_its_scan() {
    let bench = bench(|_| None).await;
    let mut gathering = Gathering::new(&bench.client, parts(&bench.client), 2).expect("scans");
    let mut reported = vec![Vec::new(); PARTS];
    while let Some((index, progress)) = gathering.step().await.expect("read") {
        reported[index].push((progress.pages, progress.done));
    }
    assert_eq!(reported, vec![[(1, false), (2, true)].to_vec(); PARTS]);
    assert_eq!(gathering.tables().len(), PARTS);
    assert!(gathering.step().await.expect("complete").is_none());
}

#[tokio::test]
async fn r3_a_gathering_fails_in_a_forked_process() {
    let bench = bench(|_| None).await;
    let mut gathering = Gathering::new(&bench.client, parts(&bench.client), 2).expect("scans");
    gathering.step().await.expect("a page");
    gathering.inherit();
    assert_eq!(gathering.step().await.expect_err("the parent's").error.kind(), Kind::ForkError);
}

#[tokio::test]
async fn r14_a_closed_client_ends_a_gathering() {
    let bench = bench(|_| Some(Act::hang())).await;
    let gathering = Gathering::new(&bench.client, parts(&bench.client), 8).expect("scans");
    let reading = tokio::spawn(finish(gathering));
    while bench.server.other_requests().is_empty() {
        tokio::task::yield_now().await;
    }
    bench.client.close();
    let failure = reading.await.expect("no panic").expect_err("closed");
    assert_eq!(failure.error.kind(), Kind::ClosedError);
}

#[tokio::test]
async fn scans_of_another_client_and_duplicates_are_refused() {
    let (bench, other) = (bench(|_| None).await, bench(|_| None).await);
    let refused = |collects: Vec<Arc<CollectOnce>>| {
        let error = Gathering::new(&bench.client, collects, 8).expect_err("refused");
        assert_eq!(error.kind(), Kind::QueryError);
        error.to_string()
    };
    assert!(refused(vec![]).contains("nothing to gather"));
    assert!(refused(parts(&other.client)).contains("scans[0] is of another client"));
    let mut twice = parts(&bench.client);
    twice.push(Arc::clone(&twice[1]));
    assert!(refused(twice).contains("scans[4] is the same scan as scans[1]"));
}

#[tokio::test]
async fn nonconsecutive_scans_keep_their_queries_and_incompatible_ones_are_not_merged() {
    let bench = bench(|_| None).await;
    let collects = parts(&bench.client);
    let tables =
        gather(&bench, &[collects[3].clone(), collects[0].clone()], 8).await.expect("read");
    let joined = Table::concat(&tables).expect("one table").provenance;
    assert_eq!(joined.query, *collects[3].scan().query());
    assert_eq!(joined.further, [collects[0].scan().query().clone()]);
    let minutes = scan_with(&bench.client, |input| input.interval_seconds = Some(60));
    let minutes = CollectOnce::new(minutes).table().await.expect("read");
    let error = Table::concat(&[Arc::clone(&tables[0]), minutes]).expect_err("two widths");
    assert!(error.to_string().contains("different widths"), "{error}");
    assert_eq!(Table::concat(&[]).expect_err("nothing").kind(), Kind::QueryError);
}

#[tokio::test]
async fn parts_have_the_settings_of_their_scan_and_a_resumed_scan_cannot_be_split() {
    let bench = bench(|_| None).await;
    let pages = scan(&bench.client).pages().expect("a chain");
    let first = next(&pages).await.expect("read").expect("a page");
    let bookmark = first.bookmark.expect("more");
    let settings = ReadSettings {
        max_pages: Some(1),
        deadline: Some(Duration::from_secs(9)),
        keep_raw: true,
        concurrency: None,
    };
    let plain = scan(&bench.client);
    let decode =
        DecodeSettings { extra_columns: vec!["q".to_owned()], ..plain.decode_settings().clone() };
    let set = Scan::new(bench.client.clone(), plain.query().clone(), decode, settings);
    for part in set.split(Cut::Parts(2)).expect("parts") {
        let ReadSettings { max_pages, deadline, keep_raw, .. } = part.read_settings();
        assert_eq!(
            (*max_pages, *deadline, *keep_raw),
            (Some(1), Some(Duration::from_secs(9)), true)
        );
        assert_eq!(part.decode_settings().extra_columns, ["q"]);
        assert_eq!(part.decode_settings().start, part.query().start());
    }
    let refused = |scan: Scan| scan.split(Cut::Parts(1)).expect_err("refused").to_string();
    assert!(refused(plain.resume(bookmark, None).expect("its own")).contains("bookmark"));
    assert!(refused(scan_with(&bench.client, |input| input.start = None)).contains("start="));
    assert!(refused(scan_with(&bench.client, |input| input.end = None)).contains("end="));
    let no_interval = scan_with(&bench.client, |input| input.interval_seconds = None);
    assert!(refused(no_interval).contains("interval="));
    assert_eq!(bench.server.other_requests().len(), 1, "a split sends no request");
}

#[tokio::test]
async fn b13_a_client_estimates_the_pages_of_a_query_that_it_has_read() {
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
