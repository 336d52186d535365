//! Cleans values from environment files and shells. Such a value may be surrounded by white space, a byte
//! order mark or a pair of quotation marks, which are not part of it.

/// Removes surrounding white space, a byte order mark and one pair of quotation marks.
pub(crate) fn unquoted(value: &str) -> &str {
    let trimmed = trimmed(value);
    for mark in ['"', '\''] {
        let inside = trimmed.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
        if let Some(inside) = inside {
            return self::trimmed(inside);
        }
    }
    trimmed
}

/// Removes surrounding white space, byte order marks and NUL characters.
pub(crate) fn trimmed(value: &str) -> &str {
    value.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}' || c == '\0')
}

/// Returns why a one-line value is invalid, or `None` if it is valid. A value is invalid if it contains a
/// control character or is not UTF-8 text, or has a quotation mark at only one end.
pub(crate) fn fault(value: &str) -> Option<&'static str> {
    let is_mark = |c: char| c == '"' || c == '\'';
    if value.chars().any(char::is_control) {
        return Some("it has a line break or another control character in it");
    }
    if value.contains('\u{fffd}') {
        return Some("it is not UTF-8 text");
    }
    let has_half = value.starts_with(is_mark) != value.ends_with(is_mark);
    has_half.then_some("it has a quotation mark at one end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_white_space_around_a_value_are_removed() {
        for written in
            ["a b", "\"a b\"", "'a b'", " a b\r\n", "\u{feff}a b", "\" a b \"\n", "\u{feff}\"a b\""]
        {
            assert_eq!(unquoted(written), "a b", "{written:?}");
        }
        assert_eq!(unquoted("\"\""), "");
        assert_eq!(unquoted("\""), "\"");
        assert_eq!(unquoted("\"a'"), "\"a'");
        assert_eq!(unquoted("\"\"a\"\""), "\"a\"");
    }

    #[test]
    fn a_value_that_cannot_be_meant_has_a_reason() {
        for written in ["\"a", "a'", "a\nb", "a\u{0}b", "a\u{fffd}"] {
            assert!(fault(written).is_some(), "{written:?}");
        }
        for written in ["a", "a b", "it's", "\"a\" b \"c\""] {
            assert_eq!(fault(written), None, "{written:?}");
        }
    }
}
