//! Scans and unescapes JSON strings. Text without special bytes is skipped eight bytes at a time.

use crate::error::{Error, Kind, Result};

/// The quoted length of a string without escapes at the start of `bytes`. `None` for anything else,
/// valid or not.
#[inline]
pub(super) fn take_plain_string(bytes: &[u8]) -> Option<usize> {
    let end = plain_end(bytes.strip_prefix(b"\"")?, 0) + 1;
    (bytes.get(end) == Some(&b'"')).then_some(end + 1)
}

/// Validates the string whose text starts at `start`. Returns its end, and whether it has escapes.
#[inline]
pub(super) fn string_end(bytes: &[u8], start: usize) -> Result<(usize, bool)> {
    let mut at = start;
    let mut escaped = false;
    loop {
        at = plain_end(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok((at, escaped)),
            Some(b'\\') => {
                escaped = true;
                at = escape_end(bytes, at)?;
            }
            Some(_) => {
                let message = format!("a control character in a string at byte {at}");
                return Err(Error::new(Kind::ProtocolError, message));
            }
            None => return Err(truncated()),
        }
    }
}

/// The offset after the escape at `at`. A lone surrogate is an error.
#[cold]
fn escape_end(bytes: &[u8], at: usize) -> Result<usize> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => return Ok(at + 2),
        Some(b'u') => {}
        Some(_) => return Err(bad_escape(at)),
        None => return Err(truncated()),
    }
    let unit = hex_unit(bytes, at)?;
    match unit {
        0xD800..=0xDBFF => {
            let pair = bytes.get(at + 6..).unwrap_or_default();
            if pair.len() < 2 && b"\\u".starts_with(pair) {
                return Err(truncated());
            }
            if !pair.starts_with(b"\\u") {
                return Err(lone_surrogate(at));
            }
            match hex_unit(bytes, at + 6)? {
                0xDC00..=0xDFFF => Ok(at + 12),
                _ => Err(lone_surrogate(at)),
            }
        }
        0xDC00..=0xDFFF => Err(lone_surrogate(at)),
        _ => Ok(at + 6),
    }
}

#[cold]
pub(super) fn truncated() -> Error {
    Error::new(Kind::TruncatedBody, "The body ends in the middle of its JSON.")
}

#[cold]
fn bad_escape(at: usize) -> Error {
    Error::new(Kind::ProtocolError, format!("an invalid escape in a string at byte {at}"))
}

#[cold]
fn lone_surrogate(at: usize) -> Error {
    Error::new(Kind::ProtocolError, format!("a lone surrogate in a string at byte {at}"))
}

/// The offset of the first quote, backslash or control character from `at`, or the end. Checks
/// eight bytes at a time.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let zero_in = |word: u64| word.wrapping_sub(ONES) & !word;
        let quote = zero_in(word ^ (ONES * 0x22));
        let backslash = zero_in(word ^ (ONES * 0x5C));
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (quote | backslash | control) & HIGHS;
        if found != 0 {
            // A borrow sets only bits above the first match, so the lowest set bit is correct.
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            break;
        }
        at += 1;
    }
    at
}

/// The value of the `\uXXXX` at `at`.
fn hex_unit(bytes: &[u8], at: usize) -> Result<u32> {
    let digits = bytes.get(at + 2..).unwrap_or_default();
    let digits = &digits[..digits.len().min(4)];
    let mut unit = 0;
    for digit in digits {
        let value = char::from(*digit).to_digit(16).ok_or_else(|| bad_escape(at))?;
        unit = unit * 16 + value;
    }
    if digits.len() == 4 { Ok(unit) } else { Err(truncated()) }
}

pub(super) fn is_plain(name: &str) -> bool {
    plain_end(name.as_bytes(), 0) == name.len()
}
