//! Reads the chains of a scan concurrently. The service requires only the requests within one chain
//! to be sequential.

use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::timeout;

use super::collect::{CollectOnce, Pace, Partial, Step, WholeRead};
use super::progress::Progress;
use super::running_steps::{RunningSteps, Stepped};
use super::scan::Scan;
use super::table::{Provenance, ReadFailure, Table};
use crate::data::{Bookmark, WholeChain, page_limit_reached};
use crate::error::{Error, Kind, Result};
use crate::fork::Owned;
use crate::http::Deadline;
use crate::lock::Mutex;

const CONCURRENCY: usize = 4;

/// Longest wait for pages in flight after an error.
const LONGEST_ARRIVAL: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 5_000 });

/// Reads each chain by a [`CollectOnce`], and merges the tables. After a failure, pages in flight
/// are kept if they arrive soon. Cancelling the caller cancels all requests; each chain keeps its
/// pages.
pub struct ReadChains {
    scan: Scan,
    concurrency: usize,
    /// Whether a failure returns the pages read so far.
    keeps: bool,
    /// The remaining pages of `max_pages`.
    pages_left: Option<Arc<AtomicU64>>,
    expected: Vec<Option<u64>>,
    state: Mutex<ChainsState>,
}

/// Locked only briefly.
#[derive(Default)]
struct ChainsState {
    chains: Vec<Arc<CollectOnce>>,
    progress: Vec<Option<Progress>>,
    /// All earlier chains are complete.
    first: usize,
    /// The steps in progress while no caller waits. Tasks and connections of a parent process are
    /// left alone.
    running: Owned<RunningSteps>,
    broken: Option<Error>,
}

impl ReadChains {
    #[must_use]
    pub(super) fn new(scan: &Scan) -> Self {
        let pages_left = scan.most_pages().map(|limit| Arc::new(AtomicU64::new(limit)));
        let chains = scan.chain_scans(pages_left.as_ref()).into_iter().map(CollectOnce::new);
        Self::of_chains(scan, pages_left, chains.map(Arc::new).collect())
    }

