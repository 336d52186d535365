//! The requests of a run: which are sent, and what becomes of their replies.
//!
//! With [`SyncSettings::concurrency`](super::settings::SyncSettings::concurrency) above 1, so many pages
//! at most are asked for and not yet applied: what a kill can lose, and what is paid for again. A
//! chain has one request at a time (§4.4), and a feed one chain, so requests side by side are of
//! several feeds, or that for the next page of a chain while its last one is applied. Each is reserved
//! in the ledger before it is sent, which keeps the allowance and the reserve whatever is under way.
//! The pages are applied one at a time, each with the state of its feed; which value counts does not
//! depend on their order.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use futures_util::FutureExt as _;
use jiff::{SignedDuration, Timestamp};

use super::pending_write::{PendingWrite, after_dead_cursor};
use super::plan::PlanStep;
use super::run::Run;
use super::under_way::{OpenChain, SentAt, UnderWay};
use super::unfinished::UnfinishedChain;
use crate::client::page_request::{Fetched, PageCall};
use crate::clock::{CORRECTED_SKEW, NOTICED_SKEW};
use crate::data::{Bookmark, Chain, DecodeSettings, Page, ends_chain};
use crate::error::{Error, Kind, Result};

impl Run {
    /// Sends requests up to the concurrency: of the chains that wait for nothing, then of new ones, then
    /// of those whose last page is not yet applied. An error ends the run.
    pub(super) fn send_requests(&self) -> Result<()> {
        let most = self.settings.concurrency;
        let is_stopped = self.work().stopped.is_some();
        let feeds = self.work().feeds_under_way();
        for feed in feeds {
            let (is_over, has_room) = {
                let work = self.work();
                if work.is_asked(feed) || work.writes(feed) {
                    continue;
                }
                (is_stopped || !work.may_ask(work.asked()), work.has_room(most))
            };
            if is_over {
                // The allowance is spent, or no other page may be asked for: the next run resumes it.
                self.close(feed);
            } else if has_room {
                self.request(feed)?;
            }
        }
        while self.work().has_room(most) {
            let Some(step) = self.next_step()? else { break };
            match self.open_chain(&step) {
                Ok(true) => self.request(step.feed)?,
                not_opened => {
                    self.close(step.feed);
                    not_opened?;
                }
            }
        }
        let feeds = self.work().feeds_under_way();
        for feed in feeds {
            let may_ask = {
                let work = self.work();
                !is_stopped && !work.is_asked(feed) && work.has_room(most)
            };
            if may_ask {
                // The page before is not yet applied: a chain that must end says so after that.
                let _later = self.send(feed, true);
            }
        }
        Ok(())
    }

