//! The texts of a feed, and its valid names and durations.

use super::*;
use crate::error::Kind;

#[test]
fn k17_a_start_within_a_bucket_is_warned_of() {
    let warning = |since: &str, interval_seconds| {
        let since = since.parse().expect("a timestamp");
        feed(|input| (input.since, input.interval_seconds) = (since, interval_seconds)).warning()
    };
    for since in ["2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z"] {
        assert_eq!(warning(since, Some(900)), None, "{since}");
    }
    assert_eq!(warning("2026-01-01T00:15:01Z", None), None, "buckets of a second");
    assert_eq!(
        warning("2026-01-01T00:15:01Z", Some(900)).expect("a warning"),
        "feed \"feed\": start=2026-01-01T00:15:01Z is not a multiple of interval=\"15m\" in UTC, and \
         buckets begin at multiples. For whole buckets use start=\"2026-01-01T00:15:00Z\"."
    );
}

#[test]
fn feed_parameters_exclude_the_range() {
    let parameters = |change: fn(&mut FeedInput)| feed(change).parameters();
    assert_eq!(parameters(|input| input.interval_seconds = None), "everything");
    let some = |input: &mut FeedInput| {
        input.site = Some("S1".to_owned());
        input.filters = vec![("machineId".to_owned(), vec!["M1".to_owned()])];
    };
    assert_eq!(parameters(some), "siteId=S1 aggregationIntervalSeconds=60 machineId=M1");
}

#[test]
fn feed_names_are_limited() {
    let outcome = |name: &str| {
        let since = Timestamp::from_second(SINCE).expect("a timestamp");
        Feed::new(FeedInput::new(name, since)).map(|feed| feed.name().to_owned())
    };
    let [a, e] = ["a", "é"].map(|letter| [200, 201, 202].map(|count| letter.repeat(count)));
    for name in ["a b", "é", &a[0], &e[0]] {
        assert_eq!(outcome(name).expect("a feed"), name);
    }
    for (name, why) in [
        ("", "is empty"),
        ("  ", "is empty"),
        (" a", "begins or ends with a space"),
        ("a ", "begins or ends with a space"),
        ("a\tb", "contains a control character"),
        ("a\u{7f}b", "contains a control character"),
        (a[1].as_str(), "longer than 200 characters"),
        (e[2].as_str(), "longer than 200 characters"),
    ] {
        assert_error(outcome(name), Kind::QueryError, why);
    }
}
