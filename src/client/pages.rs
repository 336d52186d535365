//! [`Pages`]: one chain being followed (§4.4), page by page, by whoever asks.

use std::future::ready;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::page_request::{Asking, PageRequest};
use super::progress::{Meter, Progress};
use super::scan::{Provenance, ReadFailure};
use super::{Client, DATA_PATH, Spending};
use crate::data::{Bookmark, Chain, Fetch, Page};
use crate::error::{Error, Kind, Result};
use crate::http::{Deadline, Reply};

/// So many pages are taken before one is read ahead.
const READ_AHEAD_FROM: u64 = 2;

/// One chain being followed. Shared by whoever asks: each page is given once.
///
/// Reading and taking are two steps, so that a page which was read while the one who had asked for
/// it gave up is there for the next one. At most one page is held; [`Pages::read_ahead`] may bring
/// it before anybody asks.
#[derive(Debug)]
pub struct Pages {
    client: Client,
    /// When the read is to be over.
    deadline: Deadline,
    spending: Arc<Spending>,
    chain: tokio::sync::Mutex<Chain>,
    held: Mutex<Held>,
    provenance: Provenance,
    /// The process that follows the chain.
    process: u32,
}

#[derive(Debug)]
struct Held {
    page: Option<Page>,
    ended: bool,
    /// Pages that were taken, and how many had been when one was last begun ahead.
    taken: u64,
    ahead_of: u64,
    /// Whether what was begun then is still under way.
    is_ahead: bool,
    /// Why a page that was read ahead did not come, until it is asked for.
    failure: Option<ReadFailure>,
    meter: Meter,
    /// How far the newest page has brought the read, until somebody hears of it.
    news: Option<Progress>,
}

/// One page that is read ahead: after how many that were taken.
#[derive(Debug)]
pub struct Turn(u64);

impl Held {
    fn begins_ahead(&self) -> bool {
        let idle = self.page.is_none() && self.failure.is_none() && !self.ended && !self.is_ahead;
        idle && self.taken >= READ_AHEAD_FROM && self.ahead_of < self.taken
    }

    fn is_under_way(&self, turn: &Turn) -> bool {
        self.is_ahead && self.ahead_of == turn.0
    }
}

/// What [`Pages::take`] finds.
#[derive(Debug)]
pub enum Taken {
    /// The next page.
    Page(Box<Page>),
    /// The chain ended; there is no further page.
    Ended,
    /// Nothing has been read yet: [`Pages::fill`] first.
    Nothing,
}

impl Pages {
    pub(super) fn new(
        client: Client,
        deadline: Deadline,
        chain: Chain,
        provenance: Provenance,
    ) -> Self {
        let meter = Meter::new(&provenance.query);
        Self {
            client,
            deadline,
            spending: Arc::default(),
            chain: tokio::sync::Mutex::new(chain),
            held: Mutex::new(Held {
                page: None,
                ended: false,
                taken: 0,
                ahead_of: 0,
                is_ahead: false,
                failure: None,
                meter,
                news: None,
            }),
            provenance,
            process: std::process::id(),
        }
    }

    /// The next page, or `None` after the last.
    ///
    /// # Errors
    /// As [`Pages::fill`].
    pub async fn next(&self) -> Result<Option<Page>, ReadFailure> {
        loop {
            match self.take() {
                Taken::Page(page) => return Ok(Some(*page)),
                Taken::Ended => return Ok(None),
                Taken::Nothing => self.fill().await?,
            }
        }
    }

    /// As [`Pages::next`], to be over at another time than the read itself, for somebody who reads on
    /// to the end: while a large page is decoded, the next one is asked for, and left in `early`.
    pub(super) async fn next_early(
        &self,
        deadline: Deadline,
        early: &mut Option<PageRequest>,
    ) -> Result<Option<Page>, ReadFailure> {
        self.check_process()?;
        let mut chain = self.chain.lock().await;
        if let Some(page) = self.held().page.take() {
            return Ok(Some(page));
        }
        let asking = Asking { client: &self.client, deadline, spending: &self.spending };
        match asking.next(&mut chain, early).await {
            Ok(page) => {
                self.hold(page, None);
                Ok(self.held().page.take())
            }
            Err(error) => Err(ReadFailure { error, bookmark: chain.bookmark(), partial: None }),
        }
    }

    /// Reads the next page, unless one is held already or the chain has ended. Dropped half way, it
    /// leaves the chain where it was.
    ///
    /// # Errors
    /// [`ReadFailure`] with a bookmark; the chain stays where it was. `ForkError` in a forked child:
    /// the chain belongs to the parent.
    pub async fn fill(&self) -> Result<(), ReadFailure> {
        self.check_process()?;
        let mut chain = self.chain.lock().await;
        {
            let mut held = self.held();
            if let Some(failure) = held.failure.take() {
                return Err(failure);
            }
            if held.page.is_some() || held.ended {
                return Ok(());
            }
        }
        let page = self.next_page(&mut chain).await?;
        self.hold(page, None);
        Ok(())
    }

    /// Whether [`Pages::begin_ahead`] would begin.
    pub fn begins_ahead(&self) -> bool {
        self.held().begins_ahead()
    }