    /// Reads the chains one after the other. Each has its own reader, which keeps the pages.
    pub fn read_by<R: WholeRead + 'static>(
        scan: &Scan,
        reader: impl Fn(Scan) -> Result<Arc<R>>,
    ) -> Result<(Self, Vec<Arc<R>>)> {
        let pages_left = scan.most_pages().map(|limit| Arc::new(AtomicU64::new(limit)));
        let scans = scan.chain_scans(pages_left.as_ref());
        let readers = scans.iter().cloned().map(reader).collect::<Result<Vec<_>>>()?;
        let chain = |(scan, reader): (Scan, &Arc<R>)| {
            Arc::new(CollectOnce::new(scan).read_by(Arc::clone(reader) as _))
        };
        let chains = scans.into_iter().zip(&readers).map(chain).collect();
        let whole =
            Self { concurrency: 1, keeps: false, ..Self::of_chains(scan, pages_left, chains) };
        Ok((whole, readers))
    }

    fn of_chains(
        scan: &Scan,
        pages_left: Option<Arc<AtomicU64>>,
        chains: Vec<Arc<CollectOnce>>,
    ) -> Self {
        let densities = scan.client().densities();
        let expected = chains.iter().map(|chain| densities.pages(chain.scan().query())).collect();
        let state =
            ChainsState { progress: vec![None; chains.len()], chains, ..ChainsState::default() };
        Self {
            scan: scan.clone(),
            concurrency: scan.read_settings().concurrency.unwrap_or(CONCURRENCY).max(1),
            keeps: true,
            pages_left,
            expected,
            state: Mutex::new(state),
        }
    }

    async fn next(&self, deadline: Deadline, pace: Pace) -> Result<Step, ReadFailure> {
        let mut running = self.running(deadline)?;
        // A cancelled caller may have left the flag set.
        self.scan.together.is_ending.store(false, Ordering::SeqCst);
        let mut failures = Vec::new();
        let error = loop {
            if !self.start(&mut running, deadline, pace) {
                return Ok(Step::Whole(Arc::new(self.merge()?)));
            }
            if running.flying.is_empty() {
                let limit = self.scan.read_settings().max_pages.unwrap_or_default();
                break page_limit_reached(limit);
            }
            let Stepped { index, deadline: begun, step } =
                match self.wait(&mut running, deadline).await {
                    Ok(stepped) => stepped,
                    Err(error) => break error,
                };
            match step {
                Some(Ok(Step::Page(progress))) => {
                    let total = self.count(index, progress);
                    if pace == Pace::All {
                        self.start(&mut running, deadline, pace);
                    }
                    self.state.lock().running = Owned::new(running);
                    return Ok(Step::Page(total));
                }
                Some(Ok(Step::Whole(_))) => {}
                // The deadline of an earlier caller has passed, not the deadline of this one.
                Some(Err(failure))
                    if failure.error.kind() == Kind::DeadlineExceeded
                        && begun.is_before(deadline)
                        && deadline.remaining(self.clock()) != Some(Duration::ZERO) => {}
                Some(Err(failure)) => {
                    let error = failure.error.clone();
                    failures.push((index, failure));
                    break error;
                }
                None => break Error::new(Kind::InternalError, "a read ended without a result"),
            }
        };
        Err(self.failed(running, error, failures).await?)
    }

    fn clock(&self) -> &crate::clock::Clock {
        self.scan.client().time().clock()
    }

    /// Takes the steps in progress, except the steps of a parent process.
    fn running(&self, deadline: Deadline) -> Result<RunningSteps> {
        let mut state = self.state.lock();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        Ok(state.running.take().unwrap_or_else(|| RunningSteps::new(deadline)))
    }

    /// Starts as many steps as the settings allow. Returns `false` if all chains are complete.
    fn start(&self, running: &mut RunningSteps, deadline: Deadline, pace: Pace) -> bool {
        let mut state = self.state.lock();
        while state.chains.get(state.first).is_some_and(|chain| chain.complete().is_some()) {
            state.first += 1;
        }
        let most = if pace == Pace::First { 1 } else { self.concurrency };
        let mut left =
            self.pages_left.as_ref().map_or(u64::MAX, |left| left.load(Ordering::SeqCst));
        left = left.saturating_sub(running.flying.iter().map(|(_, pages)| pages).sum());
        for (index, chain) in state.chains.iter().enumerate().skip(state.first) {
            if running.flying.len() >= most {
                break;
            }
            let is_flying = running.flying.iter().any(|(other, _)| *other == index);
            if is_flying || chain.complete().is_some() {
                continue;
            }
            let pages = u64::from(chain.needs_page());
            if pages <= left {
                left -= pages;
                running.start(index, chain, deadline, pages);
            }
        }
        state.first < state.chains.len()
    }

    async fn wait(&self, running: &mut RunningSteps, deadline: Deadline) -> Result<Stepped> {
        let is_bound = running.deadline != deadline;
        let ended = || Error::new(Kind::InternalError, "no step of a chain has begun");
        let next = async { running.next().await.ok_or_else(ended) };
        if is_bound { deadline.bound(self.clock(), next).await } else { next.await }
    }

    /// The progress of all chains.
    #[expect(clippy::cast_precision_loss, reason = "a fraction for display")]
    fn count(&self, index: usize, progress: Progress) -> Progress {
        let mut state = self.state.lock();
        state.progress[index] = Some(progress);
        let known = || state.progress.iter().flatten();
        let done = state.progress.iter().all(|chain| chain.is_some_and(|chain| chain.done));
        let pages = known().map(|chain| chain.pages).sum();
        let expected = || {
            let chains = state.progress.iter().zip(&self.expected);
            let expected = chains.map(|(chain, expected)| match chain {
                Some(Progress { done: true, pages, .. }) => Some(*pages),
                Some(chain) => chain.pages_expected,
                None => *expected,
            });
            expected.sum()
        };
        let fraction = || {
            let fractions = known().map(|chain| chain.fraction).sum::<Option<f64>>();
            fractions.map(|sum| sum / state.progress.len() as f64)
        };
        Progress {
            pages,
            points: known().map(|chain| chain.points).sum(),
            requests: known().map(|chain| chain.requests).sum(),
            allowance_left: progress.allowance_left,
            newest: known().filter_map(|chain| chain.newest).max(),
            fraction: if done { Some(1.0) } else { fraction() },
            done,
            pages_expected: if done { Some(pages) } else { expected() },
        }
    }

    /// Waits for the pages in flight, which are already counted, then cancels the other requests
    /// and merges the pages of all chains.
    async fn failed(
        &self,
        mut running: RunningSteps,
        error: Error,
        mut failures: Vec<(usize, ReadFailure)>,
    ) -> Result<ReadFailure> {
        let chains = self.state.lock().chains.clone();
        let is_ending = &self.scan.together.is_ending;
        is_ending.store(true, Ordering::SeqCst);
        let is_spent = error.kind() == Kind::AllowanceExhausted;
        let longest = if is_spent { Duration::MAX } else { LONGEST_ARRIVAL };
        let _ = timeout(longest, self.arriving(&mut running, &chains, &mut failures)).await;
        is_ending.store(false, Ordering::SeqCst);
        drop(running);
        for chain in &chains {
            chain.stop_prefetch();
        }
        if error.kind() == Kind::PageLimitReached
            && let (Some(left), Some(limit)) =
                (&self.pages_left, self.scan.read_settings().max_pages)
        {
            left.store(limit, Ordering::SeqCst);
        }
        let Partial { bookmark, table } = self.joined(&chains, failures)?;
        Ok(ReadFailure { error, bookmark, partial: table })
    }

    /// Waits for all steps, and for the pages that the chains have already requested.
    async fn arriving(
        &self,
        running: &mut RunningSteps,
        chains: &[Arc<CollectOnce>],
        failures: &mut Vec<(usize, ReadFailure)>,
    ) {
        while let Some(Stepped { index, deadline, step }) = running.next().await {
            match step {
                Some(Ok(Step::Page(progress))) => {
                    self.count(index, progress);
                    if chains[index].has_prefetched() {
                        running.start(index, &chains[index], deadline, 1);
                    }
                }
                Some(Err(failure)) => failures.push((index, failure)),
                Some(Ok(Step::Whole(_))) | None => {}
            }
        }
    }

    /// The pages that the chains have read. A chain that restarts has dropped its pages; its
    /// failure contains them.
    fn joined(
        &self,
        chains: &[Arc<CollectOnce>],
        failures: Vec<(usize, ReadFailure)>,
    ) -> Result<Partial> {
        let mut parts: Vec<Partial> =
            chains.iter().map(|chain| chain.partial()).collect::<Result<_>>()?;
        for (index, ReadFailure { bookmark, partial, .. }) in failures {
            // A chain that has read nothing is still at its start.
            if bookmark.is_some() || partial.is_some() {
                parts[index] = Partial { bookmark, table: partial };
            }
        }
        if !self.keeps {
            return Ok(Partial::default());
        }
        let (mut marks, mut whole) = (Vec::new(), self.scan.whole());
        let begun = chains.len();
        let mut ended = 0;
        for (chain, part) in chains.iter().zip(&parts) {
            match (&part.bookmark, &part.table) {
                (Some(bookmark), _) => marks.extend_from_slice(&bookmark.marks),
                (None, Some(table)) => {
                    ended += 1;
                    let before = table.provenance.resumed_after_pages;
                    let pages = table.provenance.pages + before;
                    whole.push(WholeChain { query: chain.scan().query().fingerprint(), pages });
                }
                // A resumed chain that has not continued yet.
                (None, None) => {
                    let bookmark = chain.scan().bookmark();
                    marks.extend(bookmark.into_iter().flat_map(|bookmark| bookmark.marks.clone()));
                }
            }
        }
        let is_begun = !marks.is_empty() || !whole.is_empty();
        let bookmark = (is_begun && ended < begun).then(|| Bookmark {
            owner: self.scan.owner,
            marks,
            whole: whole.into(),
        });
        let tables: Vec<_> = parts.into_iter().filter_map(|part| part.table).collect();
        if tables.is_empty() && !self.scan.has_partial() {
            return Ok(Partial { bookmark, table: None });
        }
        let stopped_at = bookmark.as_ref().map(Bookmark::digest);
        let table = Table { is_partial: true, stopped_at, ..self.table(tables)? };
        Ok(Partial { bookmark, table: Some(Arc::new(table)) })
    }

    /// Merges the table that the scan continues and the tables of its chains.
    fn table(&self, tables: Vec<Arc<Table>>) -> Result<Table> {
        let oldest = tables.iter().map(|table| table.provenance.read_at).min();
        let onto = self.scan.onto.as_ref();
        let mut provenance = self.scan.provenance();
        provenance.read_at = oldest.unwrap_or(provenance.read_at);
        if let Some(onto) = onto {
            provenance.read_at = onto.provenance.read_at;
            provenance.resumed_after_pages = onto.provenance.resumed_after_pages;
        }
        provenance.through =
            tables.iter().flat_map(|table| table.provenance.through.clone()).collect();
        let tables = onto.cloned().into_iter().chain(tables);
        let table = Table::merged(tables, &self.scan.decode_settings().extra_columns, provenance)?;
        let pages = table.merged.report.pages;
        Ok(Table { provenance: Provenance { pages, ..table.provenance }, ..table })
    }

    fn merge(&self) -> Result<Table> {
        let chains = take(&mut self.state.lock().chains);
        let tables = chains.into_iter().filter_map(|chain| chain.complete().cloned()).collect();
        self.table(tables).inspect_err(|error| self.state.lock().broken = Some(error.clone()))
    }
}

