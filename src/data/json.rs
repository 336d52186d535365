//! A strict pull parser for JSON (RFC 8259) over one whole body. The reader asks for what it
//! expects; nothing is built, nothing is allocated per token, text without escapes is borrowed.
//!
//! Stricter than most where data could be lost in silence: lone surrogates, endless numbers, deep
//! nesting and whatever follows the document are errors, in ignored members too. A body that ends
//! early is [`Kind::TruncatedBody`] (H8), any other fault [`Kind::Protocol`].

use std::borrow::Cow;
use std::fmt::Display;

use super::number::{LONGEST_NUMBER, Number, NumberFault};
use crate::error::{Error, Kind, Result};

/// Deepest nesting of arrays and objects that is read, ignored members included (E6).
pub(super) const DEPTH_LIMIT: u32 = 128;

/// A position in a document.
#[derive(Clone)]
pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

/// The kind of a value, as its first byte shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Object,
    Array,
    Text,
    Number,
    True,
    False,
    Null,
}

impl Token {
    /// For messages: "an object", "a number".
    pub(super) fn described(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::Text => "a string",
            Self::Number => "a number",
            Self::True => "true",
            Self::False => "false",
            Self::Null => "null",
        }
    }
}

impl<'a> Parser<'a> {
    /// A parser at the start of a body, which must be UTF-8; a byte order mark is skipped (E3).
    pub(super) fn open(body: &'a [u8]) -> Result<Self> {
        let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
        if matches!(body, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0, _, ..] | [_, 0, ..]) {
            return Err(Error::new(Kind::Protocol, "the body is UTF-16 or UTF-32, not UTF-8"));
        }
        match std::str::from_utf8(body) {
            Ok(text) if text.bytes().all(is_space) => {
                Err(Error::new(Kind::Protocol, "the body is empty"))
            }
            Ok(text) => Ok(Self { text, at: 0, depth: 0 }),
            Err(error) if error.error_len().is_none() => Err(truncated()),
            Err(error) => Err(Error::new(
                Kind::Protocol,
                format!("the body is not UTF-8 from byte {} on", error.valid_up_to()),
            )),
        }
    }

    /// The kind of the next value.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<Token> {
        Ok(match self.next_byte()? {
            b'{' => Token::Object,
            b'[' => Token::Array,
            b'"' => Token::Text,
            b'-' | b'0'..=b'9' => Token::Number,
            b't' => Token::True,
            b'f' => Token::False,
            b'n' => Token::Null,
            _ => return Err(self.unexpected("a value")),
        })
    }

    /// Enters the object or array that [`Parser::peek`] showed.
    pub(super) fn enter(&mut self) -> Result<()> {
        if self.depth == DEPTH_LIMIT {
            let message = format!("the body is nested deeper than {DEPTH_LIMIT} levels");
            return Err(Error::new(Kind::Protocol, message));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Steps to the next member's name; `false` at the object's end, which is left then.
    #[inline]
    pub(super) fn next_member(&mut self, first: &mut bool) -> Result<bool> {
        if !self.step(b'}', first)? {
            return Ok(false);
        }
        if self.next_byte()? == b'"' { Ok(true) } else { Err(self.unexpected("a member name")) }
    }

    /// Steps to the next element; `false` at the array's end, which is left then.
    #[inline]
    pub(super) fn next_element(&mut self, first: &mut bool) -> Result<bool> {
        self.step(b']', first)
    }

    #[inline]
    fn step(&mut self, end: u8, first: &mut bool) -> Result<bool> {
        let byte = self.next_byte()?;
        if byte == end {
            self.at += 1;
            self.depth -= 1;
            return Ok(false);
        }
        if std::mem::take(first) {
            return Ok(true);
        }
        if byte != b',' {
            return Err(self.unexpected(if end == b'}' { "a comma or }" } else { "a comma or ]" }));
        }
        self.at += 1;
        // A value or name must follow: both refuse the closing bracket of a trailing comma.
        Ok(true)
    }

    /// Takes the member name and its colon if it is written exactly as `expected`, which has no
    /// character that JSON escapes.
    #[inline]
    pub(super) fn take_name(&mut self, expected: &str) -> Result<bool> {
        let rest = &self.text.as_bytes()[self.at + 1..];
        if rest.starts_with(expected.as_bytes()) && rest.get(expected.len()) == Some(&b'"') {
            self.at += expected.len() + 2;
            self.take_colon()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads the member name and its colon.
    pub(super) fn name(&mut self) -> Result<Cow<'a, str>> {
        let name = self.string()?;
        self.take_colon()?;
        Ok(name)
    }

    #[inline]
    fn take_colon(&mut self) -> Result<()> {
        if self.next_byte()? != b':' {
            return Err(self.unexpected("a colon"));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads the string that [`Parser::peek`] showed.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>> {
        let (start, end, escaped) = self.scan_string()?;
        let text = &self.text[start..end];
        Ok(if escaped { Cow::Owned(unescape(text)) } else { Cow::Borrowed(text) })
    }

    /// Reads the number that [`Parser::peek`] showed.
    #[inline]
    pub(super) fn number(&mut self) -> Result<Number<'a>> {
        match Number::scan(self.text, self.at) {
            Ok((number, end)) => {
                self.at = end;
                Ok(number)
            }
            Err(NumberFault::Truncated) => Err(truncated()),
            Err(NumberFault::TooLong) => Err(Error::new(
                Kind::Protocol,
                format!("a number of more than {LONGEST_NUMBER} characters at byte {}", self.at),
            )),
            Err(NumberFault::Syntax(at)) => {
                self.at = at;
                Err(self.unexpected("a digit"))
            }
        }
    }

    /// Reads the `true`, `false` or `null` that [`Parser::peek`] showed.
    #[inline]
    pub(super) fn literal(&mut self) -> Result<()> {
        let rest = &self.text.as_bytes()[self.at..];
        for word in ["null", "true", "false"] {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(());
            }
            if word.as_bytes().starts_with(rest) {
                return Err(truncated());
            }
        }
        Err(self.unexpected("a value"))
    }

    /// Reads over one value of any kind, checking all of it; gives its text.
    pub(super) fn skip_value(&mut self) -> Result<&'a str> {
        self.next_byte()?;
        let start = self.at;
        let floor = self.depth;
        // One bit for each level entered here, set for an object: no stack to overflow.
        let mut objects: u128 = 0;
        loop {
            let mut first = false;
            match self.peek()? {
                token @ (Token::Object | Token::Array) => {
                    self.enter()?;
                    objects = (objects << 1) | u128::from(token == Token::Object);
                    first = true;
                }
                Token::Text => drop(self.scan_string()?),
                Token::Number => drop(self.number()?),
                Token::True | Token::False | Token::Null => self.literal()?,
            }
            while self.depth > floor && !self.skip_step(objects & 1 == 1, &mut first)? {
                objects >>= 1;
                first = false;
            }
            if self.depth == floor {
                return Ok(&self.text[start..self.at]);
            }
        }
    }

    fn skip_step(&mut self, object: bool, first: &mut bool) -> Result<bool> {
        if !object {
            return self.next_element(first);
        }
        let more = self.next_member(first)?;
        if more {
            self.scan_string()?;
            self.take_colon()?;
        }
        Ok(more)
    }

    /// Checks that nothing but white space follows.
    pub(super) fn finish(mut self) -> Result<()> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.unexpected("the end")) }
    }

    #[inline]
    fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at)
            && is_space(*byte)
        {
            self.at += 1;
        }
    }

    /// The next byte that is not white space; stands on it.
    #[inline]
    fn next_byte(&mut self) -> Result<u8> {
        self.skip_space();
        self.text.as_bytes().get(self.at).copied().ok_or_else(truncated)
    }

    /// Start and end of the string's text, and whether it has escapes. All of it is checked.
    #[inline]
    fn scan_string(&mut self) -> Result<(usize, usize, bool)> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            at = plain_end(bytes, at);
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok((start, at, escaped));
                }
                Some(b'\\') => {
                    escaped = true;
                    at = self.escape_end(at)?;
                }
                Some(_) => {
                    let message = format!("a control character in a string at byte {at}");
                    return Err(Error::new(Kind::Protocol, message));
                }
                None => return Err(truncated()),
            }
        }
    }

    /// The offset after the escape at `at`; a surrogate must have its other half (E3).
    #[cold]
    fn escape_end(&self, at: usize) -> Result<usize> {
        let bytes = self.text.as_bytes();
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
    fn unexpected(&self, wanted: &str) -> Error {
        let rest = &self.text[self.at..];
        let found = match rest.chars().next() {
            None => return truncated(),
            Some(found) => found.escape_debug(),
        };
        let mut message = format!("expected {wanted} at byte {}, found {found}", self.at);
        if ["NaN", "Infinity", "-Infinity"].iter().any(|word| rest.starts_with(word)) {
            message.push_str(" (NaN and Infinity are not JSON)");
        }
        Error::new(Kind::Protocol, message)
    }
}

