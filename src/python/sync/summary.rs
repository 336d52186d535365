//! `siteline.SyncReport` and `siteline.Plan`, which are written in Python, from the core's.

use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::python::client::allowance::PyAllowance;
use crate::python::convert::state::construct;
use crate::store::Applied;
use crate::sync::{FeedReport, Plan, SyncReport, Task};

#[derive(IntoPyObject)]
struct TaskArgs<'a> {
    feed: &'a str,
    why: String,
    start: Timestamp,
    end: Timestamp,
    pages: Option<u64>,
}

#[derive(IntoPyObject)]
struct FeedReportArgs<'a> {
    name: &'a str,
    chains: u64,
    pages: u64,
    inserted: u64,
    revised: u64,
    unchanged: u64,
    flagged: u64,
    sequence: u64,
    settled_through: Option<Timestamp>,
    read_through: Option<Timestamp>,
}

#[derive(IntoPyObject)]
struct SyncReportArgs<'py> {
    _feeds: Bound<'py, PyTuple>,
    requests: u64,
    complete: bool,
    resumes_at: Option<Timestamp>,
    todo: Bound<'py, PyTuple>,
    allowance: PyAllowance,
    now: Timestamp,
}

#[derive(IntoPyObject)]
struct PlanArgs<'py> {
    tasks: Bound<'py, PyTuple>,
    pages: Option<u64>,
    allowance: PyAllowance,
    reserve: u64,
    now: Timestamp,
    kind: &'static str,
}

impl<'a> From<&'a Task> for TaskArgs<'a> {
    fn from(task: &'a Task) -> Self {
        let Task { feed, why, start, end, pages } = task;
        Self { feed, why: why.to_string(), start: *start, end: *end, pages: *pages }
    }
}

impl<'a> From<&'a FeedReport> for FeedReportArgs<'a> {
    fn from(report: &'a FeedReport) -> Self {
        let Applied { inserted, revised, unchanged, flagged } = report.applied;
        Self {
            name: &report.name,
            chains: report.chains,
            pages: report.pages,
            inserted,
            revised,
            unchanged,
            flagged,
            sequence: report.sequence,
            settled_through: report.settled_through,
            read_through: report.read_through,
        }
    }
}

/// A `siteline.SyncReport`.
pub(crate) fn report<'py>(py: Python<'py>, report: &SyncReport) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("siteline.sync")?;
    let class = module.getattr("FeedReport")?;
    let feeds = report.feeds.iter().map(|feed| construct(&class, FeedReportArgs::from(feed)));
    let arguments = SyncReportArgs {
        _feeds: PyTuple::new(py, feeds.collect::<PyResult<Vec<_>>>()?)?,
        requests: report.requests,
        complete: report.complete,
        resumes_at: report.resumes_at,
        todo: tasks(&module, &report.todo)?,
        allowance: PyAllowance(report.allowance),
        now: report.now,
    };
    construct(&module.getattr("SyncReport")?, arguments)
}

/// A `siteline.Plan` of this kind: `sync` or `scan`.
pub(crate) fn plan<'py>(
    py: Python<'py>,
    plan: &Plan,
    kind: &'static str,
) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("siteline.sync")?;
    let arguments = PlanArgs {
        tasks: tasks(&module, &plan.tasks)?,
        pages: plan.pages,
        allowance: PyAllowance(plan.allowance),
        reserve: plan.reserve,
        now: plan.now,
        kind,
    };
    construct(&module.getattr("Plan")?, arguments)
}

fn tasks<'py>(module: &Bound<'py, PyModule>, tasks: &[Task]) -> PyResult<Bound<'py, PyTuple>> {
    let class = module.getattr("Task")?;
    let tasks = tasks.iter().map(|task| construct(&class, TaskArgs::from(task)));
    PyTuple::new(module.py(), tasks.collect::<PyResult<Vec<_>>>()?)
}
