//! The requests of a run, and how it handles their replies.
//!
//! Up to [`SyncSettings::concurrency`](super::settings::SyncSettings::concurrency) pages can be
//! requested and not yet applied. A killed process loses these pages and pays for them again. A
//! chain has one request at a time, and a feed has one chain. Concurrent requests therefore belong
//! to several feeds, or one requests the next page of a chain while the last page is being applied.
//! Each request is reserved in the ledger before it is sent. Pages are applied one at a time, each
//! with the state of its feed. Their order does not decide which value wins.

use std::sync::Arc;

use futures_util::future::select_all;
use jiff::{SignedDuration, Timestamp};

use super::pending_write::{Change, after_dead_cursor};
use super::plan::PlanStep;
use super::run::Run;
use super::state::FeedState;
use super::under_way::SentAt;
use super::unfinished::UnfinishedChain;
use crate::client::page_request::{Fetched, PageCall};
use crate::clock::{CORRECTED_SKEW, NOTICED_SKEW};
use crate::data::{Bookmark, Chain, DecodeSettings, Page, ends_chain};
use crate::error::{Error, Kind, Result};

impl Run {
    /// Sends requests up to the concurrency: first for chains that wait for nothing, then for new
    /// chains, then for chains with an unapplied last page. An error ends the run.
    pub(super) fn send_requests(&self) -> Result<()> {
        let most = self.settings.concurrency;
        let (is_stopped, feeds) = {
            let work = self.work();
            (work.stopped.is_some(), work.feeds_under_way())
        };
        for feed in feeds {
            let (is_over, has_room) = {
                let work = self.work();
                if work.is_asked(feed) || work.writes(feed) {
                    continue;
                }
                (is_stopped || !work.may_ask(work.asked()), work.has_room(most))
            };
            if is_over {
                // The next run resumes the chain.
                self.close(feed);
            } else if has_room {
                self.request(feed)?;
            }
        }
        while self.work().has_room(most) {
            let Some(feed) = self.begin_chain()? else { break };
            self.request(feed)?;
        }
        let feeds = self.work().feeds_under_way();
        for feed in feeds {
            let may_ask = {
                let work = self.work();
                !is_stopped && !work.is_asked(feed) && work.has_room(most)
            };
            if may_ask {
                // The last page is not applied yet. An error of the chain returns after it.
                let _later = self.send(feed, true);
            }
        }
        Ok(())
    }

    fn request(&self, feed: usize) -> Result<()> {
        match self.send(feed, self.settings.concurrency > 1) {
            Ok(true) => {}
            Ok(false) => self.close(feed),
            Err(error) => self.end_chain(feed, error)?,
        }
        Ok(())
    }

    /// Sends the request for the next page of a chain, as a task if other requests may run at the
    /// same time. Returns false if the chain has no other page.
    fn send(&self, feed: usize, in_background: bool) -> Result<bool> {
        let call = {
            let mut work = self.work();
            let Some(one) = work.under_way.get_mut(&feed) else { return Ok(false) };
            let Some(wire) = one.chain.wire()? else { return Ok(false) };
            one.note_time(self.client.time().clock());
            PageCall::new(&self.client, &one.spending, &one.chain, wire, self.deadline)
        };
        let reply = call.reply(in_background);
        self.work().put_back([(feed, reply)]);
        Ok(true)
    }

    /// Waits for the next page of any chain, in the order of the feeds. A cancelled wait drops the
    /// requests. The chains can request again.
    pub(super) async fn arrival(&self) -> (usize, Fetched, Timestamp) {
        let (mut feeds, requests): (Vec<_>, Vec<_>) =
            self.work().take_requests().into_iter().unzip();
        let ((fetched, read_at), place, others) = select_all(requests).await;
        // `select_all` removes the request in the same way.
        let feed = feeds.swap_remove(place);
        self.work().put_back(feeds.into_iter().zip(others));
        (feed, fetched, read_at)
    }

    /// Adds the page that arrived for a chain to the pending writes, or ends the chain. An error
    /// ends the run; the chain can repeat its request.
    pub(super) fn arrived(&self, feed: usize, fetched: Fetched, read_at: Timestamp) -> Result<()> {
        let accepted = {
            let mut work = self.work();
            let Some(one) = work.under_way.get_mut(&feed) else { return Ok(()) };
            // The allowance may have rejected the request.
            let was_sent = one.requests() > one.sent.requests;
            let accepted = one.chain.accept(fetched);
            work.answered += u64::from(was_sent);
            accepted
        };
        let page = match accepted {
            Ok(page) => page,
            Err(error) => return self.end_chain(feed, error),
        };
        let is_last = page.is_last;
        let kept = self.keep_page(feed, page, read_at);
        if is_last || kept.is_err() {
            self.close(feed);
        }
        kept
    }

    /// Drops the request without the lock, because that may start a task.
    pub(super) fn close(&self, feed: usize) {
        let _over = self.work().chain_over(feed);
    }

    /// Begins the next chain and returns its feed. If its bookmark is rejected, a pending write
    /// restarts the chain.
    fn begin_chain(&self) -> Result<Option<usize>> {
        let mut work = self.work();
        let clock = self.client.now();
        let now = self.planning_time(clock, work.now);
        work.set_times(clock, now);
        while let Some(step) = work.next(|| self.client.allowance())? {
            let record = work.chain(&step);
            match self.open_chain(&step, work.state(step.feed), &record)? {
                Ok(chain) => {
                    work.begin(step, chain, record);
                    return Ok(Some(step.feed));
                }
                Err(error) => {
                    let dead = after_dead_cursor(step.feed, record, error, clock);
                    work.pending.push_back(dead);
                }
            }
        }
        Ok(None)
    }

