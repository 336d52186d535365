//! The page size of reads that state none.

use std::path::PathBuf;

use super::reads::page;
use super::*;
use crate::client::ScanInput;
use crate::client::collect::CollectOnce;
use crate::data::QueryInput;
use crate::http::test_server::TestFolder;

const SIZED: &str = "siteId=S1&pageSize=10000";
const BARE: &str = "siteId=S1";

fn refusal() -> Act {
    Act::json(400, "{\"error\":\"pageSize\"}")
}

async fn bench(data: Vec<Act>, ledger: Option<PathBuf>) -> Bench {
    Bench::with(vec![], data, |settings| {
        (settings.page_size, settings.ledger_file) = (Some(10_000), ledger);
    })
    .await
}

impl Bench {
    fn scan(&self, sites: &[&str], page_size: Option<u32>) -> CollectOnce {
        let site = sites.iter().map(|site| (*site).to_owned()).collect();
        let query = QueryInput { site, page_size, ..QueryInput::default() };
        let input = ScanInput { query, ..ScanInput::default() };
        CollectOnce::new(input.scan(&self.client).expect("a scan"))
    }

    /// The page size that a read reports and where it is from.
    async fn read(&self) -> (Option<u32>, Option<&'static str>) {
        let table = self.scan(&["S1"], None).table().await.expect("a table");
        table.provenance.page_size()
    }

    fn queries(&self) -> Vec<String> {
        let query = |raw: &str| raw.split(['?', ' ']).nth(2).map(ToOwned::to_owned);
        self.server.other_requests().iter().filter_map(|one| query(&one.raw)).collect()
    }
}

#[tokio::test]
async fn a_chain_keeps_the_automatic_size() {
    let bench = bench(vec![page(0, Some("a")), page(0, None)], None).await;
    assert_eq!(bench.read().await, (Some(10_000), Some("automatic")));
    assert_eq!(bench.queries(), [SIZED, &format!("{SIZED}&cursor=a")]);
}

#[tokio::test]
async fn a_refused_size_is_not_sent_again() {
    let bench = bench(vec![refusal(), page(0, Some("a")), page(0, None)], None).await;
    assert_eq!(bench.read().await, (None, Some("refused")));
    assert_eq!(bench.queries(), [SIZED, BARE, &format!("{BARE}&cursor=a")]);
    assert_eq!(bench.client.data_requests(), 3, "both requests count");
    assert_eq!(bench.read().await, (None, Some("refused")));
    assert_eq!(bench.queries()[3..], [BARE]);
}

#[tokio::test]
async fn another_refusal_is_not_blamed_on_the_size() {
    let bench = bench(vec![refusal(), Act::json(422, "{}"), page(0, None), refusal()], None).await;
    let error = bench.scan(&["S1"], None).table().await.expect_err("refused").error;
    let context = error.context();
    assert_eq!(context.status, Some(400), "the first one");
    assert!(context.message.ends_with("so 2 requests were made."), "{}", context.message);
    assert_eq!(context.attempts.len(), 2);
    assert_eq!(bench.queries(), [SIZED, BARE]);
    assert_eq!(bench.read().await, (Some(10_000), Some("automatic")));
    // After one success.
    bench.scan(&["S1"], None).table().await.expect_err("refused");
    assert_eq!(bench.queries()[2..], [SIZED, SIZED]);
}

#[tokio::test]
async fn only_refusals_of_parameters_are_repeated() {
    for status in [401, 403, 404, 409, 414, 429, 431, 500, 503] {
        let again = || Act::json(status, "{}");
        let bench = Bench::with(vec![], (0..4).map(|_| again()).collect(), |settings| {
            settings.page_size = Some(10_000);
            settings.send_once();
        })
        .await;
        bench.scan(&["S1"], None).table().await.expect_err("refused");
        assert_eq!(bench.queries(), [SIZED], "{status}");
    }
}

