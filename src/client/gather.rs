//! [`Gathering`]: several scans of one client read side by side, under its one token, allowance and
//! connection pool. A chain is sequential by the service's rule (§4.4); several chains are not.

use std::collections::HashSet;
use std::mem::take;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::Client;
use super::progress::Progress;
use super::scan::{ReadFailure, Step, Table};
use super::whole::{SoFar, Whole};
use crate::data::Bookmark;
use crate::error::{Error, Kind, Result};
use crate::http::Deadline;

/// So many scans are read at a time, unless another number is asked for.
pub const CONCURRENCY: usize = 8;

/// Which scan took a step, when its read is to be over, and what came of it: `None` where it was
/// ended half way.
type Stepped = (usize, Deadline, Option<Result<Step<Arc<Table>>, ReadFailure>>);

/// Scans that are being read side by side. Each step is a task of its own: it goes on while whoever
/// gathers is at something else, and waits for a scan or a token itself. Dropped, it ends them and
/// their open requests; what they have read stays with each [`Whole`], and goes on there when it is
/// asked for again.
pub struct Gathering {
    wholes: Vec<Arc<Whole>>,
    concurrency: usize,
    /// How many have been begun.
    begun: usize,
    tables: Vec<Option<Arc<Table>>>,
    under_way: FuturesUnordered<BoxFuture<'static, Stepped>>,
    /// The last task of each scan.
    tasks: Vec<Option<AbortHandle>>,
    /// The process whose connections it reads on.
    process: u32,
}

/// The first error of a gathering: it has cancelled all other reads.
#[derive(Debug)]
pub struct GatherFailure {
    /// Which scan failed, from 0.
    pub index: usize,
    /// Why.
    pub error: Error,
    /// How far each scan has come, in the order asked.
    pub scans: Vec<SoFar>,
}

impl GatherFailure {
    /// Where the scan that failed goes on.
    #[must_use]
    pub fn bookmark(&self) -> Option<&Bookmark> {
        self.scans.get(self.index)?.bookmark.as_ref()
    }
}

impl Gathering {
    /// Begins to read these scans of `client`, at most so many at a time, in this order. Nothing is
    /// sent yet.
    ///
    /// # Errors
    /// `QueryError` for no scan, one that comes twice, and one of another client.
    pub fn new(client: &Client, wholes: Vec<Arc<Whole>>, concurrency: usize) -> Result<Self> {
        let refused = |message: String| Err(Error::new(Kind::Query, message));
        if wholes.is_empty() {
            return refused("scans= is empty: there is nothing to gather".to_owned());
        }
        let mut known = HashSet::new();
        for (index, whole) in wholes.iter().enumerate() {
            if !whole.scan().client().is_same(client) {
                return refused(format!(
                    "scans[{index}] is of another client: each client gathers its own, for they \
                     share its token, allowance and connections"
                ));
            }
            if !known.insert(Arc::as_ptr(whole)) {
                let first = wholes.iter().position(|other| Arc::ptr_eq(other, whole));
                return refused(format!(
                    "scans[{index}] is the same scan as scans[{}]: it is read once",
                    first.unwrap_or_default()
                ));
            }
        }
        Ok(Self {
            tables: vec![None; wholes.len()],
            tasks: vec![None; wholes.len()],
            wholes,
            concurrency: concurrency.max(1),
            begun: 0,
            under_way: FuturesUnordered::new(),
            process: std::process::id(),
        })
    }

    /// Reads until one more page is here, of whichever scan, or all scans are at their ends: `None`.
    /// The deadline of each counts from when it is begun here.
    ///
    /// # Errors
    /// [`GatherFailure`] with the first error; all reads have been cancelled then. `ForkError` in a
    /// forked child: the reads belong to the parent.
    pub async fn step(&mut self) -> Result<Option<(usize, Progress)>, GatherFailure> {
        self.check_process()?;
        loop {
            while self.under_way.len() < self.concurrency && self.begun < self.wholes.len() {
                let deadline = self.wholes[self.begun].scan().deadline();
                self.follow(self.begun, deadline);
                self.begun += 1;
            }
            let Some((index, deadline, step)) = self.under_way.next().await else {
                return Ok(None);
            };
            let failure = match step {
                Some(Ok(Step::Page(progress))) => {
                    self.follow(index, deadline);
                    return Ok(Some((index, progress)));
                }
                Some(Ok(Step::Whole(table))) => {
                    self.tables[index] = Some(table);
                    continue;
                }
                Some(Err(failure)) => failure,
                None => Error::new(Kind::Internal, "a read ended without an outcome").into(),
            };
            return Err(self.failed(index, failure).await);
        }
    }

