//! A strict pull parser for JSON (RFC 8259) over a complete body. The caller requests the token
//! that it expects. The parser builds no tree, allocates nothing per token, and borrows unescaped
//! strings.
//!
//! It is stricter than most parsers if data could be lost silently: lone surrogates, very long
//! numbers, deep nesting and trailing bytes are errors, also in ignored members. A body that ends
//! early is [`Kind::TruncatedBody`], any other fault [`Kind::ProtocolError`].

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;

use super::number::{LONGEST_NUMBER, Number, NumberFault};
use super::string::{string_end, truncated};
use crate::error::{Error, Kind, Result};

/// Maximum nesting of arrays and objects, also in ignored members.
pub(super) const DEPTH_LIMIT: u32 = 128;

#[derive(Clone)]
pub(crate) struct Parser<'a> {
    /// Valid UTF-8, so the text between two ASCII bytes is valid too.
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

/// The kind of a value, determined by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Object,
    Array,
    Text,
    Number,
    True,
    False,
    Null,
}

impl ValueKind {
    /// The error for a value that breaks a rule, such as "a page must be an object".
    pub(super) fn refused(self, rule: &str) -> Error {
        Error::protocol_at("", format!("{rule}, not {}", self.described()))
    }

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
    /// Starts a body, which must be UTF-8. Skips a byte order mark.
    pub(crate) fn open(body: &'a [u8]) -> Result<Self> {
        let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
        if matches!(body, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0, _, ..] | [_, 0, ..]) {
            return Err(Error::new(
                Kind::ProtocolError,
                "The body is UTF-16 or UTF-32, not UTF-8.",
            ));
        }
        // Most bodies are ASCII, which is faster to check than UTF-8.
        if !body.is_ascii()
            && let Err(error) = std::str::from_utf8(body)
        {
            let end = error.valid_up_to();
            return Err(match error.error_len() {
                None => truncated(),
                Some(_) => Error::new(
                    Kind::ProtocolError,
                    format!("The body is not valid UTF-8 from byte {end}."),
                ),
            });
        }
        if body.iter().copied().all(is_space) {
            return Err(Error::new(Kind::ProtocolError, "The body is empty."));
        }
        Ok(Self { bytes: body, at: 0, depth: 0 })
    }

    #[inline]
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The text between two ASCII bytes.
    #[inline]
    fn text(&self, range: Range<usize>) -> &'a str {
        std::str::from_utf8(&self.bytes[range]).unwrap_or_default()
    }

    #[inline]
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// Continues at an offset. The caller must have read complete tokens up to there.
    #[inline]
    pub(super) fn seek(&mut self, offset: usize) {
        self.at = offset;
    }

    /// Skips white space and returns the offset of the next value or bracket.
    pub(super) fn value_offset(&mut self) -> usize {
        self.skip_space();
        self.at
    }

    #[inline]
    pub(crate) fn peek(&mut self) -> Result<ValueKind> {
        Ok(match self.next_byte()? {
            b'{' => ValueKind::Object,
            b'[' => ValueKind::Array,
            b'"' => ValueKind::Text,
            b'-' | b'0'..=b'9' => ValueKind::Number,
            b't' => ValueKind::True,
            b'f' => ValueKind::False,
            b'n' => ValueKind::Null,
            _ => return Err(self.unexpected("a value")),
        })
    }

    /// Enters an object or array. Called after [`Parser::peek`].
    pub(crate) fn enter(&mut self) -> Result<()> {
        self.deepen()?;
        self.at += 1;
        Ok(())
    }

    /// Enters an object or array after its bracket, which the caller has read.
    pub(super) fn deepen(&mut self) -> Result<()> {
        if self.depth == DEPTH_LIMIT {
            let message = format!("The body is nested deeper than {DEPTH_LIMIT} levels.");
            return Err(Error::new(Kind::ProtocolError, message));
        }
        self.depth += 1;
        Ok(())
    }

    /// Leaves an object or array. The caller has read its last bracket, before `offset`.
    #[inline]
    pub(super) fn leave(&mut self, offset: usize) {
        self.at = offset;
        self.depth -= 1;
    }

    /// Steps to the next member's name. At the object's end, leaves it and returns `false`.
    #[inline]
    pub(crate) fn next_member(&mut self, first: &mut bool) -> Result<bool> {
        if !self.step(b'}', first)? {
            return Ok(false);
        }
        if self.next_byte()? == b'"' { Ok(true) } else { Err(self.unexpected("a member name")) }
    }

    /// Steps to the next element. At the array's end, leaves it and returns `false`.
    #[inline]
    pub(crate) fn next_element(&mut self, first: &mut bool) -> Result<bool> {
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
        // A value or name must follow, so a trailing comma is an error.
        Ok(true)
    }

    /// Reads a member name and its colon.
    pub(crate) fn name(&mut self) -> Result<Cow<'a, str>> {
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

    /// Reads a string. Called after [`Parser::peek`].
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>> {
        let (start, end, escaped) = self.scan_string()?;
        let text = self.text(start..end);
        if !escaped {
            return Ok(Cow::Borrowed(text));
        }
        let fault =
            |_| Error::new(Kind::ProtocolError, format!("an invalid string at byte {start}"));
        serde_json::from_str(self.text(start - 1..end + 1)).map(Cow::Owned).map_err(fault)
    }

    /// Reads a number. Called after [`Parser::peek`].
    #[inline]
    pub(crate) fn number(&mut self) -> Result<Number<'a>> {
        match Number::scan(self.bytes, self.at) {
            Ok((number, end)) => {
                self.at = end;
                Ok(number)
            }
            Err(NumberFault::Truncated) => Err(truncated()),
            Err(NumberFault::TooLong) => Err(Error::new(
                Kind::ProtocolError,
                format!("a number of more than {LONGEST_NUMBER} characters at byte {}", self.at),
            )),
            Err(NumberFault::Syntax(at)) => {
                self.at = at;
                Err(self.unexpected("a digit"))
            }
        }
    }

    /// Reads `true`, `false` or `null`. Called after [`Parser::peek`].
    #[inline]
    pub(crate) fn literal(&mut self) -> Result<()> {
        let rest = &self.bytes[self.at..];
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

    /// Skips and validates any value. Returns its text.
    pub(super) fn skip_value(&mut self) -> Result<&'a str> {
        self.next_byte()?;
        let start = self.at;
        let floor = self.depth;
        // One bit per level, set for an object, instead of recursion.
        let mut objects: u128 = 0;
        loop {
            let mut first = false;
            match self.peek()? {
                token @ (ValueKind::Object | ValueKind::Array) => {
                    self.enter()?;
                    objects = (objects << 1) | u128::from(token == ValueKind::Object);
                    first = true;
                }
                ValueKind::Text => drop(self.scan_string()?),
                ValueKind::Number => drop(self.number()?),
                ValueKind::True | ValueKind::False | ValueKind::Null => self.literal()?,
            }
            while self.depth > floor && !self.skip_step(objects & 1 == 1, &mut first)? {
                objects >>= 1;
                first = false;
            }
            if self.depth == floor {
                return Ok(self.text(start..self.at));
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

    /// Checks that only white space follows.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.skip_space();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.unexpected("the end")) }
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(byte) = self.bytes.get(self.at)
            && is_space(*byte)
        {
            self.at += 1;
        }
    }

    /// Skips white space and returns the next byte without consuming it.
    #[inline]
    fn next_byte(&mut self) -> Result<u8> {
        self.skip_space();
        self.bytes.get(self.at).copied().ok_or_else(truncated)
    }

    /// Validates a string. Returns its start and end, and whether it has escapes.
    #[inline]
    fn scan_string(&mut self) -> Result<(usize, usize, bool)> {
        let start = self.at + 1;
        let (end, escaped) = string_end(self.bytes, start)?;
        self.at = end + 1;
        Ok((start, end, escaped))
    }

    #[cold]
    fn unexpected(&self, expected: &str) -> Error {
        let rest = self.text(self.at..self.bytes.len());
        let found = match rest.chars().next() {
            None => return truncated(),
            Some(found) => found.escape_debug(),
        };
        let mut message = format!("expected {expected} at byte {}, found {found}", self.at);
        if ["NaN", "Infinity", "-Infinity"].iter().any(|word| rest.starts_with(word)) {
            message.push_str(" (NaN and Infinity are not JSON)");
        }
        Error::new(Kind::ProtocolError, message)
    }
}

/// Prepends a step to the JSON path of an error.
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

#[cfg(test)]
mod tests;
