//! [`PageRequest`]: one page that was asked for. While a large page is decoded, the one after it is on
//! its way already: its cursor stands at an edge of most bodies, and is seen there. At most one page is
//! asked for so, and only for somebody who reads on to the end.
//!
//! Nothing is guessed: where the decoder takes a page, its cursor is the one that was seen. Where it
//! refuses the page, one request was spent whose reply nobody sees.
//!
//! A page is decoded by whoever wants it, within the call that brought its body, so that one that was
//! cut is asked for again.

use std::fmt;
use std::mem::{forget, replace, take};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::{Client, DATA_PATH, Spending};
use crate::data::{Chain, Cursor, Decoded, Page, State};
use crate::error::{Error, Kind, Result};
use crate::http::{Deadline, Reply};

/// A body of fewer bytes is decoded before the next request would have left.
const LARGE: usize = 128 * 1024;

/// A page's body, and what it says.
type Read = Result<(Bytes, Decoded)>;

/// A body as it came, and where to say what is wrong with it.
type Body = (Bytes, oneshot::Sender<Result<()>>);

/// Who asks, and when the pages are to be here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) client: &'a Client,
    pub(super) deadline: Deadline,
    pub(super) spending: &'a Arc<Spending>,
}

/// A page that was asked for. Dropped, it drops its connection; in a forked child, whose connection
/// it is not, it touches nothing.
pub struct PageRequest {
    /// What it was asked for with; `None` for a first page.
    cursor: Option<Cursor>,
    /// When it is to be here, as whoever asked for it wanted.
    deadline: Deadline,
    call: PageCall,
    bodies: mpsc::Receiver<Body>,
    process: u32,
}

/// The call that asks.
#[derive(Default)]
enum PageCall {
    /// Goes on while somebody waits.
    Waited(BoxFuture<'static, Result<()>>),
    /// Goes on by itself.
    Begun(oneshot::Receiver<Result<()>>, AbortHandle),
    /// Its page was taken.
    #[default]
    Over,
}

impl Asking<'_> {
    /// The next page of the chain; `None` after the last one. `early` holds it where it was asked for
    /// already, and afterwards the one that follows, where it was asked for meanwhile. Dropped half
    /// way, it drops both, and leaves the chain where it was.
    ///
    /// # Errors
    /// As [`Chain::next`].
    pub(super) async fn next(
        self,
        chain: &mut Chain,
        early: &mut Option<PageRequest>,
    ) -> Result<Option<Page>> {
        let clock = self.client.time().clock();
        let mut asked = early.take().filter(|request| request.is_next_of(chain));
        loop {
            let mut request = match asked.take() {
                Some(request) => request,
                None => match chain.wire()? {
                    Some(wire) => self.ask(wire, next_cursor(chain).cloned()),
                    None => return Ok(None),
                },
            };
            let is_own = request.deadline == self.deadline;
            let had_less_time = request.deadline.is_before(self.deadline);
            let mut following = None;
            let reading = self.read(&mut request, &mut following, chain);
            let read =
                if is_own { reading.await } else { self.deadline.bound(clock, reading).await };
            let is_over = self.deadline.left(clock) == Some(Duration::ZERO);
            let out_of_time = |error: &Error| error.kind() == Kind::DeadlineExceeded;
            if had_less_time && read.as_ref().is_err_and(out_of_time) && !is_over {
                // It is whoever asked for it that is out of time.
                continue;
            }
            let page = chain.take(read)?;
            *early = following.filter(|request| request.is_next_of(chain));
            return Ok(Some(page));
        }
    }

    /// Waits for a page and decodes it. Where it is large, the one that follows is asked for before.
    async fn read(
        self,
        request: &mut PageRequest,
        following: &mut Option<PageRequest>,
        chain: &Chain,
    ) -> Read {
        let decoding = chain.decoding();
        loop {
            let (body, verdict) = request.body().await?;
            if body.len() >= LARGE && following.is_none() {
                *following = self.ask_early(chain, decoding.cursor_at_an_edge(&body));
                if following.is_some() {
                    // A worker that decodes begins no task, and the one begun last is left to no
                    // other worker.
                    tokio::task::yield_now().await;
                }
            }
            match decoding.decode(&body) {
                Ok(decoded) => {
                    let _ = verdict.send(Ok(()));
                    request.finish().await;
                    return Ok((body, decoded));
                }
                // It is the call's to say whether it asks again.
                Err(error) => drop(verdict.send(Err(error))),
            }
        }
    }