    /// Reads all scans to their ends: their tables, in the order asked.
    ///
    /// # Errors
    /// As [`Gathering::step`].
    pub async fn finish(mut self) -> Result<Vec<Arc<Table>>, GatherFailure> {
        while self.step().await?.is_some() {}
        Ok(self.tables())
    }

    /// The tables in the order asked, once [`Gathering::step`] has given `None`.
    #[must_use]
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.tables.iter().flatten().cloned().collect()
    }

    /// Whether this process reads them.
    fn check_process(&self) -> Result<(), GatherFailure> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let message = "these scans are being gathered by the parent, since before the fork";
        let hint = "gather them again in the child: client.gather(scans)";
        let error = Error::new(Kind::Fork, message).with_hint(hint);
        Err(GatherFailure { index: 0, error, scans: vec![SoFar::default(); self.wholes.len()] })
    }

    /// Ends all steps that are under way.
    fn end(&self) {
        for task in self.tasks.iter().flatten() {
            task.abort();
        }
    }

    /// Drops what was asked for early.
    fn rest(&self) {
        for whole in &self.wholes {
            drop(whole.rest());
        }
    }

    fn follow(&mut self, index: usize, deadline: Deadline) {
        let (whole, stepping) = (Arc::clone(&self.wholes[index]), Arc::clone(&self.wholes[index]));
        let (sender, outcome) = oneshot::channel();
        let task = async move {
            let step = stepping.step(deadline).await;
            if sender.send(step).is_err() {
                // Nobody hears of it, nor takes what it has asked for early.
                drop(stepping.rest());
            }
        };
        let begin_task = whole.scan().client().settings().begin_task;
        let task = begin_task(Box::pin(task));
        let is_begun = task.is_some();
        self.tasks[index] = task;
        self.under_way.push(Box::pin(async move {
            let step = if is_begun {
                outcome.await.ok()
            } else {
                // No task is begun any more.
                Some(whole.step(deadline).await)
            };
            (index, deadline, step)
        }));
    }

    /// Cancels the others, and says how far all have come. Where the allowance is used up, the pages
    /// that were asked for are waited for: they are paid, and nothing more is.
    async fn failed(&mut self, index: usize, failure: ReadFailure) -> GatherFailure {
        let error = failure.error.clone();
        let mut failures = vec![(index, failure)];
        let takes_what_is_paid = error.kind() == Kind::AllowanceExhausted;
        if !takes_what_is_paid {
            self.end();
            if self.tasks[..self.begun].iter().any(Option::is_none) {
                self.under_way.clear();
            }
        }
        while let Some((other, deadline, step)) = self.under_way.next().await {
            match step {
                // The page after it is paid for already.
                Some(Ok(Step::Page(_))) if takes_what_is_paid && self.wholes[other].is_ahead() => {
                    self.follow(other, deadline);
                }
                Some(Err(failure)) => failures.push((other, failure)),
                Some(Ok(_)) | None => {}
            }
        }
        self.rest();
        // What can't be merged is not lost: it stays with its scan.
        let mut scans: Vec<SoFar> =
            self.wholes.iter().map(|whole| whole.so_far().unwrap_or_default()).collect();
        for (number, ReadFailure { bookmark, partial, .. }) in failures {
            let partial = partial.map(Arc::new);
            scans[number] = SoFar { bookmark, partial, is_whole: false, failed: true };
        }
        GatherFailure { index, error, scans }
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.end();
            self.under_way.clear();
            self.rest();
        } else {
            // Tasks and connections of the parent: nobody drives them here.
            std::mem::forget((take(&mut self.under_way), take(&mut self.tasks)));
        }
    }
}

#[cfg(test)]
impl Gathering {
    /// What a fork leaves: the same reads in another process.
    pub(super) fn inherit(&mut self) {
        self.process = 0;
    }
}

impl std::fmt::Debug for Gathering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gathering({} of {} begun)", self.begun, self.wholes.len())
    }
}
