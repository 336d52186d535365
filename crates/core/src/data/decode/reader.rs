//! Reads the top level of a page: the cursor, the array of series, and ignored members.

use serde_json::Value;

use super::Decoded;
use super::envelope::EnvelopeReader;
use super::json::{Parser, ValueKind, under};
use super::known_series::KnownSeries;
use super::settings::DecodeSettings;
use crate::data::cursor::Cursor;
use crate::data::report::{PageReport, shown_name};
use crate::data::shape::MissingCursor;
use crate::error::{Error, Result, descriptions, displayable};

/// Longer errors are not parsed.
const LONGEST_ERROR: usize = 64 * 1024;

/// Maximum number of stored names of top-level members.
const NAMES_KEPT: usize = 10_000;
const NAMES_SHOWN: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    /// Series envelopes: an element is an object with an array of points.
    Series,
    /// Only strings, numbers, booleans and nulls.
    Plain,
    Other,
}

pub(super) struct PageReader<'a, 's> {
    json: Parser<'a>,
    settings: &'s DecodeSettings,
    series: EnvelopeReader<'a, 's>,
    report: PageReport,
}

/// The names of the top-level arrays by content, and of the other members.
#[derive(Default)]
struct Arrays {
    series: Vec<String>,
    empty: Vec<String>,
    other: Vec<String>,
    /// Includes plain arrays.
    members: Vec<String>,
}

impl<'a, 's> PageReader<'a, 's> {
    pub(super) fn new(
        body: &'a [u8],
        settings: &'s DecodeSettings,
        rows: usize,
        known: &'s mut KnownSeries,
    ) -> Result<Self> {
        Ok(Self {
            json: Parser::open(body)?,
            settings,
            series: EnvelopeReader::new(settings, rows, known),
            report: PageReport::default(),
        })
    }

    /// The paths of errors lack the `$`.
    pub(super) fn page(mut self) -> Result<Decoded> {
        let token = self.json.peek()?;
        if token != ValueKind::Object {
            return Err(token.refused("a page must be an object"));
        }
        self.json.enter()?;
        let shape = &self.settings.shape;
        let mut cursor: Option<Option<Cursor>> = None;
        let mut arrays = Arrays::default();
        let mut first = true;
        while self.json.next_member(&mut first)? {
            let name = self.json.name()?;
            let step = || format!(".{}", shown_name(&name));
            if *name == shape.next_cursor {
                if cursor.is_some() {
                    return Err(Error::protocol_at(step(), "this member occurs twice"));
                }
                cursor = Some(self.cursor().map_err(|error| under(error, step()))?);
            } else {
                self.other_member(&name, &mut arrays).map_err(|error| under(error, step()))?;
            }
        }
        self.json.clone().finish()?;
        self.check_arrays(&arrays)?;
        let next_cursor = match cursor {
            Some(cursor) => cursor,
            None => self.missing_cursor()?,
        };
        let points = self.series.finish(&mut self.report)?;
        Ok(Decoded { points, next_cursor, report: self.report })
    }

    /// Null ends the chain, and any string continues it.
    fn cursor(&mut self) -> Result<Option<Cursor>> {
        match self.json.peek()? {
            ValueKind::Null => self.json.literal().map(|()| None),
            ValueKind::Text => Ok(Some(Cursor::new(&self.json.string()?))),
            token => Err(token.refused("a cursor must be a string or null")),
        }
    }

    fn missing_cursor(&mut self) -> Result<Option<Cursor>> {
        if self.settings.shape.missing_cursor == MissingCursor::End {
            self.report.cursors_missing += 1;
            return Ok(None);
        }
        let name = &self.settings.shape.next_cursor;
        Err(Error::protocol_at(
            format!(".{name}"),
            format!("the page has no member {name}, so it may or may not be the last page"),
        )
        .with_hint("If the service omits it on the last page, use Shape(missing_cursor=\"end\")."))
    }

    fn other_member(&mut self, name: &str, arrays: &mut Arrays) -> Result<()> {
        let shape = &self.settings.shape;
        let token = self.json.peek()?;
        let is_error = name == shape.error_member && token != ValueKind::Null;
        if is_error || name.strip_suffix('s') == Some(&shape.error_member) {
            let value = self.json.clone().skip_value()?;
            // A list of errors may be empty.
            let brackets = |c: char| "[]{}".contains(c) || c.is_ascii_whitespace();
            if is_error || !(value == "null" || value.trim_matches(brackets).is_empty()) {
                let message = format!("the page reports an error: {}", error_text(value));
                return Err(Error::protocol_at("", message));
            }
        }
        if let Some(array) = &shape.array {
            if name != array {
                return self.ignore(name);
            }
            if token != ValueKind::Array {
                let message = format!("Shape names this member, but it is {}", token.described());
                return Err(Error::protocol_at("", message));
            }
            return self.series_array(name, arrays);
        }
        if token != ValueKind::Array {
            keep(&mut arrays.members, name);
            return self.ignore(name);
        }
        let mut probe = self.json.clone();
        match content(&mut probe, &shape.points)? {
            Content::Series => return self.series_array(name, arrays),
            Content::Nothing => {
                self.json = probe;
                keep(&mut arrays.empty, name);
                return Ok(());
            }
            Content::Plain => keep(&mut arrays.members, name),
            Content::Other => keep(&mut arrays.other, name),
        }
        self.json = probe;
        self.report.note_unknown(|| shown_name(name));
        Ok(())
    }