    /// Asks for the next page of a chain. A chain that has ended is closed.
    fn request(&self, feed: usize) -> Result<()> {
        match self.send(feed, self.settings.concurrency > 1) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => self.end_chain(feed, error)?,
        }
        self.close(feed);
        Ok(())
    }

    /// Sends the request for the next page of a chain, as a task if other requests may run at the same time.
    /// False if the chain has no other page.
    fn send(&self, feed: usize, in_background: bool) -> Result<bool> {
        let call = {
            let mut work = self.work();
            let Some(UnderWay { spending, open: Some(open), sent, .. }) =
                work.under_way.get_mut(&feed)
            else {
                return Ok(false);
            };
            let Some(wire) = open.chain.wire()? else { return Ok(false) };
            let clock = self.client.time().clock();
            let requests = spending.requests.load(Ordering::Relaxed);
            *sent = SentAt { monotonic: clock.monotonic(), wall: clock.wall(), requests };
            PageCall {
                client: self.client.clone(),
                spending: Arc::clone(spending),
                deadline: self.deadline,
                wire,
                size: open.chain.size().clone(),
                decoding: open.chain.decoding(),
                keep_raw: false,
            }
        };
        let reply = call.reply(in_background);
        self.work().put_back([(feed, reply)]);
        Ok(true)
    }

    /// Waits for the next page of any chain. If several have arrived, that of the first feed comes first. A
    /// cancelled wait drops the requests, and with them their connections. The chains can ask again.
    pub(super) async fn arrival(&self) -> (usize, Fetched, Timestamp) {
        let mut requests = self.work().take_requests();
        let (place, (fetched, read_at)) = poll_fn(|context| {
            for (place, (_, request)) in requests.iter_mut().enumerate() {
                if let Poll::Ready(arrived) = request.poll_unpin(context) {
                    return Poll::Ready((place, arrived));
                }
            }
            Poll::Pending
        })
        .await;
        let (feed, _) = requests.remove(place);
        self.work().put_back(requests);
        (feed, fetched, read_at)
    }

    /// Makes what has arrived for a chain the pending write, or ends the chain. An error ends the run: the
    /// chain can repeat its request.
    pub(super) fn arrived(&self, feed: usize, fetched: Fetched, read_at: Timestamp) -> Result<()> {
        let accepted = {
            let mut work = self.work();
            let Some(UnderWay { spending, open: Some(open), sent, .. }) =
                work.under_way.get_mut(&feed)
            else {
                return Ok(());
            };
            // The allowance may have refused the request.
            let was_sent = spending.requests.load(Ordering::Relaxed) > sent.requests;
            let accepted = open.chain.accept(fetched);
            work.answered += u64::from(was_sent);
            accepted
        };
        let (is_over, outcome) = match accepted {
            Ok(page) => {
                let is_last = page.is_last;
                let kept = self.keep_page(feed, page, read_at);
                (is_last || kept.is_err(), kept)
            }
            Err(error) => {
                let ended = self.end_chain(feed, error);
                (ended.is_ok(), ended)
            }
        };
        if is_over {
            self.close(feed);
        }
        outcome
    }

    /// Follows a chain no longer. Its request is dropped after the lock, because that may start a task.
    pub(super) fn close(&self, feed: usize) {
        let _over = self.work().chain_over(feed);
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

    /// Opens the chain of a step, at its start or at its bookmark. False if that bookmark is refused: the
    /// pending write is then that the chain begins again.
    fn open_chain(&self, step: &PlanStep) -> Result<bool> {
        let mut work = self.work();
        let record = work.chain(step);
        let state = work.state(step.feed);
        let (start, end) = step.range.instants();
        let query = state.kept().query_of(step.range)?;
        if self.settings.only.is_none() {
            // A read through a store warns.
            self.client.listed().log_missing(&query);
        }
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
                return Ok(false);
            }
        };
        log::info!(
            target: "siteline::sync", feed = state.feed().name();
            "{}: {} {start} to {end}", state.feed().name(), step.why
        );
        let begun_here = record.bookmark.is_none();
        if let Some(one) = work.under_way.get_mut(&step.feed) {
            one.open = Some(OpenChain { chain, record, begun_here });
        }
        Ok(true)
    }

    /// Makes the page the pending write.
    fn keep_page(&self, feed: usize, page: Page, read_at: Timestamp) -> Result<()> {
        self.check_skew()?;
        let mut work = self.work();
        let Some(UnderWay { open: Some(open), sent, .. }) = work.under_way.get_mut(&feed) else {
            return Ok(());
        };
        let record = &mut open.record;
        if record.began.is_none() {
            record.began = Some(self.service_second(*sent));
            record.first = page.sequence;
        }
        record.pages += 1;
        record.points += page.rows() as u64;
        record.idle = open.chain.idle();
        record.bookmark = page.bookmark.as_ref().map(Bookmark::to_text);
        let (chain, begun_here) = (record.clone(), open.begun_here);
        work.write(PendingWrite::Page { feed, page: Arc::new(page), read_at, chain, begun_here });
        Ok(())
    }

    /// Handles a failed request of a chain, which ends here. The error is returned where the chain can
    /// repeat the request.
    fn end_chain(&self, feed: usize, error: Error) -> Result<()> {
        let open = |one: &UnderWay| one.open.as_ref().map(|open| open.record.clone());
        let Some(record) = self.work().under_way.get(&feed).and_then(open) else { return Ok(()) };
        if record.pages > 0 && ends_chain(&error) {
            let now = self.client.now();
            self.work().write(after_dead_cursor(feed, &record, error, now));
            return Ok(());
        }
        let range = record.range();
        match error.kind() {
            Kind::RequestRejected if self.may_be_too_long(feed, &record, &error) => {
                self.work().write(PendingWrite::TooLong { feed, range });
            }
            Kind::AllowanceExhausted => {
                let allowance = self.client.allowance()?;
                self.work().refused(feed, &record, &allowance, error.context().retry_at);
            }
            // The next run resumes the chain where it stopped.
            Kind::RequestRejected | Kind::ProtocolError | Kind::BodyTooLarge => {
                self.work().skip(feed, range, error);
            }
            _ => return Err(error),
        }
        Ok(())
    }

    /// The longest range that a service answers is not documented (§8). A chain of several windows
    /// whose first page is rejected is tried again with fewer; with one window the error is final.
    fn may_be_too_long(&self, feed: usize, record: &UnfinishedChain, error: &Error) -> bool {
        let window = self.work().state(feed).feed().window();
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
