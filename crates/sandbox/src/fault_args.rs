//! The keyword arguments of a fault: one flat record, which becomes a [`Fault`] for each effect.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use serde_json::{Map, Value, json};

use super::error::SandboxError;
use super::fault::{Effect, Endpoint, Fault, When};

/// The keywords of Python's `sandbox.fault(on=..., ...)` without `on`. `delay` is in seconds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a keyword")]
pub struct FaultArgs {
    pub nth: Option<u64>,
    pub every: Option<u64>,
    pub times: Option<u64>,
    pub skip: u64,
    pub chance: Option<f64>,
    pub seed: u64,
    pub status: Option<u16>,
    pub error: Option<String>,
    pub body: Option<TextOrBytes>,
    pub headers: BTreeMap<String, Option<String>>,
    pub retry_after: Option<String>,
    pub unavailable: bool,
    pub members: Map<String, Value>,
    pub drop: Vec<String>,
    pub delay: Option<f64>,
    pub cut: Option<usize>,
    pub stall: Option<usize>,
    pub hang: bool,
    pub reset: bool,
    pub raw: Option<TextOrBytes>,
    pub repeat_cursor: bool,
    pub cycle_cursors: Option<usize>,
    pub empty_page: bool,
    pub forget_cursors: bool,
    pub forget_tokens: bool,
    pub grant: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextOrBytes(pub Bytes);

impl FaultArgs {
    /// One fault for each effect, all at the same requests.
    /// Fails for keywords that contradict each other or this endpoint, or have no effect.
    pub fn faults(self, on: Endpoint) -> Result<Vec<Fault>, SandboxError> {
        let when = self.when().map_err(SandboxError::new)?;
        self.check(on)?;
        let effects = self.effects()?;
        if effects.is_empty() {
            return Err(SandboxError::new("The fault has no effect: give status=, cut=, ..."));
        }
        Ok(effects.into_iter().map(|effect| Fault { on, when, effect }).collect())
    }

    fn when(&self) -> Result<When, &'static str> {
        let in_a_row = self.times.is_some() || self.skip > 0;
        let ways = [self.nth.is_some(), self.every.is_some(), self.chance.is_some(), in_a_row];
        if ways.iter().filter(|way| **way).count() > 1 {
            return Err("Give only one of nth=, every=, chance=, or times= with skip=.");
        }
        if [self.nth, self.every, self.times].contains(&Some(0)) {
            return Err("nth=, every= and times= count from 1.");
        }
        Ok(match (self.nth, self.every, self.chance) {
            (Some(nth), ..) => When::Nth(nth),
            (_, Some(every), _) => When::Every(every),
            (.., Some(probability)) if !(0.0..=1.0).contains(&probability) => {
                return Err("chance= must be between 0 and 1.");
            }
            (.., Some(probability)) => When::Chance { probability, seed: self.seed },
            _ => When::Times { count: self.times.unwrap_or(1), skip: self.skip },
        })
    }

    fn replaces_the_reply(&self) -> bool {
        self.status.is_some() || self.body.is_some() || self.error.is_some() || self.unavailable
    }

    /// Refuses keywords that contradict each other or this endpoint: none is ignored.
    fn check(&self, on: Endpoint) -> Result<(), SandboxError> {
        let bodies = [self.body.is_some(), self.error.is_some(), self.unavailable];
        let pages = self.repeat_cursor || self.cycle_cursors.is_some() || self.empty_page;
        let bad_header = self.headers.iter().find(|header| !is_header(header));
        let text = if bodies.iter().filter(|body| **body).count() > 1 {
            "Give only one of body=, error= and unavailable=: a reply has one body.".to_owned()
        } else if self.retry_after.is_some() && !self.replaces_the_reply() {
            "retry_after= needs status=, error=, body= or unavailable=.".to_owned()
        } else if let Some(status) = self.status.filter(|status| !(200..1_000).contains(status)) {
            format!("status={status} is not a final HTTP status.")
        } else if let Some((name, _)) = bad_header {
            format!("headers= has {name:?}, which is not a valid HTTP header.")
        } else if self.cycle_cursors == Some(0) {
            "cycle_cursors= counts from 1.".to_owned()
        } else if pages && on != Endpoint::Data {
            format!("on={:?}: only \"data\" has pages and cursors.", on.name())
        } else if self.grant.is_some() && on != Endpoint::Token {
            format!("on={:?}: only \"token\" grants scopes.", on.name())
        } else {
            return Ok(());
        };
        Err(SandboxError::new(text))
    }

    fn effects(mut self) -> Result<Vec<Effect>, SandboxError> {
        let switches = [
            (self.hang, Effect::Hang),
            (self.reset, Effect::Reset),
            (self.repeat_cursor, Effect::RepeatCursor),
            (self.empty_page, Effect::EmptyPage),
            (self.forget_cursors, Effect::ForgetCursors),
            (self.forget_tokens, Effect::ForgetTokens),
        ];
        let mut effects: Vec<_> =
            switches.into_iter().filter_map(|(on, effect)| on.then_some(effect)).collect();
        if let Some(seconds) = self.delay {
            let delay = Duration::try_from_secs_f64(seconds)
                .map_err(|error| SandboxError::new(format!("delay={seconds}: {error}.")))?;
            effects.push(Effect::Delay(delay));
        }
        effects.extend(self.cut.map(|after| Effect::Cut { after }));
        effects.extend(self.stall.map(|after| Effect::Stall { after }));
        effects.extend(self.raw.take().map(|raw| Effect::Raw(raw.0)));
        effects.extend(self.cycle_cursors.map(Effect::CycleCursors));
        effects.extend(self.grant.take().map(Effect::Grant));
        let set = std::mem::take(&mut self.members);
        let removed = std::mem::take(&mut self.drop);
        let members: Vec<_> = (set.into_iter().map(|(name, value)| (name, Some(value))))
            .chain(removed.into_iter().map(|name| (name, None)))
            .collect();
        if !members.is_empty() {
            effects.push(Effect::Members(members));
        }
        let headers = std::mem::take(&mut self.headers);
        effects.extend(self.reply()?);
        if !headers.is_empty() {
            effects.push(Effect::Headers(headers.into_iter().collect()));
        }
        Ok(effects)
    }

