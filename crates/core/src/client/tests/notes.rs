//! Observers of requests.

use super::*;
use crate::http::{Observer, Recipient, RequestKind, RequestNote};
use crate::lock::Mutex;
use reqwest::header::{HeaderMap, HeaderValue};

struct Listener {
    notes: Arc<Mutex<Vec<RequestNote>>>,
    listens: bool,
}

impl Observer for Listener {
    fn recipient(&self) -> Option<Recipient> {
        let notes = Arc::clone(&self.notes);
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", HeaderValue::from_static("00-1-2-01"));
        let give = Box::new(move |note| notes.lock().push(note));
        self.listens.then(|| Recipient { headers: Some(Arc::new(headers)), give })
    }
}

type Notes = Arc<Mutex<Vec<RequestNote>>>;

async fn observed(data: Vec<Act>, listens: bool, limit: Option<u64>) -> (Bench, Notes) {
    let notes = Notes::default();
    let listener = Listener { notes: Arc::clone(&notes), listens };
    let bench = Bench::with(vec![], data, |settings| {
        settings.transport.observer = Some(Arc::new(listener));
        settings.daily_allowance = limit;
    });
    (bench.await, notes)
}

fn briefly(notes: &Notes) -> Vec<(RequestKind, Option<u16>, Option<Kind>, u32)> {
    notes.lock().iter().map(|note| (note.kind, note.status, note.error, note.attempt)).collect()
}

#[tokio::test]
async fn each_attempt_is_noted_once_with_its_reason() {
    let (bench, notes) =
        observed(vec![Act::json(503, "{}"), refused(), Act::close()], true, None).await;
    bench.get().await.expect("a page");
    let unavailable = Some(Kind::ServiceUnavailable);
    assert_eq!(
        briefly(&notes),
        [
            (RequestKind::Token, Some(200), None, 1),
            (RequestKind::Data, Some(503), unavailable, 1),
            (RequestKind::Data, Some(401), Some(Kind::AuthenticationError), 2),
            (RequestKind::Token, Some(200), None, 1),
            (RequestKind::Data, None, Some(Kind::TransportError), 3),
            (RequestKind::Data, Some(200), None, 4),
        ]
    );
    let notes = notes.lock();
    let reasons: Vec<_> = notes.iter().filter_map(|note| note.reason.as_deref()).collect();
    assert_eq!(reasons, ["503", "401 invalid_token", "connection lost"]);
    assert!(notes[2].waited > Duration::ZERO);
    let pages = notes.iter().filter(|note| note.kind == RequestKind::Data);
    assert!(pages.clone().all(|note| note.url.ends_with(DATA_PATH) && note.is_sent));
    let sent = bench.server.requests();
    assert_eq!(sent.len(), 6);
    assert!(sent.iter().all(|request| request.header("traceparent") == Some("00-1-2-01")));
}

#[tokio::test]
async fn a_cancelled_request_is_noted_as_abandoned() {
    let (bench, notes) = observed(vec![Act::json(200, "{}"), Act::hang()], true, None).await;
    bench.client.discover(None).await.expect("discovery");
    tokio::select! {
        _ = bench.get() => panic!("it hangs"),
        () = until(|| bench.sent() == 2) => {}
    }
    let note = notes.lock().pop().expect("a note");
    assert!(note.is_abandoned && note.is_sent);
    assert_eq!((note.status, note.error, note.points), (None, None, None));
}

#[tokio::test]
async fn a_request_over_the_allowance_has_no_note() {
    let (bench, notes) = observed(vec![], true, Some(1)).await;
    bench.get().await.expect("a page");
    let told = notes.lock().len();
    assert_eq!(bench.error().await.kind(), Kind::AllowanceExhausted);
    assert_eq!(notes.lock().len(), told);
    assert_eq!(notes.lock().last().expect("a note").allowance_left, Some(0));
}

#[tokio::test]
async fn an_inactive_observer_gets_no_notes() {
    let (bench, notes) = observed(vec![], false, None).await;
    bench.get().await.expect("a page");
    assert!(notes.lock().is_empty());
    assert!(bench.server.other_requests()[0].header("traceparent").is_none());
}
