//! The keywords of `sandbox.fault(...)`.

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};
use serde_json::{Value, json};

use super::arguments::{json_text, named, unexpected};
use super::refused;
use crate::python::conversions::duration;
use crate::sandbox::{Act, Endpoint, Fault, When};

/// What the keywords said, before it is made into acts.
#[derive(Default)]
struct Said {
    nth: Option<u64>,
    every: Option<u64>,
    times: Option<u64>,
    skip: u64,
    chance: Option<f64>,
    seed: u64,
    status: Option<u16>,
    error: Option<String>,
    body: Option<Bytes>,
    headers: Vec<(String, Option<String>)>,
    retry_after: Option<String>,
    unavailable: bool,
    members: Vec<(String, Option<Value>)>,
    acts: Vec<Act>,
}

/// Why this cannot go wrong on that endpoint.
fn belongs_elsewhere(act: &Act, on: Endpoint) -> Option<&'static str> {
    match act {
        Act::RepeatCursor | Act::CycleCursors(_) | Act::EmptyPage if on != Endpoint::Data => {
            Some("only \"data\" has pages and cursors.")
        }
        Act::Grant(_) if on != Endpoint::Token => Some("only \"token\" grants scopes."),
        _ => None,
    }
}

/// One fault for each thing that goes wrong, all at the same requests.
pub(super) fn read(
    py: Python<'_>,
    on: &str,
    what: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<Fault>> {
    let on = match on {
        "token" => Endpoint::Token,
        "discovery" => Endpoint::Discovery,
        "data" => Endpoint::Data,
        _ => {
            let text = format!("on={on:?} is none of \"token\", \"discovery\", \"data\".");
            return Err(refused(py, text));
        }
    };
    let mut said = Said::default();
    for (name, value) in what.into_iter().flatten() {
        let name = name.extract::<String>()?;
        if !value.is_none() {
            said.hear(&name, &value).map_err(|error| named(error, &name, &value))?;
        }
    }
    let when = said.when(py)?;
    said.check(py)?;
    let acts = said.acts(py)?;
    if let Some(words) = acts.iter().find_map(|act| belongs_elsewhere(act, on)) {
        return Err(refused(py, format!("on={:?}: {words}", on.name())));
    }
    if acts.is_empty() {
        return Err(refused(py, "The fault does not say what goes wrong: give status=, cut=, ..."));
    }
    Ok(acts.into_iter().map(|what| Fault { on, when, what }).collect())
}

impl Said {
    fn hear(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match name {
            "nth" => self.nth = value.extract()?,
            "every" => self.every = value.extract()?,
            "times" => self.times = value.extract()?,
            "skip" => self.skip = value.extract()?,
            "chance" => self.chance = value.extract()?,
            "seed" => self.seed = value.extract()?,
            "status" => self.status = value.extract()?,
            "error" => self.error = value.extract()?,
            "body" => self.body = Some(bytes(value)?),
            "headers" => self.headers = headers(value)?,
            "retry_after" => self.retry_after = Some(value.str()?.to_cow()?.into_owned()),
            "unavailable" => self.unavailable = value.extract()?,
            "members" => self.members.extend(members(value)?),
            "drop" => {
                let names: Vec<String> = value.extract()?;
                self.members.extend(names.into_iter().map(|name| (name, None)));
            }
            _ => return self.hear_act(name, value),
        }
        Ok(())
    }

    /// What needs no other keyword to be understood.
    fn hear_act(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let switch = |act: Act| Ok::<_, PyErr>(value.extract::<bool>()?.then_some(act));
        let act = match name {
            "delay" => Some(Act::Delay(duration(value, "delay")?)),
            "cut" => Some(Act::Cut { after: value.extract()? }),
            "stall" => Some(Act::Stall { after: value.extract()? }),
            "raw" => Some(Act::Raw(bytes(value)?)),
            "cycle_cursors" => Some(Act::CycleCursors(value.extract()?)),
            "grant" => Some(Act::Grant(value.extract()?)),
            "hang" => switch(Act::Hang)?,
            "reset" => switch(Act::Reset)?,
            "repeat_cursor" => switch(Act::RepeatCursor)?,
            "empty_page" => switch(Act::EmptyPage)?,
            "forget_cursors" => switch(Act::ForgetCursors)?,
            "forget_tokens" => switch(Act::ForgetTokens)?,
            _ => return Err(unexpected(name)),
        };
        self.acts.extend(act);
        Ok(())
    }

    fn when(&self, py: Python<'_>) -> PyResult<When> {
        let in_a_row = self.times.is_some() || self.skip > 0;
        let ways = [self.nth.is_some(), self.every.is_some(), self.chance.is_some(), in_a_row];
        if ways.iter().filter(|way| **way).count() > 1 {
            return Err(refused(
                py,
                "Give one of nth=, every=, chance=, or times= with skip=, to say when.",
            ));
        }
        if self.nth == Some(0) || self.every == Some(0) || self.times == Some(0) {
            return Err(refused(py, "nth=, every= and times= count from 1."));
        }
        Ok(match (self.nth, self.every, self.chance) {
            (Some(nth), ..) => When::Nth(nth),
            (_, Some(every), _) => When::Every(every),
            (.., Some(probability)) => When::Chance { probability, seed: self.seed },
            _ => When::Times { count: self.times.unwrap_or(1), skip: self.skip },
        })
    }

    fn replaces_the_reply(&self) -> bool {
        self.status.is_some() || self.body.is_some() || self.error.is_some() || self.unavailable
    }

    /// What was said must make sense together: nothing is quietly left out.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let bodies = [self.body.is_some(), self.error.is_some(), self.unavailable];
        let status = self.status.unwrap_or(200);
        let headers = || self.headers.iter();
        let text = if self.chance.is_some_and(|chance| !(0.0..=1.0).contains(&chance)) {
            "chance= lies between 0 and 1.".to_owned()
        } else if bodies.iter().filter(|body| **body).count() > 1 {
            "Give one of body=, error= and unavailable=: a reply has one body.".to_owned()
        } else if self.retry_after.is_some() && !self.replaces_the_reply() {
            "retry_after= goes with status=, error=, body= or unavailable=.".to_owned()
        } else if !(200..1_000).contains(&status) {
            format!("status={status} is no final status.")
        } else if let Some((name, _)) = headers().find(|header| !is_header(header)) {
            format!("headers= holds {name:?}, which HTTP cannot carry.")
        } else if self.acts.iter().any(|act| matches!(act, Act::CycleCursors(0))) {
            "cycle_cursors= counts from 1.".to_owned()
        } else {
            return Ok(());
        };
        Err(refused(py, text))
    }

    fn acts(self, py: Python<'_>) -> PyResult<Vec<Act>> {
        let is_reply = self.replaces_the_reply();
        let mut acts = self.acts;
        if !self.members.is_empty() {
            acts.push(Act::Members(self.members));
        }
        if self.unavailable && self.status.is_none() {
            let wait = self.retry_after.map(|wait| wait.parse()).transpose();
            let wait = wait.map_err(|_| refused(py, "retry_after= is not whole seconds."))?;
            acts.push(Act::Unavailable { retry_after: wait });
        } else if is_reply {
            let mut headers = Vec::new();
            let unavailable = self.unavailable.then(|| "temporarily_unavailable".to_owned());
            let body = match (self.body, self.error.or(unavailable)) {
                (Some(body), _) => body,
                (None, Some(error)) => {
                    headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
                    json!({ "error": error }).to_string().into()
                }
                (None, None) => Bytes::new(),
            };
            headers.extend(self.retry_after.map(|wait| ("Retry-After".to_owned(), wait)));
            acts.push(Act::Reply { status: self.status.unwrap_or(200), headers, body });
        }
        if !self.headers.is_empty() {
            acts.push(Act::Headers(self.headers));
        }
        Ok(acts)
    }
}

fn is_header((name, value): &(String, Option<String>)) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok()
        && value.as_ref().is_none_or(|value| HeaderValue::from_str(value).is_ok())
}

fn bytes(value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_cow()?.into_owned().into()),
        Err(_) => Ok(value.extract::<Vec<u8>>()?.into()),
    }
}

fn headers(value: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Option<String>)>> {
    value.cast::<PyMapping>()?.items()?.iter().map(|item| item.extract()).collect()
}

fn members(value: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Option<Value>)>> {
    let member = |item: Bound<'_, PyAny>| {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        let text = json_text(&value.py().import("json")?.getattr("dumps")?.call1((&value,))?)?;
        let json = serde_json::from_str(&text)
            .map_err(|_| refused(value.py(), "members= holds something that is not JSON."))?;
        Ok((name, Some(json)))
    };
    value.cast::<PyMapping>()?.items()?.iter().map(member).collect()
}
