//! Prepares text from other sources for a message: shortens it, escapes it, and removes secrets.
//!
//! A text is shortened before it is searched, so the work for a message does not grow with the length of a
//! reply.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Maximum number of characters of foreign text (a body, an `error_description`) in a message.
const EXCERPT_CHARACTERS: usize = 500;
/// Shorter secrets are not redacted, because they may occur in any text.
const SHORTEST_SECRET: usize = 4;
/// Length of the shortest part of a token that is removed. Other text rarely contains the same bytes.
const PART_OF_TOKEN: usize = 8;
/// Length of the shortest part of a cursor that is removed. It is longer because cursors may contain words
/// and dates that also occur in messages.
const PART_OF_CURSOR: usize = 12;
const REMOVED: &str = "[removed]";
/// Marks a byte that is removed.
const MARK: u8 = 1;
/// A longer word that contains a digit may be an opaque token.
const LONGEST_PLAIN: usize = 15;
/// A longer word in mixed case may be an opaque token.
const LONGEST_MIXED: usize = 31;
/// Maximum number of list entries in a message.
const MOST_ENTRIES: usize = 5;
/// The members of a JSON error that appear in a message, in this order.
const DESCRIPTIONS: [&str; 5] = ["title", "detail", "error_description", "message", "msg"];
/// The characters that percent-encoding changes: all but letters, digits and `-._~`.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Makes foreign text safe to show: at most [`EXCERPT_CHARACTERS`] characters, control characters
/// escaped, and anything that looks like a JWT replaced.
pub fn excerpt(text: &str) -> String {
    excerpt_of(text, EXCERPT_CHARACTERS)
}

/// Does the same as [`excerpt`], with another limit.
pub(crate) fn excerpt_of(text: &str, characters: usize) -> String {
    let mut safe = String::with_capacity(text.len().min(characters));
    // Reads twice the length, so that a token that crosses the limit is still recognised.
    let head = beginning(text, characters * 2);
    for piece in head.split_inclusive(|c: char| !is_token_character(c)) {
        let word = piece.trim_end_matches(|c: char| !is_token_character(c));
        if looks_like_jwt(word) {
            safe.push_str("[token removed]");
            safe.push_str(&escaped(&piece[word.len()..]));
        } else {
            safe.push_str(&escaped(piece));
        }
    }
    match safe.char_indices().nth(characters) {
        Some((end, _)) => {
            safe.truncate(end);
            safe.push('…');
            safe
        }
        None => safe,
    }
}

/// Returns at most the first `characters` characters.
fn beginning(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

fn is_token_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=')
}

/// Every JWT is long, contains a dot, and contains `eyJ`, which is `{"` in base64url.
fn looks_like_jwt(word: &str) -> bool {
    word.len() > 40 && word.contains("eyJ") && word.contains('.')
}

/// Escapes each character that is not printable, as Python's `repr` does: `\x1b`, `\n`, `\u202e`. These are
/// control characters, invisible marks, marks that change the text direction, and all spaces except the
/// ordinary one.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        // Writing to a `String` cannot fail.
        let _ = match (c, u32::from(c)) {
            (c, _) if is_printable(c) => safe.write_char(c),
            ('\t' | '\n' | '\r', _) => write!(safe, "{}", c.escape_default()),
            (_, code @ 0..=0xff) => write!(safe, "\\x{code:02x}"),
            (_, code @ 0..=0xffff) => write!(safe, "\\u{code:04x}"),
            (_, code) => write!(safe, "\\U{code:08x}"),
        };
    }
    Cow::Owned(safe)
}

/// Follows Python's `str.isprintable`. `escape_debug` has the same rule, but keeps a combining accent only
/// after a letter.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut letter_first = [b'a'; 5];
    c.encode_utf8(&mut letter_first[1..]);
    let text = str::from_utf8(&letter_first[..=c.len_utf8()]).unwrap_or_default();
    text.escape_debug().nth(1) == Some(c)
}

/// A text that must not appear in a message, and the length of the shortest part that is removed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Secret<'a> {
    text: &'a str,
    least_part: usize,
}

impl<'a> Secret<'a> {
    /// A token, a password or another random text.
    pub(crate) fn token(text: &'a str) -> Self {
        Self { text, least_part: PART_OF_TOKEN }
    }

    /// A cursor.
    pub(crate) fn cursor(text: &'a str) -> Self {
        Self { text, least_part: PART_OF_CURSOR }
    }
}