    fn reply(self) -> Result<Option<Effect>, SandboxError> {
        if !self.replaces_the_reply() {
            return Ok(None);
        }
        if self.unavailable && self.status.is_none() {
            let seconds = self.retry_after.map(|seconds| seconds.parse()).transpose();
            let seconds =
                seconds.map_err(|_| SandboxError::new("retry_after= is not whole seconds."))?;
            return Ok(Some(Effect::Unavailable { retry_after: seconds }));
        }
        let mut headers = Vec::new();
        let unavailable = self.unavailable.then(|| "temporarily_unavailable".to_owned());
        let body = match (self.body, self.error.or(unavailable)) {
            (Some(body), _) => body.0,
            (None, Some(error)) => {
                headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
                json!({ "error": error }).to_string().into()
            }
            (None, None) => Bytes::new(),
        };
        headers.extend(self.retry_after.map(|wait| ("Retry-After".to_owned(), wait)));
        Ok(Some(Effect::Reply { status: self.status.unwrap_or(200), headers, body }))
    }
}

fn is_header((name, value): &(&String, &Option<String>)) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok()
        && value.as_ref().is_none_or(|value| HeaderValue::from_str(value).is_ok())
}

impl<'de> Deserialize<'de> for TextOrBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BytesVisitor;
        impl Visitor<'_> for BytesVisitor {
            type Value = TextOrBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or bytes")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TextOrBytes, E> {
                self.visit_bytes(text.as_bytes())
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<TextOrBytes, E> {
                Ok(TextOrBytes(Bytes::copy_from_slice(bytes)))
            }
        }
        deserializer.deserialize_any(BytesVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(on: Endpoint, keywords: Value) -> Result<Vec<Fault>, String> {
        let args: FaultArgs = serde_json::from_value(keywords).map_err(|e| e.to_string())?;
        args.faults(on).map_err(|error| error.to_string())
    }

    #[test]
    fn keywords_become_one_fault_for_each_effect() {
        let keywords = json!({"nth": 2, "error": "teapot", "status": 418, "retry_after": "7",
            "headers": {"X-Pot": "1", "Date": null}, "delay": 0.2, "drop": ["a"],
            "members": {"b": null}});
        let faults = faults(Endpoint::Data, keywords).expect("faults");
        assert!(faults.iter().all(|fault| fault.when == When::Nth(2)));
        let effects: Vec<_> = faults.into_iter().map(|fault| fault.effect).collect();
        let [
            Effect::Delay(delay),
            Effect::Members(members),
            Effect::Reply { status: 418, headers, body },
            Effect::Headers(changes),
        ] = &effects[..]
        else {
            panic!("{effects:?}");
        };
        assert_eq!(*delay, Duration::from_millis(200));
        assert_eq!(members[..], [("b".into(), Some(Value::Null)), ("a".into(), None)]);
        assert_eq!(headers[1], ("Retry-After".to_owned(), "7".to_owned()));
        assert_eq!(body.as_ref(), br#"{"error":"teapot"}"#);
        assert_eq!(changes[..], [("Date".into(), None), ("X-Pot".into(), Some("1".into()))]);
    }

    #[test]
    fn unavailable_needs_retry_after_in_seconds_unless_a_status_is_given() {
        let one = |keywords| faults(Endpoint::Token, keywords).map(|mut faults| faults.remove(0));
        let fault = one(json!({"unavailable": true, "retry_after": "3"})).expect("a fault");
        assert!(matches!(fault.effect, Effect::Unavailable { retry_after: Some(3) }));
        let fault = one(json!({"unavailable": true, "status": 400, "retry_after": "soon"}));
        assert!(matches!(fault.expect("a fault").effect, Effect::Reply { status: 400, .. }));
        let error = one(json!({"unavailable": true, "retry_after": "soon"})).expect_err("refused");
        assert_eq!(error, "retry_after= is not whole seconds.");
    }

    #[test]
    fn contradictory_keywords_are_refused_with_the_reason() {
        for (keywords, words) in [
            (json!({}), "has no effect"),
            (json!({"hang": false}), "has no effect"),
            (json!({"colour": "red"}), "`colour`"),
            (json!({"nth": 1, "every": 2, "hang": true}), "Give only one of nth="),
            (json!({"nth": 0, "hang": true}), "count from 1"),
            (json!({"chance": 1.5, "hang": true}), "between 0 and 1"),
            (json!({"status": 99}), "status=99"),
            (json!({"body": "x", "error": "y"}), "one body"),
            (json!({"retry_after": "3", "hang": true}), "retry_after= needs"),
            (json!({"headers": {"a b": "c"}}), "\"a b\""),
            (json!({"cycle_cursors": 0}), "cycle_cursors= counts from 1"),
            (json!({"empty_page": true}), "only \"data\" has pages"),
            (json!({"delay": -1.0}), "delay=-1"),
        ] {
            let error = faults(Endpoint::Token, keywords).expect_err("refused");
            assert!(error.contains(words), "{error}");
        }
        let error = faults(Endpoint::Data, json!({"grant": []})).expect_err("refused");
        assert!(error.contains("only \"token\" grants"), "{error}");
    }
}
