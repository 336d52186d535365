//! Bodies at the cap, bodies in chunks, and their memory.

use super::*;
use crate::http::test_server::gzip;

#[test]
fn h14_the_cap_holds_for_what_arrives_as_for_what_it_inflates_to() {
    // Empty members never reach the cap on decompressed bytes.
    let empty = gzip(b"");
    let cap = 50 * empty.len();
    for (members, fits) in [(49, true), (50, true), (51, false)] {
        let mut inflater = Inflater::new(Encoding::Gzip, None, cap, &Buffers::default());
        let pushed = (0..members).try_for_each(|_| inflater.push(&empty));
        let outcome = pushed.and_then(|()| inflater.finish());
        match outcome {
            Ok(body) => assert!(fits && body.is_empty(), "{members}"),
            Err(error) => assert!(!fits && error.kind() == Kind::BodyTooLarge, "{members}"),
        }
    }
}

#[test]
fn e2_the_first_two_bytes_are_compared_however_they_arrive() {
    let body = gzip(b"{\"series\":[]}");
    for first in 1..4 {
        let pieces = [&body[..first], &body[first..]];
        let mut inflater = Inflater::new(Encoding::Gzip, None, 1_000, &Buffers::default());
        pieces.iter().try_for_each(|piece| inflater.push(piece)).expect("gzip");
        assert_eq!(inflater.finish().expect("gzip"), "{\"series\":[]}", "{first}");
        let mut inflater = Inflater::new(Encoding::Identity, None, 1_000, &Buffers::default());
        let pushed = pieces.iter().try_for_each(|piece| inflater.push(piece));
        let error = pushed.expect_err("gzip without its header").to_string();
        assert!(error.contains("Content-Encoding of the reply is missing"), "{error}");
    }
}

/// Each member allocates a window: 2 MB of empty members allocated 100,000 of them.
#[test]
fn a_body_of_many_empty_members_is_refused() {
    let inflate = |members: usize| {
        let body = gzip(b"").repeat(members);
        let mut inflater = Inflater::new(Encoding::Gzip, None, 4 << 20, &Buffers::default());
        inflater.push(&body)?;
        inflater.finish()
    };
    assert_eq!(inflate(100_000).expect_err("too many").kind(), Kind::TruncatedBody);
    assert!(inflate(60).expect("a few").is_empty());
}