/// Makes foreign text safe to show and removes the secrets. Returns `None` if no text remains.
pub(crate) fn displayable(text: &str, secrets: &[Secret<'_>]) -> Option<String> {
    let text = text.trim();
    let head = beginning(text, EXCERPT_CHARACTERS * 2);
    let mut safe = redacted(head, secrets);
    if head.len() < text.len() {
        // The cut may leave a part of a secret that is too short to be recognised, so the end is dropped.
        let end = safe.char_indices().rev().nth(PART_OF_CURSOR).map_or(0, |(at, _)| at);
        safe.truncate(end);
        safe.push('…');
    }
    (!safe.is_empty()).then(|| excerpt(&safe))
}

/// Removes the secrets. Also removes long enough parts of them, because a reply may contain a shortened
/// secret, and each word with such a part that may be another token: tokens of one service begin alike.
/// The text is read once per length of a part, regardless of the number of secrets.
pub(crate) fn redacted(text: &str, secrets: &[Secret<'_>]) -> String {
    let secrets = secrets.iter().filter(|secret| secret.text.len() >= SHORTEST_SECRET);
    let forms: Vec<(usize, HashSet<String>)> =
        secrets.map(|secret| (secret.least_part, forms(secret.text))).collect();
    let mut pieces: BTreeMap<usize, HashSet<&[u8]>> = BTreeMap::new();
    for (least_part, forms) in &forms {
        for form in forms {
            let length = form.len().min(*least_part);
            pieces.entry(length).or_default().extend(form.as_bytes().windows(length));
        }
    }
    let searched = text.to_ascii_lowercase();
    let mut marks = vec![0; text.len()];
    for (length, pieces) in pieces {
        for (at, piece) in searched.as_bytes().windows(length).enumerate() {
            if pieces.contains(piece) {
                marks[at..at + length].fill(MARK);
            }
        }
    }
    mark_whole_words(text, &mut marks);
    without_marked(text, &marks)
}

fn mark_whole_words(text: &str, marks: &mut [u8]) {
    let is_break = |c: char| !is_token_character(c) || c == '=';
    let mut at = 0;
    for piece in text.split_inclusive(is_break) {
        let run = piece.trim_end_matches(is_break).trim_end_matches('.');
        let word = run.trim_start_matches('.');
        let range = at + run.len() - word.len()..at + run.len();
        if marks[range.clone()].contains(&MARK) && may_be_token(word) {
            marks[range].fill(MARK);
        }
        at += piece.len();
    }
}

/// Returns the forms in which a reply may echo a secret: unchanged, percent-encoded and escaped for JSON.
fn forms(secret: &str) -> HashSet<String> {
    let secret = secret.to_ascii_lowercase();
    let encoded = utf8_percent_encode(&secret, FORM).to_string().to_ascii_lowercase();
    let quoted = Value::from(secret.as_str()).to_string();
    let quoted = quoted[1..quoted.len() - 1].to_owned();
    HashSet::from([quoted.replace('/', "\\/"), quoted, encoded, secret])
}

/// Returns the text with [`REMOVED`] in place of each marked part.
fn without_marked(text: &str, marks: &[u8]) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut is_within = false;
    for (at, c) in text.char_indices() {
        let is_marked = marks[at..at + c.len_utf8()].contains(&MARK);
        if !is_marked {
            safe.push(c);
        } else if !is_within {
            safe.push_str(REMOVED);
        }
        is_within = is_marked;
    }
    safe
}

/// Removes words that may be opaque tokens: long words with digits or in mixed case. Used for replies that
/// may contain a token anywhere. A word stays if it is part of one of the `allowed` texts, which are from
/// the request.
pub(crate) fn less_opaque(text: &str, allowed: &[&str]) -> String {
    let is_sign = |c: char| c.is_ascii_alphanumeric() || "-_~+=%".contains(c);
    let is_opaque =
        |word: &str| may_be_token(word) && !allowed.iter().any(|allowed| allowed.contains(word));
    let mut safe = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c: char| !is_sign(c) && c != '.' && c != '/') {
        let run = piece.trim_end_matches(|c: char| !is_sign(c) && c != '.' && c != '/');
        let has_opaque = run.split(['.', '/']).any(is_opaque);
        match (has_opaque, run.contains("//")) {
            (false, _) => safe.push_str(run),
            (true, false) => safe.push_str(REMOVED),
            // Only the opaque part of a URL is removed, so the rest stays readable.
            (true, true) => {
                for part in run.split_inclusive(['.', '/']) {
                    let word = part.trim_end_matches(['.', '/']);
                    safe.push_str(if is_opaque(word) { REMOVED } else { word });
                    safe.push_str(&part[word.len()..]);
                }
            }
        }
        safe.push_str(&piece[run.len()..]);
    }
    safe
}