    /// The same time as before, or the service's time if a reply shows a different clock. After days
    /// without a reply, the known time is behind by the possible drift of the machine's clock. If
    /// that clock was right, the newest range is not read again for it.
    fn planning_time(&self, clock: Timestamp, now: Timestamp) -> Timestamp {
        let time = self.client.time();
        let passed = time.clock().monotonic().saturating_sub(self.begun);
        let learnt = clock.checked_sub(passed).unwrap_or(clock);
        let is_wrong = time.skew().is_some_and(|skew| skew.abs() > NOTICED_SKEW);
        let is_other = learnt.duration_since(now).abs() > NOTICED_SKEW;
        let follows = is_other && (is_wrong || learnt < now);
        if follows && self.settings.now.is_none() { learnt } else { now }
    }

    /// The chain of a step, at its start or at its bookmark. The inner error is that of a rejected
    /// bookmark.
    fn open_chain(
        &self,
        step: &PlanStep,
        state: &FeedState,
        record: &UnfinishedChain,
    ) -> Result<Result<Chain>> {
        let query = state.kept().query_of(step.range)?;
        if self.settings.only.is_none() {
            // A read through a store raises this warning itself.
            self.client.listed().log_missing(&query);
        }
        let settings = DecodeSettings::for_query(&query, self.settings.shape.clone(), Vec::new())?;
        let chain = Chain::new(query, Arc::new(settings), &self.client.origin(), None);
        let resumed = match &record.bookmark {
            None => Ok(chain),
            Some(text) => Bookmark::from_text(text).and_then(|bookmark| chain.resumed(&bookmark)),
        };
        Ok(resumed.map(|chain| {
            let (name, (start, end)) = (state.feed().name(), step.range.instants());
            log::info!(
                target: "siteline::sync", feed = name; "{name}: {} {start} to {end}", step.why
            );
            let expected = state.density.pages(step.range.seconds());
            chain.starting_at(state.next_sequence).expecting(expected, record.idle)
        }))
    }

    fn keep_page(&self, feed: usize, page: Page, read_at: Timestamp) -> Result<()> {
        self.check_skew()?;
        let mut work = self.work();
        let Some(one) = work.under_way.get_mut(&feed) else { return Ok(()) };
        let record = &mut one.record;
        if record.began.is_none() {
            record.began = Some(self.service_second(one.sent));
            record.first = page.sequence;
        }
        record.pages += 1;
        record.points += page.rows() as u64;
        record.idle = one.chain.idle();
        record.bookmark = page.bookmark.as_ref().map(Bookmark::to_text);
        let (chain, begun_here, page) = (record.clone(), one.begun_here, Arc::new(page));
        work.write(feed, chain, Change::Page { page, read_at, begun_here });
        Ok(())
    }

    /// Returns the error if the chain can repeat the request.
    fn end_chain(&self, feed: usize, error: Error) -> Result<()> {
        let mut work = self.work();
        let Some(one) = work.under_way.get(&feed) else { return Ok(()) };
        let record = one.record.clone();
        let window = work.state(feed).feed().window();
        match error.kind() {
            _ if record.pages > 0 && ends_chain(&error) => {
                let dead = after_dead_cursor(feed, record, error, self.client.now());
                work.pending.push_back(dead);
            }
            Kind::RequestRejected if may_be_too_long(&record, window, &error) => {
                work.write(feed, record, Change::TooLong);
            }
            Kind::AllowanceExhausted => {
                let allowance = self.client.allowance()?;
                work.refused(feed, &record, &allowance, error.context().retry_at);
            }
            // The next run resumes the chain at this page.
            Kind::RequestRejected | Kind::ProtocolError | Kind::BodyTooLarge => {
                work.skip(feed, record.range, error);
            }
            _ => return Err(error),
        }
        drop(work);
        self.close(feed);
        Ok(())
    }

    /// The service's time when a request was sent, as known after its reply, rounded down.
    fn service_second(&self, sent: SentAt) -> i64 {
        let clock = self.client.time().clock();
        let by_monotonic = clock.monotonic().saturating_sub(sent.monotonic);
        let by_wall = clock.wall().duration_since(sent.wall);
        let elapsed = SignedDuration::try_from(by_monotonic).unwrap_or(SignedDuration::MAX);
        let time = self.client.time();
        // A skew below the correction limit can still put the end of a bucket into the service's
        // future. The `Date` header is exact to one second.
        let skew = time.skew().unwrap_or_default() + SignedDuration::from_secs(1);
        let by_date = clock.wall().checked_add(skew).unwrap_or(Timestamp::MAX);
        let now = self.client.now().min(by_date);
        now.checked_sub(elapsed.max(by_wall)).unwrap_or(Timestamp::MIN).as_second()
    }

    /// Rejects clocks that differ by days, because the covered range would be unknown.
    fn check_skew(&self) -> Result<()> {
        let time = self.client.time();
        match time.skew() {
            Some(skew) if skew.abs() > CORRECTED_SKEW => {
                let ours = time.clock().wall();
                let theirs = ours.checked_add(skew).unwrap_or(ours);
                let message =
                    format!("this machine's clock shows {ours}, the service's clock {theirs}");
                Err(Error::new(Kind::ClockSkewError, message)
                    .with_hint("The reply was discarded. Set this machine's clock.")
                    .with(|context| context.skew_seconds = Some(skew.as_secs_f64())))
            }
            _ => Ok(()),
        }
    }
}

/// The service's longest range is not documented. A chain of several windows is retried with fewer
/// windows if its first page is rejected. With one window the error is final.
fn may_be_too_long(chain: &UnfinishedChain, window: i64, error: &Error) -> bool {
    let refused = matches!(error.context().status, Some(400 | 413 | 422));
    refused && chain.pages == 0 && chain.range.seconds() > window
}
