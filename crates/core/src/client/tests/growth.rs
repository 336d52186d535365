//! Checks that the work to read a reply is linear in its length. Other processes do not change the
//! processor time of a thread.

use std::fmt::Write as _;
use std::time::Duration;

use nix::time::ClockId;

use crate::client::discovery_body::DiscoveryBody;
use crate::data::{DecodeSettings, decode};
use crate::error::{Secret, displayable, less_opaque, redacted};
use crate::http::Problem;

/// Maximum ratio of the two times. It is about 8 for linear work and 64 for quadratic work.
const MOST: u32 = 30;
/// Shorter times do not show the growth.
const NOISE: Duration = Duration::from_millis(300);

const TOKEN: &str = "q7Zk-Xv93_bTw2Lm8RdY5cHsA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0";

/// Bodies of about `length` bytes that slow down a careless reader.
fn bodies(length: usize) -> Vec<(&'static str, String)> {
    let repeated = |one: &str| one.repeat(length / one.len());
    let members = |value: &str| {
        let mut text = String::new();
        for n in 0..length / (value.len() + 12) {
            write!(text, "\"k{n:07}\":{value},").expect("a text");
        }
        text
    };
    let pieces: String = (0..length / 12).map(|n| &TOKEN[n % 50..n % 50 + 12]).collect();
    vec![
        ("pieces of the token", format!(r#"{{"message":"{pieces}","error":"x"}}"#)),
        ("a long text", format!(r#"{{"message":"{}"}}"#, repeated("x"))),
        ("escapes", format!(r#"{{"message":"{}"}}"#, repeated("\\u001b"))),
        ("many names", format!("{{{}\"z\":1}}", members("1"))),
        ("many texts", format!("{{{}\"error\":\"x\"}}", members("\"q7Zk-Xv93_b\""))),
        ("many lists", format!("{{{}\"z\":1}}", members("[]"))),
        ("a name again", format!("{{{}\"z\":1}}", repeated("\"a\":1,"))),
        ("empty lists", format!("{{\"errors\":[{}0]}}", repeated("[],"))),
        ("errors", format!("{{\"errors\":[{}0]}}", repeated(r#"{"message":"a"},"#))),
        ("nesting", format!("{{\"a\":{}", repeated("["))),
        ("series", format!("{{\"series\":[{}", repeated(r#"{"points":[],"#))),
        ("cut", format!("{{\"a\":\"{}", repeated("x"))),
        ("not JSON", repeated("<a>certificate")),
    ]
}

/// The processor time of this thread for a read.
fn time(read: impl Fn()) -> Duration {
    let now = || Duration::from(ClockId::CLOCK_THREAD_CPUTIME_ID.now().expect("a time"));
    let began = now();
    read();
    now().saturating_sub(began)
}

/// A reader with its name and the length of its short replies in bytes.
type Reader = (&'static str, usize, fn(&str));

const READERS: [Reader; 6] = [
    ("an error", 6_000, |body| drop(Problem::read(body.as_bytes(), &[Secret::token(TOKEN)]))),
    ("a token reply", 6_000, |body| {
        if let Ok(serde_json::Value::Object(members)) = serde_json::from_str(body) {
            let _ = Problem::of_token_reply(&members, &["a.read"]);
        }
    }),
    ("discovery", 20_000, |body| drop(DiscoveryBody::read(body.as_bytes()))),
    ("a page", 20_000, |body| drop(decode(body.as_bytes(), &DecodeSettings::default()))),
    ("a text", 10_000, |body| {
        let _ = redacted(body, &[Secret::token(TOKEN), Secret::cursor(body)]);
        let _ = displayable(body, &[Secret::token(TOKEN)]);
    }),
    ("words", 10_000, |body| drop(less_opaque(body, &[]))),
];

#[test]
fn the_work_of_each_reader_grows_with_its_reply() {
    for (name, length, read) in READERS {
        for ((form, short), (_, long)) in bodies(length).into_iter().zip(bodies(8 * length)) {
            let few = time(|| read(&short));
            let many = time(|| read(&long));
            assert!(many <= few * MOST + NOISE, "{name} of {form}: {few:?}, then {many:?}");
        }
    }
}
