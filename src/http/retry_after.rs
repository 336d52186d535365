//! What the service asked for with `Retry-After` (RFC 9110, 10.2.3).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// The pause that a reply asks for. An HTTP-date is read against the reply's own `Date`, so that
/// our clock plays no part; `now` stands in where it has none. What is past, negative, not whole or
/// not a number is taken as absent; of several, the longest counts.
#[must_use]
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    headers
        .get_all(RETRY_AFTER)
        .iter()
        .filter_map(|value| pause(value.to_str().ok()?.trim(), date(headers).unwrap_or(now)))
        .max()
}

/// When a pause that starts now ends; far beyond all calendars means never.
#[must_use]
pub(crate) fn end_of_pause(now: Timestamp, pause: Duration) -> Timestamp {
    SignedDuration::try_from(pause)
        .ok()
        .and_then(|pause| now.checked_add(pause).ok())
        .unwrap_or(Timestamp::MAX)
}

fn pause(text: &str, now: Timestamp) -> Option<Duration> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit is still a number, and a long pause.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = http_date(text)?;
    Duration::try_from(until.duration_since(now)).ok().filter(|pause| !pause.is_zero())
}

/// The `Date` of a reply, if it has exactly one that can be read.
#[must_use]
pub(crate) fn date(headers: &HeaderMap) -> Option<Timestamp> {
    http_date(single(headers, &DATE)?)
}

/// The value of a header that came exactly once and is text.
#[must_use]
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn http_date(text: &str) -> Option<Timestamp> {
    Timestamp::try_from(httpdate::parse_http_date(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(values: &[&str]) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(DATE, "Sun, 01 Nov 2026 12:00:00 GMT".parse().expect("a header"));
        for value in values {
            headers.append(RETRY_AFTER, value.parse().expect("a header"));
        }
        // Our own clock is an hour off: it must not matter.
        retry_after(&headers, "2026-11-01T13:00:00Z".parse().expect("a timestamp"))
    }

    #[test]
    fn b3_a_date_is_read_against_the_date_of_the_reply() {
        assert_eq!(asked(&["Sun, 01 Nov 2026 12:00:30 GMT"]), Some(Duration::from_secs(30)));
        assert_eq!(asked(&["Sunday, 01-Nov-26 12:00:30 GMT"]), Some(Duration::from_secs(30)));
        assert_eq!(asked(&["Sun, 01 Nov 2026 11:59:59 GMT"]), None);
    }

    #[test]
    fn b3_what_is_not_a_whole_number_is_ignored() {
        for bad in ["-5", "1.5", "NaN", "1e30", "", "soon", "2 s", "+2"] {
            assert_eq!(asked(&[bad]), None, "{bad}");
        }
        assert_eq!(asked(&[]), None);
        assert_eq!(asked(&["2"]), Some(Duration::from_secs(2)));
    }

    #[test]
    fn b3_a_number_beyond_all_bounds_is_a_long_pause_and_of_two_the_longer_counts() {
        assert_eq!(asked(&["9".repeat(40).as_str()]), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(asked(&["2", "7"]), Some(Duration::from_secs(7)));
        assert_eq!(asked(&["2", "-5"]), Some(Duration::from_secs(2)));
    }
}