    fn ask_early(self, chain: &Chain, cursor: Option<Cursor>) -> Option<PageRequest> {
        let cursor = cursor?;
        let wire = chain.wire_after_next(&cursor)?;
        self.ask(wire, Some(cursor)).begun(self.client)
    }

    /// Asks for a page: while somebody waits for it.
    fn ask(self, wire: String, cursor: Option<Cursor>) -> PageRequest {
        let (client, spending) = (self.client.clone(), Arc::clone(self.spending));
        let deadline = self.deadline;
        let (sender, bodies) = mpsc::channel(1);
        let call = PageCall::Waited(Box::pin(async move {
            let read = |reply: &Reply| judged(sender.clone(), reply.body.clone());
            client.get(DATA_PATH, &wire, deadline, &spending, read).await
        }));
        PageRequest { cursor, deadline, call, bodies, process: std::process::id() }
    }
}

fn next_cursor(chain: &Chain) -> Option<&Cursor> {
    match chain.state() {
        State::Next(cursor) => Some(cursor),
        State::Start | State::Done => None,
    }
}

/// Hands a body over to whoever wants the page, and hears what is wrong with it.
async fn judged(bodies: mpsc::Sender<Body>, body: Bytes) -> Result<()> {
    let (sender, verdict) = oneshot::channel();
    // Where nobody wants it any more, nothing is wrong.
    let _ = bodies.send((body, sender)).await;
    verdict.await.unwrap_or(Ok(()))
}

impl PageRequest {
    fn is_next_of(&self, chain: &Chain) -> bool {
        self.cursor.as_ref() == next_cursor(chain) && *chain.state() != State::Done
    }

    /// The same, going on by itself; `None` where no work is begun any more.
    fn begun(mut self, client: &Client) -> Option<Self> {
        self.call = match take(&mut self.call) {
            PageCall::Waited(call) => {
                let (sender, outcome) = oneshot::channel();
                let task = async move { drop(sender.send(call.await)) };
                let task = (client.settings().begin_task)(Box::pin(task))?;
                PageCall::Begun(outcome, task)
            }
            begun => begun,
        };
        Some(self)
    }

    /// Waits for its body: another one where the last was found to be wrong.
    ///
    /// # Errors
    /// That of the call.
    async fn body(&mut self) -> Result<Body> {
        let lost = || Error::new(Kind::Internal, "a request ended without an outcome");
        let ended = async {
            match &mut self.call {
                PageCall::Waited(call) => call.await,
                PageCall::Begun(outcome, _) => outcome.await.unwrap_or_else(|_| Err(lost())),
                PageCall::Over => Err(lost()),
            }
        };
        tokio::select! {
            biased;
            Some(body) = self.bodies.recv() => Ok(body),
            outcome = ended => outcome.and_then(|()| Err(lost())),
        }
    }

    /// After its page was taken: the call counts its success. Does not wait for anything.
    async fn finish(&mut self) {
        match take(&mut self.call) {
            // It has nothing more to say.
            PageCall::Waited(call) => drop(call.await),
            // It comes to its end by itself.
            PageCall::Begun(..) | PageCall::Over => {}
        }
    }
}

impl Drop for PageRequest {
    fn drop(&mut self) {
        let call = take(&mut self.call);
        if self.process != std::process::id() {
            // To drop a channel wakes who waits at its other end, on a runtime that is not here.
            forget((call, replace(&mut self.bodies, mpsc::channel(1).1)));
        } else if let PageCall::Begun(_, task) = call {
            task.abort();
        }
    }
}

impl fmt::Debug for PageRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageRequest({:?})", self.cursor)
    }
}
