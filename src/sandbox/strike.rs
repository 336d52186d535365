//! How faults bend a request and its reply.

use super::fault::Act;
use super::reply::{End, Outcome, Reply};
use super::service::{Request, Service};

impl Service {
    /// Works a request through under the faults that strike it.
    pub(super) fn work(&mut self, request: &Request, faults: &[Act]) -> Outcome {
        for act in faults {
            match act {
                Act::ForgetTokens => self.desk.forget_tokens(),
                Act::ForgetCursors => self.forget_cursors(),
                _ => {}
            }
        }
        let mut reply = self.reply(request, faults);
        reply.set_common_headers(self.now());
        for act in faults {
            if let Act::Members(changes) = act {
                reply.edit_members(changes);
            }
        }
        reply.compress(request.header("accept-encoding"));
        for act in faults {
            self.replace(&mut reply, act);
        }
        for act in faults {
            if let Some((bytes, end)) = broken(&reply, act) {
                self.ended(request, 0);
                return Outcome::Bytes(bytes, end);
            }
        }
        self.ended(request, reply.status);
        Outcome::Reply(reply)
    }

    /// All cursors given so far are worth nothing from now on.
    pub(super) fn forget_cursors(&mut self) {
        if let Ok(seal) = super::cursor::CursorSeal::new() {
            self.seal = seal;
        }
    }

    fn replace(&self, reply: &mut Reply, act: &Act) {
        let plain = match act {
            Act::Reply { status, headers, body } => {
                let headers = headers.clone();
                Reply { status: *status, headers, body: body.clone() }
            }
            Act::Unavailable { retry_after } => {
                let status = self.options.shape.unavailable_status;
                let mut plain = Reply::token_error(status, "temporarily_unavailable");
                let seconds = retry_after.map(|seconds| seconds.to_string());
                plain.set_header("Retry-After", seconds.as_deref());
                plain
            }
            Act::Headers(changes) => {
                for (name, value) in changes {
                    reply.set_header(name, value.as_deref());
                }
                return;
            }
            _ => return,
        };
        let has_date = plain.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("date"));
        *reply = plain;
        if !has_date {
            reply.set_header("Date", Some(&super::reply::http_date(self.now())));
        }
    }
}

/// The bytes that go out in place of an orderly reply, if this act breaks it.
fn broken(reply: &Reply, act: &Act) -> Option<(Vec<u8>, End)> {
    let cut = |after: &usize| {
        let mut wire = reply.to_wire();
        let head = wire.len() - reply.body.len();
        wire.truncate(head.saturating_add(*after));
        wire
    };
    match act {
        Act::Hang => Some((Vec::new(), End::Hang)),
        Act::Reset => Some((Vec::new(), End::Reset)),
        Act::Cut { after } => Some((cut(after), End::Close)),
        Act::Stall { after } => Some((cut(after), End::Hang)),
        Act::Raw(bytes) => Some((bytes.to_vec(), End::Close)),
        _ => None,
    }
}
