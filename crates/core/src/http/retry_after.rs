//! The header `Retry-After` (RFC 9110, 10.2.3).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// The pause that a reply requests. An HTTP date is relative to the `Date` of the reply,
/// independent of the local clock; without a `Date` it is relative to `now`. Invalid values and
/// dates in the past are ignored. The longest of several headers counts.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    headers
        .get_all(RETRY_AFTER)
        .iter()
        .filter_map(|value| pause(value.to_str().ok()?.trim(), date(headers).unwrap_or(now)))
        .max()
}

/// The end of a pause that starts now; `Timestamp::MAX` if that is out of range.
pub(crate) fn end_of_pause(now: Timestamp, pause: Duration) -> Timestamp {
    SignedDuration::try_from(pause)
        .ok()
        .and_then(|pause| now.checked_add(pause).ok())
        .unwrap_or(Timestamp::MAX)
}

/// The pause in one value of the header.
pub fn pause(text: &str, now: Timestamp) -> Option<Duration> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is out of range is a very long pause.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = http_date(text)?;
    Duration::try_from(until.duration_since(now)).ok().filter(|pause| !pause.is_zero())
}

/// The `Date` of a reply, if it has exactly one valid one.
pub fn date(headers: &HeaderMap) -> Option<Timestamp> {
    http_date(single(headers, &DATE)?)
}

/// The value of a header that occurs exactly once and is text.
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
        // The local clock is wrong by an hour, which must have no effect.
        retry_after(&headers, "2026-11-01T13:00:00Z".parse().expect("a timestamp"))
    }

    #[test]
    fn b3_a_date_is_relative_to_the_date_of_the_reply() {
        assert_eq!(asked(&["Sun, 01 Nov 2026 12:00:30 GMT"]), Some(Duration::from_secs(30)));
        assert_eq!(asked(&["Sunday, 01-Nov-26 12:00:30 GMT"]), Some(Duration::from_secs(30)));
        assert_eq!(asked(&["Sun, 01 Nov 2026 11:59:59 GMT"]), None);
    }

    #[test]
    fn b3_an_invalid_number_is_ignored() {
        for bad in ["-5", "1.5", "NaN", "1e30", "", "soon", "2 s", "+2"] {
            assert_eq!(asked(&[bad]), None, "{bad}");
        }
        assert_eq!(asked(&[]), None);
        assert_eq!(asked(&["2"]), Some(Duration::from_secs(2)));
    }

    #[test]
    fn b3_the_longest_pause_counts() {
        assert_eq!(asked(&["9".repeat(40).as_str()]), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(asked(&["2", "7"]), Some(Duration::from_secs(7)));
        assert_eq!(asked(&["2", "-5"]), Some(Duration::from_secs(2)));
    }
}
