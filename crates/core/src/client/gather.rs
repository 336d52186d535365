//! [`Gathering`]: reads several scans of one client concurrently, with one token, allowance and
//! connection pool. The service requires a chain to be sequential (§4.4), but not several chains.

use std::collections::HashSet;
use std::mem::take;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::task::AbortHandle;

use super::background::BackgroundTask;
use super::collect::{CollectOnce, Partial, Step};
use super::progress::Progress;
use super::send::Client;
use super::table::{ReadFailure, Table};
use crate::error::{Error, Kind, Result};
use crate::http::Deadline;

/// The default number of scans that are read at a time.
pub const CONCURRENCY: usize = 8;

/// The index of a scan, the deadline of its read, and the result of its step; `None` if the step was
/// cancelled.
type Stepped = (usize, Deadline, Option<Result<Step, ReadFailure>>);

/// Scans that are read concurrently. Each step is a task, which runs while the caller does other work.
/// Dropping the gathering aborts the tasks and their requests; each [`CollectOnce`] keeps its pages and
/// continues when it is read again.
pub struct Gathering {
    collects: Vec<Arc<CollectOnce>>,
    concurrency: usize,
    /// The number of scans that have been started.
    started: usize,
    tables: Vec<Option<Arc<Table>>>,
    steps: FuturesUnordered<BoxFuture<'static, Stepped>>,
    /// The last task of each scan.
    tasks: Vec<Option<AbortHandle>>,
    /// The process that owns the connections.
    process: u32,
}

/// The result of a step on its way to the gathering. If it is dropped undelivered, it cancels the
/// prefetch of the next page, which no caller would take.
struct Delivery {
    step: Option<Result<Step, ReadFailure>>,
    collect: Arc<CollectOnce>,
}

/// The first error of a gathering, after which all other reads were cancelled.
#[derive(Debug)]
pub struct GatherFailure {
    /// The index of the scan that failed, from 0.
    pub index: usize,
    /// Its error.
    pub error: Error,
    /// The part of each scan that was read, in the given order.
    pub scans: Vec<Partial>,
}

impl Gathering {
    /// Prepares to read these scans of `client`, at most `concurrency` at a time, in this order. Sends
    /// no request yet.
    ///
    /// # Errors
    /// `QueryError` for no scan, a duplicate scan, and a scan of another client.
    pub fn new(
        client: &Client,
        collects: Vec<Arc<CollectOnce>>,
        concurrency: usize,
    ) -> Result<Self> {
        let refused = |message: String| Err(Error::new(Kind::QueryError, message));
        if collects.is_empty() {
            return refused("scans= is empty: there is nothing to gather".to_owned());
        }
        let mut known = HashSet::new();
        for (index, collect) in collects.iter().enumerate() {
            if !collect.scan().client().is_same(client) {
                return refused(format!(
                    "scans[{index}] is of another client: a client gathers only its own scans, because \
                     they share its token, allowance and connections"
                ));
            }
            if !known.insert(Arc::as_ptr(collect)) {
                let first = collects.iter().position(|other| Arc::ptr_eq(other, collect));
                return refused(format!(
                    "scans[{index}] is the same scan as scans[{}]: it is read once",
                    first.unwrap_or_default()
                ));
            }
        }
        Ok(Self {
            tables: vec![None; collects.len()],
            tasks: vec![None; collects.len()],
            collects,
            concurrency: concurrency.max(1),
            started: 0,
            steps: FuturesUnordered::new(),
            process: std::process::id(),
        })
    }

    /// Reads until another page of any scan has arrived, or all scans are complete: `None`. The deadline
    /// of a scan begins when it is started here.
    ///
    /// # Errors
    /// [`GatherFailure`] with the first error; all reads are cancelled. `ForkError` in a forked child,
    /// because the reads belong to the parent.
    pub async fn step(&mut self) -> Result<Option<(usize, Progress)>, GatherFailure> {
        self.check_process()?;
        loop {
            while self.steps.len() < self.concurrency && self.started < self.collects.len() {
                let deadline = self.collects[self.started].scan().deadline();
                self.start_step(self.started, deadline);
                self.started += 1;
            }
            let Some((index, deadline, stepped)) = self.steps.next().await else {
                return Ok(None);
            };
            let failure = match stepped {
                Some(Ok(Step::Page(progress))) => {
                    self.start_step(index, deadline);
                    return Ok(Some((index, progress)));
                }
                Some(Ok(Step::Whole(table))) => {
                    self.tables[index] = Some(table);
                    continue;
                }
                Some(Err(failure)) => failure,
                None => Error::new(Kind::InternalError, "a read ended without a result").into(),
            };
            return Err(self.failed(index, failure).await);
        }
    }

