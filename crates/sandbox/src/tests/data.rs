//! §4.2 to §4.4: discovery, data, cursors and the allowance.

use std::time::Duration;

use serde_json::json;

use super::client::{BOTH, Caller, DATA, at, encode, points, target};
use crate::{AsOf, Options, Selection};

/// A query of an hour of one line: six series.
const HOUR: &str =
    "siteId=S1&lineId=L2&from=2026-11-01T00:00:00Z&to=2026-11-01T01:00:00Z&pageSize=50";

#[test]
fn a_cursor_is_bound_to_all_other_parameters_and_to_the_subject() {
    let caller = Caller::new(Options::default());
    let token = caller.token();
    let first = caller.get(&target(HOUR, None), &token).json();
    let cursor = first["nextCursor"].as_str().expect("a cursor").to_owned();
    let refused = |query: &str, cursor: &str, token: &str| {
        caller.get(&target(query, Some(cursor)), token).status == 400
    };
    assert!(!refused(HOUR, &cursor, &token));
    let reordered = format!("pageSize=50&{}", HOUR.replace("&pageSize=50", ""));
    assert!(!refused(&reordered, &cursor, &token));
    for (from, to) in [
        ("pageSize=50", "pageSize=51"),
        ("&pageSize=50", ""),
        ("siteId=S1&", ""),
        ("lineId=L2", "lineId=L1"),
        ("from=2026-11-01T00:00:00Z", "from=2026-11-01T00:00:01Z"),
        ("from=2026-11-01T00:00:00Z", "from=2026-11-01T00:00:00.0Z"),
        ("to=2026-11-01T01", "to=2026-11-01T02"),
        ("siteId", "aggregationIntervalSeconds=60&siteId"),
        ("siteId", "machineId=M3&siteId"),
    ] {
        assert!(refused(&HOUR.replace(from, to), &cursor, &token), "{from} -> {to}");
    }
    let mut edited = cursor.clone();
    edited.replace_range(10..11, if &cursor[10..11] == "A" { "B" } else { "A" });
    assert!(refused(HOUR, &edited, &token));
    assert!(refused(HOUR, "", &token));
    // Without encoding, its + is decoded to a space and its & ends it.
    assert_eq!(caller.get(&format!("{DATA}?{HOUR}&cursor={cursor}"), &token).status, 400);
    let (jwk, _) = super::client::public_jwk(0);
    let other = caller.sandbox.enroll(&jwk, &BOTH.split(' ').collect::<Vec<_>>());
    let mut claims = caller.claims();
    claims["iss"] = json!(other.expect("a subject"));
    claims["sub"] = claims["iss"].clone();
    let body = caller.exchange(&caller.header(), &claims).json();
    assert!(refused(HOUR, &cursor, body["access_token"].as_str().expect("a token")));
    caller.sandbox.forget_cursors();
    assert!(refused(HOUR, &cursor, &token));
}

#[test]
fn the_plant_depends_on_the_seed_alone() {
    let read = |seed| {
        let caller = Caller::new(Options { seed, ..Options::default() });
        caller.chain(HOUR, &caller.token()).iter().flat_map(points).collect::<Vec<_>>()
    };
    assert_eq!(read(7), read(7));
    assert_ne!(read(7), read(8));
}

#[test]
fn replies_are_compressed_for_clients_that_accept_gzip() {
    let caller = Caller::new(Options::default());
    let token = format!("Bearer {}", caller.token());
    let headers = [("Authorization", token.as_str()), ("Accept-Encoding", "br, gzip")];
    let reply = caller.send("GET", &target(HOUR, None), &headers, b"").expect("a reply");
    assert_eq!(reply.headers["content-encoding"], "gzip");
    let mut text = String::new();
    let mut decoder = flate2::read::GzDecoder::new(reply.body.as_slice());
    std::io::Read::read_to_string(&mut decoder, &mut text).expect("gzip");
    assert!(text.starts_with("{\"series\":["), "{text}");
}

#[test]
fn generated_data_arrive_late_are_revised_and_are_final_after_a_day() {
    let caller = Caller::new(Options::default());
    let truth_as_of = |as_of| {
        let end = Some(at("2026-11-08T00:00:00Z"));
        let start = Some(at("2026-11-07T00:00:00Z"));
        caller.sandbox.truth(Selection::default(), start, end, None, as_of).expect("truth")
    };
    let (now, settled) = (truth_as_of(AsOf::Now), truth_as_of(AsOf::Final));
    assert!(now.len() < settled.len());
    caller.sandbox.clock().advance(Duration::from_secs(86_400));
    assert_eq!(truth_as_of(AsOf::Now), settled);
    assert_eq!(truth_as_of(AsOf::Time(at(super::client::NOW))), now);
}

#[test]
fn the_log_has_no_cursors_and_the_wire_is_recorded_only_on_request() {
    let caller = Caller::new(Options { record_wire: true, ..Options::default() });
    let token = caller.token();
    let first = caller.get(&target(HOUR, None), &token).json();
    let cursor = first["nextCursor"].as_str().expect("a cursor");
    caller.get(&target(HOUR, Some(cursor)), &token);
    let shown = format!("{:?} {:?}", caller.sandbox.stats(), caller.sandbox);
    assert!(!shown.contains(&encode(cursor)) && !shown.contains(&token));
    for misplaced in ["access_token=", "client_assertion=", "%63ursor=", ""] {
        caller.get(&format!("{DATA}?siteId=S1&{misplaced}{token}"), &token);
    }
    let shown = format!("{:?}", caller.sandbox.stats());
    assert!(!shown.contains(&token) && shown.contains("siteId=S1&access_token=#"), "{shown}");
    let wire = caller.sandbox.wire();
    assert_eq!(wire.len(), 7);
    let last = String::from_utf8(wire[2].clone()).expect("text");
    assert!(last.contains(&encode(cursor)) && last.contains(&token));
    assert!(Caller::new(Options::default()).sandbox.wire().is_empty());
}
