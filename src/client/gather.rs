//! [`Gathering`]: several scans of one client read side by side, under its one token, allowance and
//! connection pool. A chain is sequential by the service's rule (§4.4); several chains are not.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::Client;
use super::progress::Progress;
use super::scan::{ReadFailure, Step, Table};
use super::whole::{SoFar, Whole};
use crate::data::Bookmark;
use crate::error::{Error, Kind, Result};
use crate::http::Deadline;

/// So many scans are read at a time, unless another number is asked for.
pub const CONCURRENCY: usize = 8;

/// Which scan took a step, what came of it, and when its read is to be over.
type Stepped = (usize, Result<(Step<Arc<Table>>, Deadline), ReadFailure>);

/// Scans that are being read side by side. Dropped, it drops their open requests; what they have
/// read stays with each [`Whole`], and goes on there when it is asked for again.
pub struct Gathering {
    wholes: Vec<Arc<Whole>>,
    concurrency: usize,
    /// How many have been begun.
    begun: usize,
    tables: Vec<Option<Arc<Table>>>,
    under_way: FuturesUnordered<BoxFuture<'static, Stepped>>,
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
            let Some((index, stepped)) = self.under_way.next().await else { return Ok(None) };
            match stepped {
                Ok((Step::Page(progress), deadline)) => {
                    self.follow(index, deadline);
                    return Ok(Some((index, progress)));
                }
                Ok((Step::Whole(table), _)) => self.tables[index] = Some(table),
                Err(failure) => return Err(self.failed(index, failure).await),
            }
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

    /// Drops all that was asked for.
    fn rest(&mut self) {
        self.under_way.clear();
        for whole in &self.wholes {
            drop(whole.rest());
        }
    }

    fn follow(&self, index: usize, deadline: Deadline) {
        let whole = Arc::clone(&self.wholes[index]);
        let step = async move {
            let step = whole.step(deadline).await;
            (index, step.map(|step| (step, deadline)))
        };
        self.under_way.push(Box::pin(step));
    }

    /// Cancels the others, and says how far all have come. Where the allowance is used up, the pages
    /// that were asked for are waited for: they are paid, and nothing more is.
    async fn failed(&mut self, index: usize, failure: ReadFailure) -> GatherFailure {
        let mut failures = vec![];
        if failure.error.kind() == Kind::AllowanceExhausted {
            while let Some((other, stepped)) = self.under_way.next().await {
                match stepped {
                    // The page after it is paid for already.
                    Ok((Step::Page(_), deadline)) if self.wholes[other].is_ahead() => {
                        self.follow(other, deadline);
                    }
                    Ok(_) => {}
                    Err(failure) => failures.push((other, failure)),
                }
            }
        }
        self.rest();
        let error = failure.error.clone();
        failures.push((index, failure));
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
            self.rest();
        } else {
            // Connections of the parent: nobody drives them here.
            std::mem::forget(std::mem::take(&mut self.under_way));
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