#[tokio::test]
async fn a_given_size_is_sent_as_it_is() {
    let bench = bench(vec![refusal()], None).await;
    let scan = bench.scan(&["S1"], Some(7));
    scan.table().await.expect_err("refused");
    assert_eq!(
        scan.table().await.expect("a table").provenance.page_size(),
        (Some(7), Some("given"))
    );
    assert_eq!(bench.queries(), ["siteId=S1&pageSize=7", "siteId=S1&pageSize=7"]);
}

#[tokio::test]
async fn one_of_several_chains_is_refused() {
    let bench = bench(vec![refusal()], None).await;
    bench.scan(&["S1", "S2", "S3", "S4"], None).table().await.expect("a table");
    let sized = bench.queries().iter().filter(|query| query.contains("pageSize")).count();
    assert_eq!((sized, bench.queries().len()), (1, 5));
}

#[tokio::test]
async fn a_bookmark_keeps_the_size_of_its_chain() {
    let data = vec![refusal(), page(0, Some("a")), Act::json(403, "{}")];
    let first = bench(data, None).await;
    let failure = first.scan(&["S1"], None).table().await.expect_err("no second page");
    let bookmark = failure.bookmark.expect("a bookmark");
    let client = Client::new(first.client.settings().clone()).expect("settings");
    let second = Bench { server: first.server, client };
    let scan = second.scan(&["S1"], None).scan().resume(bookmark, None).expect("resumed");
    CollectOnce::new(scan).table().await.expect("a table");
    assert_eq!(second.queries().last().expect("a query"), &format!("{BARE}&cursor=a"));
}

#[tokio::test]
async fn a_file_remembers_a_refusal_for_thirty_days() {
    let folder = TestFolder::new();
    let [ledger, file] = ["ledger", "ledger.page-size"].map(|name| folder.join(name));
    let first = bench(vec![refusal()], Some(ledger.clone())).await;
    first.read().await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    }
    let size_after = async |days: i64| {
        let other = bench(vec![], Some(ledger.clone())).await;
        if let Ok(days) = u64::try_from(days) {
            other.clock().advance(Duration::from_secs(days * 86_400));
        }
        other.read().await.0
    };
    assert_eq!(size_after(0).await, None);
    assert_eq!(size_after(29).await, None);
    assert_eq!(size_after(31).await, Some(10_000));
    // A clock that was far ahead, another size, and damage.
    let far = first.client.now().as_second() + 2 * 86_400;
    for text in [format!("refused 10000 {far}\n"), "refused 7 0\n".into(), "refused 100".into()] {
        std::fs::write(&file, &text).expect("written");
        assert_eq!(size_after(0).await, Some(10_000), "{text}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_no_error() {
    let folder = TestFolder::new();
    std::fs::write(folder.join("file"), "").expect("written");
    std::fs::create_dir(folder.join("ledger.page-size")).expect("a folder");
    for ledger in ["file/ledger", "ledger"].map(|name| folder.join(name)) {
        let bench = bench(vec![refusal()], Some(ledger)).await;
        assert_eq!(bench.read().await, (None, Some("refused")));
        assert_eq!(bench.read().await, (None, Some("refused")));
        assert_eq!(bench.queries(), [SIZED, BARE, BARE]);
    }
}

#[tokio::test]
async fn a_ledger_that_is_left_has_its_name() {
    let bench = bench(vec![], None).await;
    let mut settings = bench.client.settings().clone();
    settings.leave_ledger(|name| Some(name.into()));
    assert_eq!(settings.unused_ledger_file, None, "for tests");
    settings.clock = crate::clock::Clock::system();
    settings.base_url =
        crate::http::BaseUrl::parse("https://customer.example.com", false).expect("an address");
    settings.leave_ledger(|name| Some(name.into()));
    let name = settings.unused_ledger_file.clone().expect("a name");
    assert_eq!(name.to_str(), Some(&*settings.integration().file_name()));
}
