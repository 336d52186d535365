//! The exchange of a proof, usually an assertion, for an access token (§4.1): one call and its
//! attempts. Every attempt signs a new assertion, because the service accepts a `jti` only once.

use std::time::Duration;

use jiff::SignedDuration;
use zeroize::Zeroizing;

use super::access_token::CachedToken;
use super::grant::{self, Grant};
use super::retry_after_gate::LONGEST_PAUSE;
use super::token::{Issuer, Tries};
use super::{Credential, Proof, ScopeSet, TokenSource};
use crate::clock::{ServiceTime, Skew};
use crate::error::{Error, Kind, Result};
use crate::http::base_url::TOKEN_PATH;
use crate::http::{Call, Deadline, Ledger, OpenNote, Policy, Request, RequestKind, Transport};

/// This many clients may start together without a wait.
const UNSPREAD: u64 = 2;
/// Each earlier start adds this much to the maximum wait of the others.
const SPREAD: Duration = Duration::from_millis(150);
/// Limit of the maximum wait.
const LONGEST_SPREAD: Duration = Duration::from_secs(5);

/// The parts of a client that a token request uses.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub transport: &'a Transport,
    /// The client's estimate of the service's time.
    pub time: &'a ServiceTime,
    /// The client's proof of identity.
    pub proof: Proof<'a>,
    pub policy: &'a Policy,
    /// The caller's deadline.
    pub deadline: Deadline,
    /// Counts token requests for the integration, and contains pauses that other processes
    /// recorded.
    pub ledger: &'a dyn Ledger,
}

impl Issuer for Exchange<'_> {
    fn check(&self) -> Result<()> {
        self.proof.check()
    }

    /// Requests a token with the scopes of the source when its gate is open.
    async fn issue(&self, source: &TokenSource, tries: Tries) -> Result<CachedToken> {
        let TokenSource { key, quota, gate, .. } = source;
        let clock = self.time.clock();
        // The call begins afterwards, so its limits do not include this wait.
        if tries == Tries::All {
            self.spread_start().await?;
        }
        let mut call = Call::begin(clock, self.policy, quota, self.deadline);
        let mut corrected = false;
        loop {
            let pauses = [gate.closed(clock), self.shared_pause()?].into_iter().flatten();
            if let Some((left, because)) = pauses.max_by_key(|(left, _)| *left) {
                // A caller with a valid token does not wait for a new one.
                if tries != Tries::All {
                    return Err(call.with_attempts(because));
                }
                call.wait_out(left, because).await?;
            }
            let applied = if corrected { self.correctable() } else { self.time.assertion_skew() };
            let mut note = call.note(self.transport.observer(), RequestKind::Token);
            // A vault, or a command that prints the passphrase, may take longer than a reply.
            let form = self.proof.form(&key.scopes, self.time.corrected(applied));
            let form = call.untimed(Box::pin(form)).await;
            let asked = clock.monotonic();
            let attempt = match form {
                Ok(form) => {
                    call.attempt(Box::pin(self.attempt(form, &key.scopes, &mut note))).await
                }
                Err(error) => Err(error),
            };
            let mut error = match attempt {
                Ok(grant) => {
                    call.succeeded();
                    if corrected {
                        self.time.be_strict();
                    }
                    let age = clock.monotonic().saturating_sub(asked);
                    return Ok(CachedToken::new(grant, age, clock));
                }
                Err(error) => error,
            };
            note.failed(&error);
            gate.close(clock, &error);
            self.share_pause(&error);
            if is_invalid_client(&error) {
                if let Proof::Assertion { credential, token_url } = self.proof
                    && !error.context().certificate_refused
                {
                    if tries != Tries::Only && !corrected && self.correction_helps(applied) {
                        corrected = true;
                        call.record_attempt(&error, Duration::ZERO);
                        continue;
                    }
                    error = self.explain(error, corrected, credential, token_url);
                }
                return Err(call.with_last_attempt(error));
            }
            if tries != Tries::All {
                return Err(call.with_last_attempt(error));
            }
            call.pause_after(error).await?;
        }
    }
}

