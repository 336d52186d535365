//! Fault injection: applies the effects of faults to a request and its reply.

use super::fault::Effect;
use super::reply::{ConnectionEnd, Outcome, Reply, http_date};
use super::service::{Request, Service};

impl Service {
    /// Handles a request with the effects of the faults that match it.
    pub(super) fn handle(&mut self, request: &Request, effects: &[Effect]) -> Outcome {
        for effect in effects {
            match effect {
                Effect::ForgetTokens => self.token_endpoint.forget_tokens(),
                Effect::ForgetCursors => self.forget_cursors(),
                _ => {}
            }
        }
        let mut reply = self.reply(request, effects);
        reply.set_common_headers(self.now());
        for effect in effects {
            if let Effect::Members(changes) = effect {
                reply.edit_members(changes);
            }
        }
        reply.compress(request.header("accept-encoding"));
        for effect in effects {
            self.change_reply(&mut reply, effect);
        }
        for effect in effects {
            if let Some((bytes, end)) = broken_reply(&reply, effect) {
                self.log(request, 0);
                return Outcome::Bytes(bytes, end);
            }
        }
        self.log(request, reply.status);
        Outcome::Reply(reply)
    }

    pub(super) fn forget_cursors(&mut self) {
        if let Ok(seal) = super::cursor::CursorSeal::new() {
            self.seal = seal;
        }
    }

    fn change_reply(&self, reply: &mut Reply, effect: &Effect) {
        let mut replacement = match effect {
            Effect::Reply { status, headers, body } => {
                Reply { status: *status, headers: headers.clone(), body: body.clone() }
            }
            Effect::Unavailable { retry_after } => {
                let status = self.options.unavailable_status;
                let mut unavailable = Reply::token_error(status, "temporarily_unavailable");
                let seconds = retry_after.map(|seconds| seconds.to_string());
                unavailable.set_header("Retry-After", seconds.as_deref());
                unavailable
            }
            Effect::Headers(changes) => {
                for (name, value) in changes {
                    reply.set_header(name, value.as_deref());
                }
                return;
            }
            _ => return,
        };
        if !replacement.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("date")) {
            replacement.set_header("Date", Some(&http_date(self.now())));
        }
        *reply = replacement;
    }
}

/// The bytes that are sent instead of a complete reply, if this effect breaks it.
fn broken_reply(reply: &Reply, effect: &Effect) -> Option<(Vec<u8>, ConnectionEnd)> {
    let cut = |after: &usize| {
        let mut wire = reply.to_wire();
        let head = wire.len() - reply.body.len();
        wire.truncate(head.saturating_add(*after));
        wire
    };
    match effect {
        Effect::Hang => Some((Vec::new(), ConnectionEnd::Hang)),
        Effect::Reset => Some((Vec::new(), ConnectionEnd::Reset)),
        Effect::Cut { after } => Some((cut(after), ConnectionEnd::Close)),
        Effect::Stall { after } => Some((cut(after), ConnectionEnd::Hang)),
        Effect::Raw(bytes) => Some((bytes.to_vec(), ConnectionEnd::Close)),
        _ => None,
    }
}
