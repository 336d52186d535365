//! Skips ignored values in their most frequent forms, with the same checks as the parser.

use super::string::take_plain_string;

/// Longer numbers are left to the parser, which has a limit.
const LONGEST_NUMBER: usize = 64;

/// The length of the string without escapes, the number without an exponent, or the literal at the
/// start of `bytes`. `None` for anything else, valid or not.
#[inline]
pub(super) fn take_plain_value(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        b'"' => take_plain_string(bytes),
        b'-' | b'0'..=b'9' => take_plain_number(bytes),
        b't' => bytes.starts_with(b"true").then_some(4),
        b'f' => bytes.starts_with(b"false").then_some(5),
        b'n' => bytes.starts_with(b"null").then_some(4),
        _ => None,
    }
}

#[inline]
fn take_plain_number(bytes: &[u8]) -> Option<usize> {
    let first = usize::from(bytes[0] == b'-');
    let mut end = digits_end(bytes, first);
    if end == first || (bytes[first] == b'0' && end > first + 1) {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        let fraction = end + 1;
        end = digits_end(bytes, fraction);
        if end == fraction {
            return None;
        }
    }
    // At the end of the bytes, more digits might follow.
    let is_over = !matches!(bytes.get(end)?, b'e' | b'E');
    (is_over && end <= LONGEST_NUMBER).then_some(end)
}

#[inline]
fn digits_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::json::Parser;
    use super::*;

    proptest! {
        #[test]
        fn taken_values_equal_the_skipped_ones(text in "[-+0-9.eE\"\\\\a-z{}\\[\\], ]{1,12}") {
            let Some(length) = take_plain_value(text.as_bytes()) else { return Ok(()) };
            let skipped = Parser::open(text.as_bytes()).unwrap().skip_value();
            prop_assert_eq!(skipped.unwrap(), &text[..length]);
        }
    }
}
