//! The switches for the things that the document leaves open.

use serde_json::Value;

use super::client::{Caller, at, points};
use crate::{AsOf, Options, PageCounts, PointOrder, Selection, TimestampForm};

const QUERY: &str = "siteId=S1&from=2026-11-01T00:00:00Z&to=2026-11-01T00:10:00Z&pageSize=7";

fn pages(options: Options) -> Vec<Value> {
    let caller = Caller::new(options);
    caller.chain(QUERY, &caller.token())
}

fn all_points(options: Options) -> Vec<(String, String, Option<f64>)> {
    pages(options).iter().flat_map(points).collect()
}

#[test]
fn the_order_of_the_points_is_a_switch_and_the_points_are_the_same() {
    let by_series = all_points(Options::default());
    let options = Options { order: PointOrder::TimeThenSeries, ..Options::default() };
    let mut by_time = all_points(options);
    assert_ne!(by_series, by_time);
    assert_eq!(by_time[0].1, by_time[6].1, "one bucket on the first page");
    by_time.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    assert_eq!(by_series, by_time);
}

#[test]
fn a_page_counts_points_or_envelopes() {
    let by_points = pages(Options::default());
    assert!(by_points.iter().all(|page| points(page).len() <= 7));
    for order in [PointOrder::SeriesThenTime, PointOrder::TimeThenSeries] {
        let options = Options {
            page_counts: PageCounts::Envelopes,
            envelope_points: 5,
            order,
            ..Options::default()
        };
        let by_envelopes = pages(options);
        let counts: Vec<_> = by_envelopes
            .iter()
            .map(|page| page["series"].as_array().expect("envelopes").len())
            .collect();
        assert_eq!(counts[0], 7, "{counts:?}");
        let mut read: Vec<_> = by_envelopes.iter().flat_map(points).collect();
        read.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
        assert_eq!(read, all_points(Options::default()));
    }
}

#[test]
fn the_end_of_the_range_is_a_switch() {
    for (to_inclusive, last) in [(false, "2026-11-01T00:09:00Z"), (true, "2026-11-01T00:10:00Z")] {
        let caller = Caller::new(Options { to_inclusive, ..Options::default() });
        let pages = caller.chain(QUERY, &caller.token());
        let read = pages.iter().flat_map(points).map(|(_, timestamp, _)| timestamp);
        assert_eq!(read.max().as_deref(), Some(last));
        let (start, end) = (at("2026-11-01T00:00:00Z"), at("2026-11-01T00:10:00Z"));
        let site = Selection { sites: vec!["S1".to_owned()], ..Selection::default() };
        let truth = caller.sandbox.truth(site, Some(start), Some(end), None, AsOf::Now);
        assert_eq!(truth.expect("the truth").timestamp.into_iter().max(), Some(at(last)));
    }
}

#[test]
fn names_ids_timestamps_and_layout_are_switches() {
    let options = Options {
        array: "results".to_owned(),
        timestamps: TimestampForm::EpochMilliseconds,
        integer_ids: true,
        extra_members: true,
        spaced: true,
        ..Options::default()
    };
    let page = &pages(options)[0];
    let envelope = &page["results"][0];
    assert!(envelope["machineId"].is_i64() && envelope["tagGuid"].is_i64(), "{envelope}");
    assert_eq!(envelope["points"][0]["timestamp"], 1_793_491_200_000_i64);
    assert_eq!(envelope["points"][0]["quality"], "good");
    assert!(page["generatedBy"].is_string() && envelope["unit"].is_object());
}

#[test]
fn the_last_page_may_lack_its_cursor() {
    let options = Options { omit_last_cursor: true, ..Options::default() };
    let pages = pages(options);
    assert!(pages.last().expect("a page").get("nextCursor").is_none());
    let usual = super::shapes::pages(Options::default());
    assert_eq!(usual.last().expect("a page").get("nextCursor"), Some(&Value::Null));
}
