//! Long work on a store, with `progress=`.

use std::path::{Path, absolute};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::long_work::long_work;
use crate::bridge::process::guarded;
use crate::client::progress::module;
use crate::convert::asked_time::instant_before;
use crate::convert::state::record;
use crate::convert::values::path_of;
use crate::store::PyStore;
use crate::store::feed::{PyFeed, feed_name};
use siteline_core::error::Result;
use siteline_core::store::{Freed, Store, Watch, restore};
use siteline_core::sync::{compact, forget};

/// The names of a feed or of several.
fn feed_names(given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let is_one = given.is_instance_of::<PyString>() || given.is_instance_of::<PyFeed>();
    match given.try_iter() {
        Ok(feeds) if !is_one => feeds.map(|feed| feed_name(&feed?)).collect(),
        _ => Ok(vec![feed_name(given)?]),
    }
}

/// A `siteline.types.Freed`.
fn freed_object<'py>(py: Python<'py>, freed: &Freed) -> PyResult<Bound<'py, PyAny>> {
    record(py, ("siteline._records.store", "Freed"), freed, [])
}

/// Does long work on a file, which Ctrl-C ends; `progress` is the argument `progress=`.
fn watched<T: Send + 'static>(
    py: Python<'_>,
    (what, path): (&str, &Path),
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let title = path.file_name().unwrap_or_default().to_string_lossy();
    let title = format!("{what} {title}");
    let report = module(py)?.getattr("store_reporter")?.call1((progress, title))?;
    let report = (!report.is_none()).then_some(report);
    let watch = Arc::new(Watch::default());
    let seen = Arc::clone(&watch);
    let mut known = None;
    let outcome = guarded(|| {
        let outcome = long_work(
            py,
            move || work(&seen),
            || watch.stop(),
            || {
                let now = watch.progress();
                match &report {
                    Some(report) if known.replace(now) != Some(now) => {
                        report.call1((now.0, now.1, false)).map(drop)
                    }
                    _ => Ok(()),
                }
            },
        )?
        .or_raise()?;
        let (done, _) = watch.progress();
        report.as_ref().map_or(Ok(()), |report| report.call1((done, done, true)).map(drop))?;
        Ok(outcome)
    });
    module(py)?.getattr("finish_store")?.call1((report,))?;
    outcome
}

impl PyStore {
    fn long_work<T: Send + 'static>(
        &self,
        py: Python<'_>,
        what: &str,
        progress: Option<&Bound<'_, PyAny>>,
        work: impl FnOnce(&Store, &Watch) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let store = Arc::clone(&self.0);
        watched(py, (what, self.0.path()), progress, move |watch| work(&store, watch))
    }
}

/// Puts a copy of a backup in the place of a store; whether there was one. For the command.
#[pyfunction]
#[pyo3(signature = (backup, store, *, progress=None))]
fn _restore(
    backup: &Bound<'_, PyAny>,
    store: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
    let (py, backup, store) = (backup.py(), path_of(backup, "backup")?, path_of(store, "store")?);
    let title = store.clone();
    let work = move |watch: &Watch| Ok(restore(&backup, &store, watch)?.replaced);
    watched(py, ("restore", &title), progress, work)
}

/// Adds the function, past `add_function`, which would list it in `__all__`.
pub(crate) fn export(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.as_any().setattr("_restore", wrap_pyfunction!(_restore, module)?)
}

