//! A value as an environment file or a shell leaves it: with white space, a byte order mark or a pair of
//! quotation marks around it. The reader of a variable means what is inside.

/// The value without the byte order mark, white space and one pair of quotation marks around it.
#[must_use]
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

/// The value without the byte order mark and the white space around it.
#[must_use]
pub(crate) fn trimmed(value: &str) -> &str {
    value.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}' || c == '\0')
}

/// Why a value of one line cannot be meant as it is: it has half of a pair of quotation marks, or a
/// control character. `None` if it may be.
#[must_use]
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