    /// The tables in the given order, after [`Gathering::step`] has returned `None`.
    #[must_use]
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.tables.iter().flatten().cloned().collect()
    }

    /// Fails in a forked child.
    fn check_process(&self) -> Result<(), GatherFailure> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let message = "the parent process began to gather these scans before the fork";
        let hint = "gather them again in the child: client.gather(scans)";
        let error = Error::new(Kind::ForkError, message).with_hint(hint);
        Err(GatherFailure { index: 0, error, scans: vec![Partial::default(); self.collects.len()] })
    }

    fn start_step(&mut self, index: usize, deadline: Deadline) {
        let collect = Arc::clone(&self.collects[index]);
        let step = move || {
            let collect = Arc::clone(&collect);
            async move { Delivery { step: Some(collect.step(deadline).await), collect } }
        };
        let settings = self.collects[index].scan().client().settings();
        let task = BackgroundTask::start(&*settings.spawner, step());
        self.tasks[index] = task.as_ref().and_then(BackgroundTask::abort_handle);
        self.steps.push(Box::pin(async move {
            let delivery = match task {
                Some(task) => task.await,
                // The process is exiting: runs the step in place.
                None => Some(step().await),
            };
            (index, deadline, delivery.and_then(|mut delivery| delivery.step.take()))
        }));
    }

    /// Cancels the other scans and collects the parts that were read. If the allowance is used up, waits
    /// for the pages in flight instead: they are already counted, and no other request is sent.
    async fn failed(&mut self, index: usize, failure: ReadFailure) -> GatherFailure {
        let error = failure.error.clone();
        let mut failures = vec![(index, failure)];
        let awaits_counted_pages = error.kind() == Kind::AllowanceExhausted;
        if !awaits_counted_pages {
            self.tasks.iter().flatten().for_each(AbortHandle::abort);
            // Steps without a task cannot be aborted: drops their futures.
            if self.tasks[..self.started].iter().any(Option::is_none) {
                self.steps.clear();
            }
        }
        while let Some((other, deadline, stepped)) = self.steps.next().await {
            match stepped {
                // The request for the next page is already counted.
                Some(Ok(Step::Page(_)))
                    if awaits_counted_pages && self.collects[other].has_prefetched() =>
                {
                    self.start_step(other, deadline);
                }
                Some(Err(failure)) => failures.push((other, failure)),
                Some(Ok(_)) | None => {}
            }
        }
        self.stop_prefetch();
        // If the pages cannot be merged, they stay with their scan.
        let mut scans: Vec<Partial> =
            self.collects.iter().map(|collect| collect.partial().unwrap_or_default()).collect();
        // A scan that begins again has dropped its pages; the failure has them.
        for (number, ReadFailure { bookmark, partial: table, error }) in failures {
            let at_limit = error.kind() == Kind::PageLimitReached;
            scans[number] = Partial { bookmark, table, is_whole: false, at_limit };
        }
        GatherFailure { index, error, scans }
    }

    fn stop_prefetch(&self) {
        self.collects.iter().for_each(|collect| collect.stop_prefetch());
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if self.step.is_some() {
            self.collect.stop_prefetch();
        }
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.steps.clear();
            self.stop_prefetch();
        } else {
            // Tasks and connections belong to the parent.
            std::mem::forget((take(&mut self.steps), take(&mut self.tasks)));
        }
    }
}

#[cfg(test)]
impl Gathering {
    /// Simulates a fork: the same reads in another process.
    pub(super) fn inherit(&mut self) {
        self.process = 0;
    }
}

impl std::fmt::Debug for Gathering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gathering({} of {} started)", self.started, self.collects.len())
    }
}
