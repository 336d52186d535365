//! The requests of a run: which are sent, and what becomes of their replies.
//!
//! With [`SyncSettings::concurrency`](super::settings::SyncSettings::concurrency) above 1, so many pages
//! at most are asked for and not yet applied: what a kill can lose, and what is paid for again. A
//! chain has one request at a time (§4.4), and a feed one chain, so requests side by side are of
//! several feeds, or that for the next page of a chain while its last one is applied. Each is reserved
//! in the ledger before it is sent, which keeps the allowance and the reserve whatever is under way.
//! The pages are applied one at a time, each with the state of its feed; which value counts does not
//! depend on their order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};

use super::following::{Followed, Following, SentAt};
use super::pending_write::{PendingWrite, after_dead_cursor};
use super::plan::PlanStep;
use super::run::Run;
use crate::client::page_request::{Fetched, PageCall};
use crate::clock::{CORRECTED_SKEW, NOTICED_SKEW};
use crate::data::{Bookmark, Chain, DecodeSettings, Page, ends_chain};
use crate::error::{Error, Kind, Result};

impl Run {
    /// Sends requests up to the concurrency: of the chains that wait for nothing, then of new ones, then
    /// of those whose last page is not yet applied.
    ///
    /// # Errors
    /// Those of the allowance's ledger, and of a chain that cannot begin.
    pub(super) fn send_requests(&self, followed: &mut Followed) -> Result<()> {
        let is_stopped = self.work().stopped.is_some();
        let mut place = 0;
        while place < followed.chains.len() {
            let one = &followed.chains[place];
            if one.request.is_some() || self.work().writes(one.feed) {
                place += 1;
            } else if is_stopped || !self.work().may_ask(followed.requests()) {
                // The allowance is spent, or no other page may be asked for: the next run resumes it.
                self.close(followed, place);
            } else if self.has_room(followed) && !self.request(followed, place)? {
                // It has ended, and the next one has its place.
            } else {
                place += 1;
            }
        }
        while self.has_room(followed) {
            let Some(step) = self.next_step()? else { break };
            match self.open_chain(&step) {
                Ok(Some(chain)) => {
                    followed.chains.push(chain);
                    self.request(followed, followed.chains.len() - 1)?;
                }
                Ok(None) => self.work().chain_over(step.feed),
                Err(error) => {
                    self.work().chain_over(step.feed);
                    return Err(error);
                }
            }
        }
        for place in 0..followed.chains.len() {
            let is_idle = followed.chains[place].request.is_none();
            if !is_stopped && is_idle && self.has_room(followed) {
                // The page before is not yet applied: a chain that must end says so after that.
                let _later = self.send(&mut followed.chains[place], true);
            }
        }
        Ok(())
    }

    /// Whether another page may be asked for.
    fn has_room(&self, followed: &Followed) -> bool {
        let (under_way, work) = (followed.requests(), self.work());
        under_way + work.writing() < self.settings.concurrency.max(1) && work.may_ask(under_way)
    }

    /// Asks for the next page of a chain. False where the chain has ended, and is followed no longer.
    ///
    /// # Errors
    /// As [`Run::arrived`].
    fn request(&self, followed: &mut Followed, place: usize) -> Result<bool> {
        let one = &mut followed.chains[place];
        match self.send(one, self.settings.concurrency > 1) {
            Ok(()) if one.request.is_some() => return Ok(true),
            Ok(()) => {}
            Err(error) => self.end_chain(one, error)?,
        }
        self.close(followed, place);
        Ok(false)
    }

    /// Sends the request for the next page of a chain, as a task if other requests may run at the same time.
    ///
    /// # Errors
    /// Those of the chain, of which nothing was sent.
    fn send(&self, one: &mut Following, in_background: bool) -> Result<()> {
        let Some(wire) = one.chain.wire()? else { return Ok(()) };
        let clock = self.client.time().clock();
        let requests = one.spending.requests.load(Ordering::Relaxed);
        one.sent = SentAt { monotonic: clock.monotonic(), wall: clock.wall(), requests };
        let call = PageCall {
            client: self.client.clone(),
            spending: Arc::clone(&one.spending),
            deadline: self.deadline,
            wire,
            decoding: one.chain.decoding(),
            keep_raw: false,
        };
        one.request = Some(call.reply(in_background));
        Ok(())
    }

    /// Makes what has arrived for a chain the pending write, or ends the chain.
    ///
    /// # Errors
    /// Those that end the run: the chain can repeat its request.
    pub(super) fn arrived(
        &self,
        followed: &mut Followed,
        (place, fetched, read_at): (usize, Fetched, Timestamp),
    ) -> Result<()> {
        let one = &mut followed.chains[place];
        // The allowance may have refused the request.
        let was_sent = one.spending.requests.load(Ordering::Relaxed) > one.sent.requests;
        self.work().answered += u64::from(was_sent);
        let (is_over, outcome) = match one.chain.accept(fetched) {
            Ok(page) => {
                let is_last = page.is_last;
                let kept = self.keep_page(one, page, read_at);
                (is_last || kept.is_err(), kept)
            }
            Err(error) => {
                let ended = self.end_chain(one, error);
                (ended.is_ok(), ended)
            }
        };
        if is_over {
            self.close(followed, place);
        }
        outcome
    }

    /// Follows a chain no longer.
    pub(super) fn close(&self, followed: &mut Followed, place: usize) {
        let one = followed.chains.remove(place);
        self.work().chain_over(one.feed);
    }

