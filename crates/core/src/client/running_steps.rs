//! The steps of several chains, each in a task, so that the tasks decode concurrently.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::background::BackgroundTask;
use super::collect::{CollectOnce, Step};
use super::table::ReadFailure;
use crate::http::Deadline;

/// Dropping it aborts the steps.
pub(super) struct RunningSteps {
    pub(super) deadline: Deadline,
    steps: FuturesUnordered<BoxFuture<'static, Stepped>>,
    /// Each step's chain, and the pages that it may count.
    pub(super) flying: Vec<(usize, u64)>,
}

pub(super) struct Stepped {
    pub(super) index: usize,
    pub(super) deadline: Deadline,
    /// `None` if cancelled.
    pub(super) step: Option<Result<Step, ReadFailure>>,
}

/// The result of a step on its way to the caller. If it is dropped, it cancels the prefetch of the
/// next page, which no caller would take.
struct UndeliveredStep {
    step: Option<Result<Step, ReadFailure>>,
    chain: Arc<CollectOnce>,
}

impl RunningSteps {
    pub(super) fn new(deadline: Deadline) -> Self {
        Self { deadline, steps: FuturesUnordered::new(), flying: Vec::new() }
    }

    /// The next step that ends; `None` if none is running.
    pub(super) async fn next(&mut self) -> Option<Stepped> {
        let stepped = self.steps.next().await?;
        self.flying.retain(|(index, _)| *index != stepped.index);
        Some(stepped)
    }

    pub(super) fn start(
        &mut self,
        index: usize,
        chain: &Arc<CollectOnce>,
        deadline: Deadline,
        pages: u64,
    ) {
        let spawner = Arc::clone(&chain.scan().client().settings().spawner);
        let chain = Arc::clone(chain);
        let step = move || {
            let chain = Arc::clone(&chain);
            async move { UndeliveredStep { step: Some(chain.step(deadline).await), chain } }
        };
        let task = BackgroundTask::start(&*spawner, step());
        self.flying.push((index, pages));
        self.steps.push(Box::pin(async move {
            let delivery = match task {
                Some(task) => task.await,
                // The process is exiting, so the step runs in place.
                None => Some(step().await),
            };
            let step = delivery.and_then(|mut delivery| delivery.step.take());
            Stepped { index, deadline, step }
        }));
    }
}

impl Drop for UndeliveredStep {
    fn drop(&mut self) {
        if self.step.is_some() {
            self.chain.stop_prefetch();
        }
    }
}
