//! Loading the user's own data: points with their versions, and raw readings.

use super::client::{Caller, DISCOVERY, at, points, target};
use crate::{Identity, Options, Point, Reading};

const MINUTE: i64 = 60_000_000;
const QUERY: &str = "from=2026-11-01T00:00:00Z&to=2026-11-01T00:10:00Z&pageSize=3";

fn series() -> Identity {
    Identity::new("S", "L", "M", "D", "T")
}

fn point(minute: i64, value: f64, available_at: Option<i64>) -> Point {
    let value_of = Some(value);
    Point {
        timestamp: at("2026-11-01T00:00:00Z") + minute * MINUTE,
        value: value_of,
        minimum: value_of,
        maximum: value_of,
        // Mean values of larger buckets are weighted by it.
        sample_count: Some(minute + 1),
        available_at,
    }
}

fn loaded(minutes: impl IntoIterator<Item = i64>) -> Caller {
    let caller = Caller::new(Options::default());
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let points: Vec<_> = minutes.into_iter().map(|m| point(m, m as f64, None)).collect();
    caller.sandbox.load_points(60, vec![(series(), points)]).expect("loaded");
    caller
}

fn minutes(page: &serde_json::Value) -> Vec<String> {
    points(page).into_iter().map(|(_, timestamp, _)| timestamp[14..16].to_owned()).collect()
}

#[test]
fn a_change_before_the_cursor_shifts_the_next_page() {
    let caller = loaded([0, 2, 3, 4, 5]);
    let token = caller.token();
    let first = caller.get(&target(QUERY, None), &token).json();
    assert_eq!(minutes(&first), ["00", "02", "03"]);
    let second =
        || minutes(&caller.get(&target(QUERY, first["nextCursor"].as_str()), &token).json());
    caller.sandbox.revise(&series(), point(1, 9.0, None)).expect("late");
    assert_eq!(second(), ["03", "04", "05"], "03 comes twice, 01 was never seen");
    for minute in [0, 1] {
        let gone = point(minute, 0.0, None).timestamp;
        caller.sandbox.withdraw(&series(), gone, None).expect("gone");
    }
    assert_eq!(second(), ["05"], "04 is omitted");
}

#[test]
fn points_are_aggregated_only_to_multiples_of_their_width() {
    let caller = loaded(0..6);
    let token = caller.token();
    let wide =
        caller.get(&target(&format!("{QUERY}&aggregationIntervalSeconds=180"), None), &token);
    let page = wide.json();
    let first = &page["series"][0]["points"][0];
    assert_eq!(first["value"], 8.0 / 6.0);
    assert_eq!(first["maximum"], 2.0);
    assert_eq!(first["sampleCount"], 6);
    for bad in ["30", "90"] {
        let query = format!("{QUERY}&aggregationIntervalSeconds={bad}");
        assert_eq!(caller.get(&target(&query, None), &token).status, 400);
    }
    let off_grid = Point { timestamp: 1, ..Point::default() };
    assert!(caller.sandbox.load_points(60, vec![(series(), vec![off_grid])]).is_err());
    assert!(caller.sandbox.load_points(30, vec![(series(), vec![])]).is_err());
}

#[test]
fn readings_are_aggregated_to_any_interval_and_all_of_them_count() {
    let caller = Caller::new(Options::default());
    let reading = |second: i64, value| Reading {
        timestamp: at("2026-11-01T00:00:00Z") + second * 1_000_000,
        value,
        available_at: None,
    };
    // A repeated timestamp, and readings out of order.
    let readings = [(0, 1.0), (70, 5.0), (70, 6.0), (10, 3.0), (59, 8.0)];
    let readings = readings.map(|(second, value)| reading(second, value));
    for identity in [Identity { tag: None, ..series() }, series()] {
        caller.sandbox.load_readings(60, vec![(identity, readings.to_vec())]).expect("loaded");
    }
    let page = caller.get(&target(QUERY, None), &caller.token()).json();
    assert!(page["series"][0]["tagGuid"].is_null());
    let first = &page["series"][0]["points"];
    assert_eq!(first[0]["value"], 4.0);
    assert_eq!((&first[0]["minimum"], &first[0]["maximum"]), (&1.0.into(), &8.0.into()));
    assert_eq!((&first[0]["sampleCount"], &first[1]["sampleCount"]), (&3.into(), &2.into()));
    let query = format!("{QUERY}&aggregationIntervalSeconds=7");
    assert_eq!(caller.get(&target(&query, None), &caller.token()).status, 200);
}

#[test]
fn a_load_that_fails_changes_nothing() {
    let caller = Caller::new(Options::default());
    let plant = caller.get(DISCOVERY, &caller.token()).json();
    let other = Identity::new("S1", "L1", "M1", "D1", "another");
    let [off_grid, infinite, ancient] = [
        Point { timestamp: 7, ..Point::default() },
        point(0, f64::INFINITY, None),
        Point { timestamp: i64::MIN / 60_000_000 * 60_000_000, ..Point::default() },
    ];
    for wrong in [off_grid, infinite, ancient] {
        let series = vec![(series(), vec![point(0, 1.0, None)]), (other.clone(), vec![wrong])];
        assert!(caller.sandbox.load_points(60, series).is_err());
        assert_eq!(caller.get(DISCOVERY, &caller.token()).json(), plant);
    }
    let caller = loaded(0..2);
    assert!(caller.sandbox.revise(&series(), point(0, f64::NAN, None)).is_err());
}

#[test]
fn a_chain_that_has_ended_leaves_no_cursors_behind() {
    let caller = loaded(0..10);
    let token = caller.token();
    for page_size in 1..6 {
        let query = QUERY.replace("pageSize=3", &format!("pageSize={page_size}"));
        assert!(caller.chain(&query, &token).len() > 1);
    }
    assert!(caller.sandbox.shared.lock().issued_cursors.is_empty());
}
