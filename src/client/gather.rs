//! [`Gathering`]: several scans of one client read side by side, under its one token, allowance and
//! connection pool. A chain is sequential by the service's rule (§4.4); several chains are not.

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
use crate::data::Bookmark;
use crate::error::{Error, Kind, Result};
use crate::http::Deadline;

/// So many scans are read at a time, unless another number is asked for.
pub const CONCURRENCY: usize = 8;

/// Which scan took a step, when its read is to be over, and what came of it: `None` where it was
/// ended half way.
type Stepped = (usize, Deadline, Option<Result<Step, ReadFailure>>);

/// Scans that are being read side by side. Each step is a task of its own: it goes on while whoever
/// gathers is at something else, and waits for a scan or a token itself. Dropped, it ends them and
/// their open requests; what they have read stays with each [`CollectOnce`], and goes on there when it
/// is asked for again.
pub struct Gathering {
    collects: Vec<Arc<CollectOnce>>,
    concurrency: usize,
    /// How many have been begun.
    begun: usize,
    tables: Vec<Option<Arc<Table>>>,
    steps: FuturesUnordered<BoxFuture<'static, Stepped>>,
    /// The last task of each scan.
    tasks: Vec<Option<AbortHandle>>,
    /// The process whose connections it reads on.
    process: u32,
}

/// The outcome of a step, on its way to whoever gathers. Where it does not arrive, nobody takes the
/// page that was prefetched meanwhile.
struct Delivery {
    step: Option<Result<Step, ReadFailure>>,
    collect: Arc<CollectOnce>,
}

/// The first error of a gathering: it has cancelled all other reads.
#[derive(Debug)]
pub struct GatherFailure {
    /// Which scan failed, from 0.
    pub index: usize,
    /// Why.
    pub error: Error,
    /// How far each scan has come, in the order asked.
    pub scans: Vec<Partial>,
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
                    "scans[{index}] is of another client: each client gathers its own, for they \
                     share its token, allowance and connections"
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
            begun: 0,
            steps: FuturesUnordered::new(),
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
            while self.steps.len() < self.concurrency && self.begun < self.collects.len() {
                let deadline = self.collects[self.begun].scan().deadline();
                self.begin_step(self.begun, deadline);
                self.begun += 1;
            }
            let Some((index, deadline, stepped)) = self.steps.next().await else {
                return Ok(None);
            };
            let failure = match stepped {
                Some(Ok(Step::Page(progress))) => {
                    self.begin_step(index, deadline);
                    return Ok(Some((index, progress)));
                }
                Some(Ok(Step::Whole(table))) => {
                    self.tables[index] = Some(table);
                    continue;
                }
                Some(Err(failure)) => failure,
                None => Error::new(Kind::InternalError, "a read ended without an outcome").into(),
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
        let error = Error::new(Kind::ForkError, message).with_hint(hint);
        Err(GatherFailure { index: 0, error, scans: vec![Partial::default(); self.collects.len()] })
    }

    fn begin_step(&mut self, index: usize, deadline: Deadline) {
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
                // No task is started any more.
                None => Some(step().await),
            };
            (index, deadline, delivery.and_then(|mut delivery| delivery.step.take()))
        }));
    }

    /// Cancels the others, and says how far all have come. Where the allowance is used up, the pages
    /// that were asked for are waited for: they are paid, and nothing more is.
    async fn failed(&mut self, index: usize, failure: ReadFailure) -> GatherFailure {
        let error = failure.error.clone();
        let mut failures = vec![(index, failure)];
        let takes_what_is_paid = error.kind() == Kind::AllowanceExhausted;
        if !takes_what_is_paid {
            self.tasks.iter().flatten().for_each(AbortHandle::abort);
            // Where no task was started, steps end with what waits for them.
            if self.tasks[..self.begun].iter().any(Option::is_none) {
                self.steps.clear();
            }
        }
        while let Some((other, deadline, stepped)) = self.steps.next().await {
            match stepped {
                // The page after it is paid for already.
                Some(Ok(Step::Page(_)))
                    if takes_what_is_paid && self.collects[other].has_prefetched() =>
                {
                    self.begin_step(other, deadline);
                }
                Some(Err(failure)) => failures.push((other, failure)),
                Some(Ok(_)) | None => {}
            }
        }
        self.stop_prefetch();
        // What can't be merged is not lost: it stays with its scan.
        let mut scans: Vec<Partial> =
            self.collects.iter().map(|collect| collect.partial().unwrap_or_default()).collect();
        for (number, ReadFailure { bookmark, partial: table, .. }) in failures {
            scans[number] = Partial { bookmark, table, is_whole: false, failed: true };
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
            // Tasks and connections of the parent: nobody drives them here.
            std::mem::forget((take(&mut self.steps), take(&mut self.tasks)));
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
        write!(f, "Gathering({} of {} begun)", self.begun, self.collects.len())
    }
}