impl Exchange<'_> {
    /// Waits a random part of a few seconds if many processes start together, because token
    /// requests are limited per integration. The first ones never wait, and a caller waits at most
    /// a quarter of its time.
    async fn spread_start(&self) -> Result<()> {
        let clock = self.time.clock();
        let others = self.ledger.begin_token_request(clock.moment())?;
        let spread = SPREAD.saturating_mul(u32::try_from(others).unwrap_or(u32::MAX));
        if others > UNSPREAD {
            let longest = self.deadline.remaining(clock).map_or(LONGEST_SPREAD, |left| left / 4);
            clock.sleep(spread.min(LONGEST_SPREAD).min(longest).mul_f64(fastrand::f64())).await;
        }
        Ok(())
    }

    /// One attempt. The form contains a new assertion.
    async fn attempt(
        &self,
        form: Zeroizing<String>,
        scopes: &ScopeSet,
        note: &mut OpenNote,
    ) -> Result<Grant> {
        let url = self.transport.base_url().join(TOKEN_PATH, None);
        let path = url.path().to_owned();
        let trace = note.begin(&url);
        let request = Request {
            url,
            authorization: None,
            form: Some(form),
            certificate: self.proof.certificate().cloned(),
            trace,
        };
        let clock = self.time.clock();
        self.ledger.count_token_request(clock.moment())?;
        let mut outcome = self.transport.send(request, self.time).await;
        note.replied(&mut outcome);
        let reply = outcome?;
        if let Some(reading) = reply.reading {
            self.ledger.observe(reading, clock.moment());
        }
        grant::read(&reply, scopes, &path, self.time.now())
    }

    /// The rest of a pause that another process recorded in the ledger, and the error for it.
    fn shared_pause(&self) -> Result<Option<(Duration, Error)>> {
        let paused = self.ledger.token_pause(self.time.clock().moment())?;
        let Some((left, until)) = paused else { return Ok(None) };
        let message = format!(
            "the service accepts no token request before {until:.0}: it asked another client that \
             shares this ledger to wait"
        );
        let because = Error::new(Kind::RateLimited, message).with(|context| {
            context.retry_after = Some(left);
            context.retry_at = Some(until);
            context.unsent = true;
        });
        Ok(Some((left, because)))
    }

    /// Records a pause that the service requested in the ledger, for all processes that share it.
    fn share_pause(&self, error: &Error) {
        let Some(asked) = error.context().retry_after.filter(|asked| !asked.is_zero()) else {
            return;
        };
        let now = self.time.clock().moment();
        if let Err(error) = self.ledger.pause_tokens(asked.min(LONGEST_PAUSE), now) {
            log::warn!(target: "siteline::ledger", "the pause is not recorded: {error}");
        }
    }

    fn correctable(&self) -> Option<Skew> {
        self.time.measured().filter(|skew| skew.is_correctable())
    }

    /// Whether the reply shows a skew for which the assertion was not corrected: it was unknown or
    /// small, or the local clock was set since. A difference within the error of the measurement
    /// does not count.
    fn correction_helps(&self, applied: Option<Skew>) -> bool {
        let applied = applied.map_or(SignedDuration::ZERO, |skew| skew.estimate);
        self.correctable().is_some_and(|skew| (skew.estimate - applied).abs() > skew.error())
    }

    /// Adds all possible causes, because the service does not report which check failed.
    fn explain(
        &self,
        error: Error,
        corrected: bool,
        credential: &Credential,
        token_url: &str,
    ) -> Error {
        let skew = self.time.skew();
        let seconds = skew.map(|skew| skew.as_secs_f64());
        let clock = match skew {
            None => "the service's clock is unknown".to_owned(),
            Some(skew) => format!(
                "the service's clock is {:+.0} s from this machine's{}",
                // Adding zero turns -0 into 0.
                skew.as_secs_f64().round() + 0.0,
                if corrected { " (corrected for in the last attempt)" } else { "" }
            ),
        };
        let mut hint = format!(
            "The service does not report which check failed. Compare:\n\
             - kid {} must be the thumbprint of the enrolled key\n\
             - aud {} must be the token endpoint as the service knows it (audience=)\n\
             - sub {} must be the subject that enrollment returned\n\
             - {clock}\n\
             - the integration may not be approved yet",
            credential.kid(),
            credential.audience(token_url),
            credential.subject(),
        );
        let beyond = self.time.measured().is_some_and(|skew| !skew.is_correctable());
        let error = if corrected || beyond {
            if self.transport.base_url().is_loopback() {
                hint += "\n- if the service is a siteline.Sandbox, its clock is moved or frozen: \
                         set all variables of sandbox.env(), or pass clock=sandbox.clock";
            }
            let ours = self.time.clock().wall();
            let theirs = ours.checked_add(skew.unwrap_or_default()).unwrap_or(ours);
            error.into_kind(Kind::ClockSkewError).with(|context| {
                context.message = format!(
                    "{}; this machine's clock shows {ours:.0}, the service's {theirs:.0}",
                    context.message
                );
            })
        } else {
            error
        };
        error.with_hint(hint).with(|context| context.skew_seconds = seconds)
    }
}

/// `invalid_client`, or a 401 without a known code.
pub(super) fn is_invalid_client(error: &Error) -> bool {
    matches!(error.kind(), Kind::AuthenticationError | Kind::ClockSkewError)
}