    /// Begins [`Pages::read_ahead`] where it is to be begun: once after each page that was taken, but
    /// not after the first, so that a look at it costs one request and no more; not after the last;
    /// and never a second one while one is under way.
    pub fn begin_ahead(&self) -> Option<Turn> {
        let held = &mut *self.held();
        held.begins_ahead().then(|| {
            held.ahead_of = held.taken;
            held.is_ahead = true;
            Turn(held.ahead_of)
        })
    }

    /// Reads the next page before anybody asks for it, where none is held. A failure is kept for
    /// whoever asks. Dropped half way, it leaves the chain where it was.
    pub async fn read_ahead(&self, turn: Turn) {
        if self.check_process().is_err() {
            return;
        }
        let mut chain = self.chain.lock().await;
        {
            let held = &mut *self.held();
            if !held.is_under_way(&turn) {
                return;
            }
            if held.page.is_some() || held.failure.is_some() || held.ended {
                held.is_ahead = false;
                return;
            }
        }
        let read = self.next_page(&mut chain).await;
        // While the chain is still locked: whoever waits for it must not ask a second time.
        match read {
            Ok(page) => self.hold(page, Some(&turn)),
            Err(failure) => {
                let held = &mut *self.held();
                held.is_ahead &= !held.is_under_way(&turn);
                held.failure = Some(failure);
            }
        }
    }

    /// What was begun ahead is dropped: it counts as under way no more.
    pub fn give_up_ahead(&self) {
        self.held().is_ahead = false;
    }

    async fn next_page(&self, chain: &mut Chain) -> Result<Option<Page>, ReadFailure> {
        let sender =
            Sender { client: &self.client, deadline: self.deadline, spending: &self.spending };
        let read = chain.next(&sender).await;
        read.map_err(|error| ReadFailure { error, bookmark: chain.bookmark(), partial: None })
    }

    fn hold(&self, page: Option<Page>, turn: Option<&Turn>) {
        let requests = self.spending.requests.load(Ordering::Relaxed);
        // A page that is here and paid for is not lost to a ledger that fails now.
        let allowance_left = self.client.allowance().ok().and_then(|state| state.left);
        let held = &mut *self.held();
        if turn.is_some_and(|turn| held.is_under_way(turn)) {
            held.is_ahead = false;
        }
        held.ended = page.as_ref().is_none_or(|page| page.is_last);
        if let Some(page) = &page {
            let progress = held.meter.count(page, requests, allowance_left);
            if page.is_last && self.provenance.resumed_after_pages == 0 {
                let (pages, points) = (progress.pages, progress.points);
                self.client.learn(&self.provenance.query, pages, points, page.rows() as u64);
            }
            held.news = Some(progress);
        }
        held.page = page;
    }

    /// Whether a page is here that nobody heard of yet. Never in a forked child.
    pub fn has_news(&self) -> bool {
        self.check_process().is_ok() && self.held().news.is_some()
    }

    /// How far the newest page has brought the read: once for each page, whoever asks first. Never in
    /// a forked child, which gets no page.
    pub fn news(&self) -> Option<Progress> {
        self.check_process().ok()?;
        self.held().news.take()
    }

    /// Takes what [`Pages::fill`] has read. Does not wait.
    pub fn take(&self) -> Taken {
        self.take_once(|_| true)
    }

    /// As [`Pages::take`], where the [`Pages::news`] of each page are to be heard before it is given:
    /// a page that came just now, read ahead, is `Nothing` until then.
    pub fn take_heard(&self) -> Taken {
        self.take_once(|held| held.news.is_none())
    }

    fn take_once(&self, may: impl FnOnce(&Held) -> bool) -> Taken {
        if self.check_process().is_err() {
            return Taken::Nothing;
        }
        let mut held = self.held();
        if !may(&held) {
            return Taken::Nothing;
        }
        match held.page.take() {
            Some(page) => {
                held.taken += 1;
                Taken::Page(Box::new(page))
            }
            None if held.ended => Taken::Ended,
            None => Taken::Nothing,
        }
    }

    /// Whether this process follows the chain: two that did would ask for the same pages.
    ///
    /// # Errors
    /// `ForkError` in a forked child.
    pub fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let message = "this iterator was begun by the parent, before the process forked";
        let hint = "begin a new one in the child: scan.pages(), scan.records()";
        Err(Error::new(Kind::Fork, message).with_hint(hint))
    }

    /// Where the chain goes on. `None` before the first page and after the last one, and while a page
    /// is being read.
    pub(super) fn bookmark(&self) -> Option<Bookmark> {
        self.chain.try_lock().ok()?.bookmark()
    }

    /// Whether the last page was read. Not known while one is being read.
    pub(super) fn is_done(&self) -> bool {
        self.chain.try_lock().is_ok_and(|chain| chain.is_done())
    }

    /// Where the pages come from.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Pages {
    /// What a fork leaves: the same chain in another process.
    pub(super) fn inherit(&mut self) {
        self.process = 0;
    }
}

/// Sends the requests of one read, all within its deadline.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// Who sends them.
    pub client: &'a Client,
    /// When the read is to be over.
    pub deadline: Deadline,
    /// What the read spends.
    pub spending: &'a Spending,
}

impl Fetch for Sender<'_> {
    async fn fetch<T: Send>(
        &self,
        wire_query: &str,
        read: impl Fn(&Bytes) -> Result<T> + Send + Sync,
    ) -> Result<T> {
        let read = |reply: &Reply| ready(read(&reply.body));
        self.client.get(DATA_PATH, wire_query, self.deadline, self.spending, read).await
    }
}