fn may_be_token(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    (word.len() > LONGEST_PLAIN && has(u8::is_ascii_digit))
        || (word.len() > LONGEST_MIXED && is_mixed)
}

/// Returns the messages in a JSON error: its text, or the members named in [`DESCRIPTIONS`]. Other values
/// are left out, because they may contain secrets.
pub(crate) fn descriptions(error: &Value) -> Vec<&str> {
    match error {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().take(MOST_ENTRIES).flat_map(descriptions).collect(),
        Value::Object(members) => DESCRIPTIONS
            .iter()
            .filter_map(|name| members.get(*name))
            .flat_map(descriptions)
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_printable_is_escaped_as_in_python() {
        for (text, shown) in [
            ("a\u{0}\u{1b}\u{7}\u{7f}", r"a\x00\x1b\x07\x7f"),
            ("a\r\n\tb", r"a\r\n\tb"),
            ("\u{9b}2J\u{a0}\u{ad}", r"\x9b2J\xa0\xad"),
            ("\u{200b}\u{202e}\u{2028}\u{2069}\u{feff}", r"\u200b\u202e\u2028\u2069\ufeff"),
            ("\u{e0001}", r"\U000e0001"),
            ("m³/h °C µ 温度 e\u{301} 🙂 \\ \" '", "m³/h °C µ 温度 e\u{301} 🙂 \\ \" '"),
        ] {
            assert_eq!(escaped(text), shown);
            assert_eq!(escaped(shown), shown);
        }
    }

    /// Uses many pieces of one secret. An earlier search for the longest piece took 18 s on such a text.
    #[test]
    fn a_text_of_pieces_of_a_secret_is_redacted() {
        let secret: String = (0..1_500)
            .map(|n| char::from(b'!' + u8::try_from(n * 7 % 90).expect("small")))
            .collect();
        let pieces: Vec<&str> = (0..1_000).map(|n| &secret[n..n + 20]).collect();
        let text = pieces.join(" . ");
        let safe = redacted(&text.repeat(20), &[Secret::token(&secret)]);
        assert_eq!(safe.replace(REMOVED, "").replace([' ', '.'], ""), "");
    }

    #[test]
    fn another_token_that_begins_like_a_secret_is_removed_whole() {
        let head = "eyJhbGciOiJSUzI1NiIsImtpZCI6InBsYW50In0";
        let own = format!("{head}.eyJzdWIiOiJvd24ifQ.f00f00f00f00");
        for other in [
            format!("{head}.eyJzdWIiOiJvdGhlciJ9.S1gnatur3_xzvRWs"),
            format!("xzv{head}RWs"),
            "customer_at_9d2b7e41556677".to_owned(),
        ] {
            let secrets = [Secret::token(&own), Secret::token("customer_at_8f3a9c0d")];
            let text = format!("the token={other}. '{other}' expired");
            let safe = displayable(&text, &secrets).expect("a text");
            assert_eq!(safe, "the token=[removed]. '[removed]' expired");
        }
    }

    #[test]
    fn a_word_that_may_be_a_token_is_removed() {
        for opaque in [
            "8f3a9c0d2b7e41556677",
            "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
            "1234567890123456",
            "ab12cd34ef56ab78/9a.bc+d==",
        ] {
            let text = format!("the token '{opaque}' is not for https://a.example/{opaque}");
            let safe = less_opaque(&text, &[]);
            assert!(!safe.contains(&opaque[..8]), "{safe}");
            assert!(
                safe.starts_with("the token '[removed]' is not for https://a.example/"),
                "{safe}"
            );
            assert_eq!(less_opaque(opaque, &[opaque]), opaque);
        }
        for plain in [
            "unsupported_grant_type",
            "AADSTS7000215: Invalid client secret, at 2026-11-27T13:00:00Z.",
            "aud is https://plant7.customer.example.com/api/customer/v1/token",
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "customer.data.read",
        ] {
            assert_eq!(less_opaque(plain, &[]), plain);
        }
    }
}
