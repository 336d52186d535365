//! One attempt of a request: its authorisation, and its place in the allowance.

use std::pin::pin;
use std::sync::atomic::Ordering;

use super::{Client, DISCOVERY, RequestParts};
use crate::agent::AgentIssuer;
use crate::auth::{AccessToken, Exchange, Issuer, TokenSource};
use crate::client::identity::{Access, Identity};
use crate::client::reply;
use crate::error::{Kind, Result};
use crate::http::allowance::{Outcome, Permit, exhausted};
use crate::http::{Call, OpenNote, Reply, Request, RequestKind};

impl Client {
    /// Checks the allowance, then gets a token, then asks the agent to grant the request. If no
    /// request is left, no token is requested. Without a token the request is not counted.
    pub(super) async fn ready(
        &self,
        identity: &Identity,
        request: RequestParts<'_>,
        call: &mut Call<'_>,
    ) -> Result<Access> {
        let permit = || match request.spending {
            Some(_) => match self.0.ledger.permit(self.moment(), request.must_remain())? {
                Permit::Exhausted(state) => Err(exhausted(state)),
                permit => Ok(permit),
            },
            None => Ok(Permit::Granted),
        };
        let asks_day = permit()? != Permit::Granted && !self.0.settings.sends_once;
        let must_remain = request.spending.map(|_| request.must_remain());
        let mut access = self.access(identity, must_remain, call).await?;
        // A token request costs no data request, and its reply shows the service's day if another
        // reply confirms it. The first token may be older, so it is requested again. If no date is
        // known after that, one data request is allowed.
        for is_new in [false, true] {
            if !asks_day || !matches!(permit()?, Permit::Unknown { one } if one || !is_new) {
                break;
            }
            if access.token.is_some() {
                identity.invalidate(&access);
                access = self.access(identity, must_remain, call).await?;
            } else {
                // Without tokens, a discovery request is the free one. Any reply to it has a date.
                let mut note = self.note(call, DISCOVERY);
                let attempt = self.attempt(DISCOVERY, &access, &mut note);
                let _ = call.untimed(Box::pin(attempt)).await;
            }
        }
        if request.spending.is_some()
            && let Some(prepared) = self.0.ledger.prepare(self.moment(), request.must_remain())
        {
            call.untimed(prepared).await?;
        }
        Ok(access)
    }

    /// Returns a token, or only the certificate. `must_remain` is set for a counted request.
    async fn access(
        &self,
        identity: &Identity,
        must_remain: Option<u64>,
        call: &mut Call<'_>,
    ) -> Result<Access> {
        let inner = &*self.0;
        let is_once = inner.settings.sends_once;
        if let Some((tokens, link)) = identity.tokens.as_ref().zip(inner.settings.agent.as_ref()) {
            let issuer = AgentIssuer { link, must_remain, deadline: call.deadline() };
            let token = call.untimed(pin!(granted(tokens, &issuer, is_once))).await?;
            return Ok(identity.access(Some(token)));
        }
        let proof = identity.proof(&inner.token_url);
        let Some((tokens, proof)) = identity.tokens.as_ref().zip(proof) else {
            return Ok(identity.access(None));
        };
        let exchange = Exchange {
            transport: &inner.transport,
            time: &inner.time,
            proof,
            policy: &inner.settings.token_retry,
            deadline: call.deadline(),
            ledger: &*inner.ledger,
        };
        let token = call.untimed(pin!(granted(tokens, &exchange, is_once))).await?;
        Ok(identity.access(Some(token)))
    }

    pub(super) fn note(&self, call: &Call<'_>, parts: RequestParts<'_>) -> OpenNote {
        let (kind, feed) = match parts.spending {
            Some(spending) => (RequestKind::Data, spending.feed.as_ref()),
            None => (RequestKind::Discovery, None),
        };
        call.note(self.0.transport.observer(), kind).for_feed(feed)
    }

    /// The request is counted first, and refunded only if no byte was sent.
    pub(super) async fn attempt(
        &self,
        parts: RequestParts<'_>,
        access: &Access,
        note: &mut OpenNote,
    ) -> Result<Reply> {
        let inner = &*self.0;
        let url = inner.settings.base_url.join(parts.path, parts.query);
        let mut request = Request {
            url,
            authorization: access.token.as_ref().map(AccessToken::authorization),
            form: None,
            certificate: access.certificate.clone(),
            trace: None,
        };
        let reservation = match parts.spending {
            Some(_) => Some(inner.ledger.reserve(self.moment(), parts.must_remain())?),
            None => None,
        };
        let counts =
            || parts.spending.into_iter().flat_map(|spent| [&spent.requests, &inner.data_requests]);
        for count in counts() {
            count.fetch_add(1, Ordering::Relaxed);
        }
        request.trace = note.begin(&request.url);
        let mut outcome = inner.transport.send(request, &inner.time).await;
        note.replied(&mut outcome);
        let now = self.moment();
        let what = reply::outcome_of(&outcome);
        if what == Outcome::Unsent {
            for count in counts() {
                count.fetch_sub(1, Ordering::Relaxed);
            }
        }
        match (reservation, what) {
            (Some(reservation), _) => inner.ledger.settle(reservation, what, now),
            (None, Outcome::Replied { reading: Some(reading), .. }) => {
                inner.ledger.observe(reading, now);
            }
            _ => {}
        }
        if parts.spending.is_some() {
            note.allowance_left(|| inner.ledger.remaining(now));
        }
        let checked = reply::check(outcome?.readable()?, parts, access.secret(), || self.now());
        if let Err(error) = &checked
            && error.kind() == Kind::AllowanceExhausted
            && let Some(pause) = error.context().retry_after
        {
            // A failed write to the ledger must not hide the service's error.
            if let Err(error) = inner.ledger.pin(pause, now) {
                log::warn!(target: "siteline::ledger", "The service's refusal could not be recorded: {error}");
            }
        }
        checked
    }
}

async fn granted(tokens: &TokenSource, issuer: &impl Issuer, is_once: bool) -> Result<AccessToken> {
    if is_once { tokens.once(issuer).await } else { tokens.token(issuer).await }
}
