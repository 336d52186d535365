//! Reads arbitrary text as an instant, and as the value of `Retry-After`. An instant that jiff reads as
//! well is the same one.
#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use siteline_core::data::parse_instant_in;
use siteline_core::http::pause;

fuzz_target!(|text: &str| {
    if let (Ok(found), Ok(expected)) = (parse_instant_in(text, None), text.parse::<Timestamp>()) {
        assert_eq!(found, expected, "{text:?}");
    }
    let now: Timestamp = Timestamp::UNIX_EPOCH;
    if let Some(asked) = pause(text.trim(), now) {
        let is_seconds = text.trim().bytes().all(|byte| byte.is_ascii_digit());
        assert!(is_seconds || asked.as_nanos() > 0, "{text:?}");
    }
});
