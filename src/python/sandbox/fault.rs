//! The keywords of `sandbox.fault(...)`.

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};
use serde_json::{Value, json};

use super::arguments::{json_text, unexpected};
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
            said.hear(&name, &value)?;
        }
    }
    let when = said.when(py)?;
    let acts = said.acts(py)?;
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

    fn acts(self, py: Python<'_>) -> PyResult<Vec<Act>> {
        let mut acts = self.acts;
        if !self.members.is_empty() {
            acts.push(Act::Members(self.members));
        }
        let is_reply = self.status.is_some() || self.body.is_some() || self.error.is_some();
        if is_reply {
            let mut headers = Vec::new();
            let body = match (self.body, self.error) {
                (Some(body), _) => body,
                (None, Some(error)) => {
                    headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
                    json!({ "error": error }).to_string().into()
                }
                (None, None) => Bytes::new(),
            };
            headers.extend(self.retry_after.map(|wait| ("Retry-After".to_owned(), wait)));
            let given = self.headers.into_iter();
            headers.extend(given.filter_map(|(name, value)| Some((name, value?))));
            let status = self.status.unwrap_or(200);
            if !(200..1_000).contains(&status) {
                return Err(refused(py, format!("status={status} is no final status.")));
            }
            acts.push(Act::Reply { status, headers, body });
        } else if self.unavailable {
            let wait = self.retry_after.map(|wait| wait.parse()).transpose();
            let wait = wait.map_err(|_| refused(py, "retry_after= is not whole seconds."))?;
            acts.push(Act::Unavailable { retry_after: wait });
        } else if !self.headers.is_empty() {
            acts.push(Act::Headers(self.headers));
        }
        Ok(acts)
    }
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
