//! Warnings of the layers below the client. No other test logs on the same thread.

use std::path::Path;

use jiff::Timestamp;

use super::*;
use crate::auth::test_harness::warnings;
use crate::clock::{Clock, ServiceTime};
use crate::http::{
    BaseUrl, Integration, Ledger as _, LocalLedger, Request, Terms, Transport, TransportSettings,
};

#[test]
fn counting_in_memory_warns_once_per_path() {
    // A file instead of a folder.
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let file = std::path::absolute(file).expect("a path");
    let integration = Integration::new("https://customer.example.com", "subject-1");
    drop(warnings());
    for (name, said) in [("one.txt", 1), ("one.txt", 0), ("other.txt", 1), ("one.txt", 0)] {
        let path = file.join(name);
        let ledger =
            LocalLedger::in_default_file(Some(&path), integration.clone(), Terms::default())
                .opened();
        let ledger = ledger.expect("no limit");
        for _ in 0..2 {
            drop(ledger.reserve(noon().moment(), 0).expect("memory"));
        }
        let told = warnings();
        assert_eq!(told.len(), said, "{name}: {told:?}");
        let (path, remedy) = (path.display().to_string(), "ledger=");
        assert!(told.iter().all(|text| text.contains(&path) && text.contains(remedy)), "{told:?}");
    }
}

/// Sends three requests at this local time. The replies have this `Date`.
async fn dated(local: Timestamp, date: &str) {
    let header = format!("Date: {date}");
    let server = TestServer::start(move |_| Act::with_headers(200, &[&header], "{}")).await;
    let base: BaseUrl = server.base_url();
    let time = ServiceTime::new(Clock::frozen_at(local));
    let transport = Transport::new(base.clone(), TransportSettings::default()).expect("settings");
    for _ in 0..3 {
        let url = base.join(DATA_PATH, None);
        let request =
            Request { url, authorization: None, form: None, certificate: None, trace: None };
        transport.send(request, &time).await.expect("a reply");
    }
}

#[tokio::test]
async fn t26_a_different_clock_warns_once_with_a_remedy() {
    let local = "2026-11-01T12:00:00.5Z".parse().expect("a timestamp");
    drop(warnings());
    for (date, said) in [
        ("Sun, 01 Nov 2026 12:00:05 GMT", None),
        ("Sun, 01 Nov 2026 12:00:06 GMT", Some(("is 6 s behind the service's", "corrects"))),
        ("Sun, 01 Nov 2026 11:59:55 GMT", None),
        ("Sun, 01 Nov 2026 11:58:00 GMT", Some(("is 120 s ahead of the service's", "corrects"))),
        ("Mon, 02 Nov 2026 12:00:00 GMT", Some(("is 86400 s behind the service's", "corrects"))),
        ("Mon, 02 Nov 2026 12:00:01 GMT", Some(("is 86401 s behind", "too much to be corrected"))),
        (
            "Sat, 31 Oct 2026 11:59:59 GMT",
            Some(("is 86401 s ahead of", "too much to be corrected")),
        ),
    ] {
        dated(local, date).await;
        let told = warnings();
        assert_eq!(told.len(), usize::from(said.is_some()), "{date}: {told:?}");
        if let Some((skew, remedy)) = said {
            assert!(told[0].contains(skew) && told[0].contains(remedy), "{told:?}");
        }
    }
}
