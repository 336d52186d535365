//! Decodes arbitrary bytes as the body of a page. The result must not depend on the layout, and must
//! agree with `serde_json`: the decoder compares a point's bytes with those of the previous point,
//! and must never confuse the two.
#![no_main]

mod page_checks;

use libfuzzer_sys::fuzz_target;
use page_checks::{compare_cursors, compare_with_serde_json, rows};
use siteline_core::Result;
use siteline_core::data::decode::{EarlierPages, decode_after};
use siteline_core::data::{Chain, DecodeSettings, Decoded, Query, QueryInput, decode};

const SPACES: [&[u8]; 5] = [b" ", b"", b"\r\n\t ", b"\n", b""];

fuzz_target!(|body: &[u8]| {
    let settings = DecodeSettings::default();
    let decoded = decode(body, &settings);
    // The second time most of its envelopes are recognised.
    let mut earlier = EarlierPages::default();
    for _ in 0..2 {
        compare(&decoded, &decode_after(body, &settings, &mut earlier));
    }
    // UTF-16 and UTF-32 are detected by the first bytes, after a byte order mark of UTF-8.
    let json = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    if !json.iter().take(4).any(|byte| *byte == 0) {
        let spaced = spaced(body);
        compare(&decoded, &decode(&spaced, &settings));
        compare(&decoded, &decode_after(&spaced, &settings, &mut earlier));
        compare(&decoded, &decode_after(body, &settings, &mut earlier));
    }
    if let Ok(decoded) = &decoded {
        compare_with_serde_json(body, decoded);
        compare_cursors(body, decoded);
    }
});

/// The same JSON with different spaces at each member, so that no two points have the same bytes.
fn spaced(body: &[u8]) -> Vec<u8> {
    let mut spaced = Vec::with_capacity(2 * body.len());
    let mut spaces = SPACES.into_iter().cycle();
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in body {
        let is_structure = !is_text && b"{}[],:".contains(byte);
        if is_structure {
            spaced.extend(spaces.next().unwrap_or_default());
        }
        spaced.push(*byte);
        if is_structure {
            spaced.extend(spaces.next().unwrap_or_default());
        }
        is_text ^= *byte == b'"' && !is_escaped;
        is_escaped = is_text && *byte == b'\\' && !is_escaped;
    }
    spaced
}

fn compare(one: &Result<Decoded>, other: &Result<Decoded>) {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            assert_eq!(rows(one), rows(other));
            assert!(one.points.identified().eq(other.points.identified()), "the ids differ");
            assert!(one.next_cursor == other.next_cursor, "the cursor depends on the layout");
            assert_eq!(one.report, other.report);
        }
        (Err(one), Err(other)) => assert_eq!(one.kind(), other.kind(), "{one}; {other}"),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => panic!("one layout is refused: {error}"),
    }
}