    fn ignore(&mut self, name: &str) -> Result<()> {
        self.json.skip_value()?;
        self.report.note_unknown(|| shown_name(name));
        Ok(())
    }

    fn series_array(&mut self, name: &str, arrays: &mut Arrays) -> Result<()> {
        keep(&mut arrays.series, name);
        if arrays.series.len() > 1 {
            // `check_arrays` returns an error with the names, because only the user can choose one.
            self.json.skip_value()?;
            return Ok(());
        }
        self.series.read_array(&mut self.json, name, &mut self.report)
    }

    /// Checks that there is exactly one array of series.
    fn check_arrays(&mut self, arrays: &Arrays) -> Result<()> {
        let hint = "Name the array of series with Shape(array=\"…\").";
        match arrays.series.as_slice() {
            [one] => {
                let others = [&arrays.other, &arrays.empty, &arrays.members];
                if others.iter().any(|names| names.contains(one)) {
                    return Err(Error::protocol_at(format!(".{one}"), "this member occurs twice"));
                }
                self.report.arrays.insert(one.clone());
                return Ok(());
            }
            [] => {}
            several if self.settings.shape.array.is_some() => {
                return Err(Error::protocol_at(
                    format!(".{}", several[0]),
                    "this member occurs twice",
                ));
            }
            several => {
                let message = format!("several arrays contain series: {}", several.join(", "));
                return Err(Error::protocol_at("", message).with_hint(hint));
            }
        }
        if let Some(array) = &self.settings.shape.array {
            let message =
                format!("the page has no array {:?}, which Shape names", shown_name(array));
            return Err(Error::protocol_at("", message));
        }
        if arrays.other.is_empty() && !arrays.empty.is_empty() {
            if let [one] = arrays.empty.as_slice() {
                self.report.arrays.insert(one.clone());
            }
            return Ok(());
        }
        let seen: Vec<&str> = [&arrays.other, &arrays.empty, &arrays.members]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .take(NAMES_SHOWN)
            .collect();
        let points = &self.settings.shape.points;
        let message = format!(
            "no member is an array of objects with {points}; the page has {}",
            if seen.is_empty() { "no other members".to_owned() } else { seen.join(", ") }
        );
        Err(Error::protocol_at("", message).with_hint(hint))
    }
}

fn keep(names: &mut Vec<String>, name: &str) {
    if names.len() < NAMES_KEPT {
        names.push(shown_name(name));
    }
}

/// The code and descriptions of an error in a page. Otherwise only its length.
fn error_text(json: &str) -> String {
    let error = (json.len() <= LONGEST_ERROR).then(|| serde_json::from_str::<Value>(json).ok());
    let error = error.flatten().unwrap_or_default();
    let code = error["code"].as_str();
    let words: Vec<&str> = code.into_iter().chain(descriptions(&error)).collect();
    match displayable(&words.join(": "), &[]) {
        Some(text) => text,
        None => format!("JSON of {} bytes, which is not shown", json.len()),
    }
}

/// Reads an array of series only up to the first array of points, so that few members are read
/// twice.
fn content(json: &mut Parser<'_>, points: &str) -> Result<Content> {
    json.enter()?;
    let mut content = Content::Nothing;
    let mut first = true;
    while json.next_element(&mut first)? {
        match json.peek()? {
            ValueKind::Object if has_points(json, points)? => return Ok(Content::Series),
            ValueKind::Object => content = Content::Other,
            ValueKind::Array => {
                json.skip_value()?;
                content = Content::Other;
            }
            _ => {
                json.skip_value()?;
                if content == Content::Nothing {
                    content = Content::Plain;
                }
            }
        }
    }
    Ok(content)
}

fn has_points(json: &mut Parser<'_>, points: &str) -> Result<bool> {
    json.enter()?;
    let mut first = true;
    while json.next_member(&mut first)? {
        let name = json.name()?;
        if json.peek()? == ValueKind::Array && *name == *points {
            return Ok(true);
        }
        json.skip_value()?;
    }
    Ok(false)
}