/// The failure with one more step at the front of its JSON path.
#[cold]
pub(super) fn under(error: Error, step: impl Display) -> Error {
    error.with(|context| {
        let rest = context.path.take().unwrap_or_default();
        context.path = Some(format!("{step}{rest}"));
    })
}

#[inline]
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cold]
fn truncated() -> Error {
    Error::new(Kind::TruncatedBody, "the body ended in the middle of its JSON")
}

#[cold]
fn bad_escape(at: usize) -> Error {
    Error::new(Kind::Protocol, format!("no such escape in a string at byte {at}"))
}

#[cold]
fn lone_surrogate(at: usize) -> Error {
    Error::new(Kind::Protocol, format!("half a surrogate pair in a string at byte {at}"))
}

/// The offset of the first byte from `at` on that ends a plain stretch of a string: a quote, a
/// backslash, a control character, or the end. Eight bytes at a time.
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
            // A borrow can only flag bytes after a true hit, so the first one is true.
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

/// The value of `\uXXXX` whose backslash is at `at`.
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

/// The text behind escapes that [`Parser::scan_string`] has checked.
#[cold]
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let bytes = rest.as_bytes();
        let mut length = 2;
        plain.push(match bytes[at + 1] {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = hex_unit(bytes, at).unwrap_or_default();
                length = 6;
                let code = if (0xD800..0xDC00).contains(&unit) {
                    length = 12;
                    let low = hex_unit(bytes, at + 6).unwrap_or_default();
                    0x1_0000 + ((unit - 0xD800) << 10) + (low & 0x3FF)
                } else {
                    unit
                };
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            other => char::from(other),
        });
        rest = &rest[at + length..];
    }
    plain.push_str(rest);
    plain
}

/// True for a name that is written in JSON as it is: no character of it needs an escape.
pub(super) fn is_plain(name: &str) -> bool {
    plain_end(name.as_bytes(), 0) == name.len()
}

#[cfg(test)]
mod tests;