impl WholeRead for ReadChains {
    fn step(&self, deadline: Deadline, pace: Pace) -> BoxFuture<'_, Result<Step, ReadFailure>> {
        Box::pin(self.next(deadline, pace))
    }

    fn pause(&self) {
        let running = self.state.lock().running.take();
        drop(running);
    }

    fn partial(&self) -> Result<Partial> {
        let chains = self.state.lock().chains.clone();
        self.joined(&chains, Vec::new())
    }

    fn head(&self, count: usize) -> Result<Option<Arc<Table>>> {
        let (mut parts, mut rows) = (Vec::new(), 0);
        for chain in self.chains() {
            let Some(part) = chain.head(count - rows)? else { return Ok(None) };
            rows += part.merged.points.rows();
            parts.push(part);
            if rows >= count {
                break;
            }
        }
        if parts.len() == 1 {
            return Ok(parts.pop());
        }
        let extra_columns = &self.scan.decode_settings().extra_columns;
        let head = Table::merged(parts, extra_columns, self.scan.provenance())?;
        let provenance = Provenance { pages: head.merged.report.pages, ..head.provenance };
        Ok(Some(Arc::new(Table { is_partial: true, provenance, ..head })))
    }

    fn chains(&self) -> Vec<Arc<CollectOnce>> {
        self.state.lock().chains.clone()
    }
}