    /// Plans for the same time, or for the service's time once a reply has shown another one.
    fn next_step(&self) -> Result<Option<PlanStep>> {
        let mut work = self.work();
        let (clock, mut now) = (self.client.now(), work.now);
        if self.settings.now.is_none() {
            let passed = self.client.time().clock().monotonic().saturating_sub(self.begun);
            let learnt = clock.checked_sub(passed).unwrap_or(clock);
            if learnt.duration_since(now).abs() > NOTICED_SKEW {
                now = learnt;
            }
        }
        work.set_times(clock, now);
        work.next(|| self.client.allowance())
    }

    /// The chain of a step, at its start or at its bookmark. `None` where that bookmark is refused:
    /// the pending write is then that the chain begins again.
    fn open_chain(&self, step: &PlanStep) -> Result<Option<Following>> {
        let mut work = self.work();
        let record = work.chain(step);
        let state = work.state(step.feed);
        let (start, end) = step.range.instants();
        let query = state.kept().query_of(step.range)?;
        self.client.listed().log_missing(&query);
        let settings = DecodeSettings::for_query(&query, self.settings.shape.clone(), Vec::new())?;
        let (settings, origin) = (Arc::new(settings), self.client.origin());
        let chain = match &record.bookmark {
            None => Ok(Chain::new(query, settings, &origin, None)),
            Some(text) => Bookmark::from_text(text)
                .and_then(|bookmark| Chain::resume(query, settings, &origin, None, &bookmark)),
        };
        let expected = state.density.pages(step.range.seconds());
        let chain = match chain {
            Ok(chain) => chain.starting_at(state.next_sequence).expecting(expected, record.idle),
            Err(error) => {
                let now = self.client.now();
                work.write(after_dead_cursor(step.feed, &record, error, now));
                return Ok(None);
            }
        };
        log::info!(
            target: "siteline::sync", feed = state.feed().name();
            "{}: {} {start} to {end}", state.feed().name(), step.why
        );
        let (feed, begun_here, request) = (step.feed, record.bookmark.is_none(), None);
        let (spending, sent) = (work.spending(feed), SentAt::default());
        Ok(Some(Following { chain, feed, record, begun_here, spending, sent, request }))
    }

    /// Makes the page the pending write.
    fn keep_page(&self, following: &mut Following, page: Page, read_at: Timestamp) -> Result<()> {
        self.check_skew()?;
        let record = &mut following.record;
        if record.began.is_none() {
            record.began = Some(self.service_second(following.sent));
            record.first = page.sequence;
        }
        record.pages += 1;
        record.points += page.rows() as u64;
        record.idle = following.chain.idle();
        record.bookmark = page.bookmark.as_ref().map(Bookmark::to_text);
        self.work().write(PendingWrite::Page {
            feed: following.feed,
            page: Box::new(page),
            read_at,
            chain: record.clone(),
            begun_here: following.begun_here,
        });
        Ok(())
    }

    /// Handles a failed request of a chain, which ends here. The error is returned where the chain can
    /// repeat the request.
    fn end_chain(&self, following: &Following, error: Error) -> Result<()> {
        let Following { feed, record, .. } = following;
        if record.pages > 0 && ends_chain(&error) {
            let now = self.client.now();
            self.work().write(after_dead_cursor(*feed, record, error, now));
            return Ok(());
        }
        match error.kind() {
            Kind::RequestRejected if self.may_be_too_long(following, &error) => {
                let range = record.range();
                self.work().write(PendingWrite::TooLong { feed: *feed, range });
            }
            Kind::AllowanceExhausted => {
                let allowance = self.client.allowance()?;
                self.work().refused(*feed, record, &allowance, error.context().retry_at);
            }
            // The next run resumes the chain where it stopped.
            Kind::RequestRejected | Kind::ProtocolError | Kind::BodyTooLarge => {
                self.work().skip(*feed, record.range(), error);
            }
            _ => return Err(error),
        }
        Ok(())
    }

    /// The longest range that a service answers is not documented (§8). A chain of several windows
    /// whose first page is rejected is tried again with fewer; with one window the error is final.
    fn may_be_too_long(&self, following: &Following, error: &Error) -> bool {
        let Following { feed, record, .. } = following;
        let window = self.work().state(*feed).feed().window();
        let refused = matches!(error.context().status, Some(400 | 413 | 422));
        refused && record.pages == 0 && record.range().seconds() > window
    }

    /// The service's time when a request was sent, as known after its reply, rounded towards the
    /// past.
    fn service_second(&self, sent: SentAt) -> i64 {
        let clock = self.client.time().clock();
        let by_monotonic = clock.monotonic().saturating_sub(sent.monotonic);
        let by_wall = clock.wall().duration_since(sent.wall);
        let elapsed = SignedDuration::try_from(by_monotonic).unwrap_or(SignedDuration::MAX);
        let time = self.client.time();
        // A skew too small to be corrected could still put a bucket's end into the service's future.
        // The header `Date` is exact to a second.
        let skew = time.skew().unwrap_or_default() + SignedDuration::from_secs(1);
        let by_date = clock.wall().checked_add(skew).unwrap_or(Timestamp::MAX);
        let now = self.client.now().min(by_date);
        now.checked_sub(elapsed.max(by_wall)).unwrap_or(Timestamp::MIN).as_second()
    }

    /// Refuses clocks that differ by days: what a read has covered would be unknown.
    fn check_skew(&self) -> Result<()> {
        let time = self.client.time();
        match time.skew() {
            Some(skew) if skew.abs() > CORRECTED_SKEW => {
                let ours = time.clock().wall();
                let theirs = ours.checked_add(skew).unwrap_or(ours);
                let message =
                    format!("this machine's clock is at {ours}, the service's at {theirs}");
                Err(Error::new(Kind::ClockSkewError, message)
                    .with_hint("Set this machine's clock. Nothing of this reply was kept.")
                    .with(|context| context.skew_seconds = Some(skew.as_secs_f64())))
            }
            _ => Ok(()),
        }
    }
}