#[pymethods]
impl PyStore {
    /// Remove the points of a feed before a time: it begins there from now on.
    ///
    /// - ``before``: a time, rounded down to a bucket's beginning: points of buckets that begin before it go.
    ///   After the newest instant that was read it is a :class:`QueryError`: what was never read cannot be
    ///   forgotten
    /// - ``progress``: ``True`` for a line with the percentage, or a callable that is given a
    ///   :class:`StoreProgress`
    ///
    /// Gives what it :class:`Freed`. The file has room for new points then; :meth:`compact` makes it
    /// smaller. No sync reads again what lies before, whatever the feed's ``since``; :meth:`coverage` calls
    /// it ``"forgotten"``; a page that brings a point of it all the same brings it in vain. :meth:`points` of
    /// a range that begins before raises :class:`UnreadRange`; :meth:`as_of` and :meth:`changes` from
    /// before this call a :class:`QueryError`, unless their range begins later. To have it again, read it
    /// into a feed of another name.
    ///
    /// Killed or interrupted at any moment, nothing before the time is read from then on, and the next
    /// call removes the rest. :class:`StoreBusy` while a sync of the feed runs.
    ///
    /// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    /// ...                      since="2026-11-15T00:00Z")
    /// >>> store = siteline.Store("plant.siteline")
    /// >>> report = client.sync(feed, store)
    /// >>> freed = store.forget("line-2", before="2026-11-17T00:00Z")
    /// >>> freed.points > 0, store.coverage("line-2")[0].state, client.plan(feed, store)
    /// (True, 'forgotten', <Plan nothing to read>)
    #[pyo3(signature = (feed, before, *, progress=None))]
    fn forget<'py>(
        &self,
        feed: &Bound<'py, PyAny>,
        before: &Bound<'py, PyAny>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, name) = (feed.py(), feed_name(feed)?);
        let before = instant_before(before, "before", None, || self.newest(py, &name))?;
        let removed = self.long_work(py, "forget", progress, move |store, watch| {
            forget(store, &name, before, watch)
        })?;
        freed_object(py, &removed)
    }

    /// Remove the older versions of points in settled windows, and give the file's free space back.
    ///
    /// - ``feed``: a feed or a list of feeds; ``None`` for all
    /// - ``progress``: ``True`` for a line with the percentage, or a callable that is given a
    ///   :class:`StoreProgress`
    ///
    /// Gives what it :class:`Freed`. Points stay as they are known now, flags too. What was known before
    /// is no longer there: :meth:`as_of` and :meth:`changes` from before this call raise a
    /// :class:`QueryError`, unless their range begins after the settled windows; ``changes(since=0)``
    /// gives everything, as before.
    ///
    /// Killed or interrupted at any moment, the store is as it was or smaller; the next call does the rest.
    /// :class:`StoreBusy` while a sync of one of the feeds runs, or another process writes. A file that
    /// siteline 0.2.0 made is written anew, once, which takes as much room on the disk again.
    ///
    /// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    /// ...                      since="2026-11-15T00:00Z")
    /// >>> store = siteline.Store("plant.siteline")
    /// >>> report = client.sync(feed, store)
    /// >>> store.compact().points
    /// 0
    #[pyo3(signature = (feed=None, *, progress=None))]
    fn compact<'py>(
        &self,
        py: Python<'py>,
        feed: Option<&Bound<'py, PyAny>>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let names = feed.map(feed_names).transpose()?;
        let removed = self.long_work(py, "compact", progress, move |store, watch| {
            let names = names.map_or_else(|| store.feeds(), Ok)?;
            compact(store, &names, watch)
        })?;
        freed_object(py, &removed)
    }

    /// Copy the store to another path, while it is in use. A :class:`StoreError` where something is
    /// there already.
    ///
    /// - ``progress``: ``True`` for a line with the percentage, or a callable that is given a
    ///   :class:`StoreProgress`
    ///
    /// Interrupted, it leaves nothing at the path, or the whole copy where that was done.
    #[pyo3(signature = (path, *, progress=None))]
    fn backup(&self, path: &Bound<'_, PyAny>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (py, path) = (path.py(), path_of(path, "path")?);
        self.long_work(py, "copy", progress, move |store, watch| {
            store.backup(&absolute(&path).unwrap_or(path), watch)
        })
    }

    /// Read everything and compare it with its checksums: :class:`StoreCorrupt` where it differs.
    ///
    /// - ``progress``: ``True`` for a line with the percentage, or a callable that is given a
    ///   :class:`StoreProgress`
    #[pyo3(signature = (*, progress=None))]
    fn check(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.long_work(py, "check", progress, Store::check)
    }
}
