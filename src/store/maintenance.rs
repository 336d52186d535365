//! Long work on a store calls `report(done, total, is_finished)`.

use std::path::absolute;

use crate::bridge::long_work::long_work;
use crate::convert::asked_time::{instant_before, zone};
use crate::prelude::*;
use crate::store::StoreHandle;
use siteline_core::store::{Share, Store, Watch, restore};
use siteline_core::sync::{compact, forget};

type Report<'a, 'py> = Option<&'a Object<'py>>;

fn watched<T: Send + 'static>(
    py: Python<'_>,
    report: Report<'_, '_>,
    work: impl FnOnce(&Watch) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let seen = Arc::clone(&watch);
    let mut known = None;
    guarded(|| {
        let meanwhile = || {
            let now = watch.progress();
            match report {
                Some(report) if known.replace(now) != Some(now) => {
                    report.call1((now.0, now.1, false)).map(drop)
                }
                _ => Ok(()),
            }
        };
        let outcome = long_work(py, move || work(&seen), || watch.stop(), meanwhile)?.or_raise()?;
        let (done, _) = watch.progress();
        report.map_or(Ok(()), |report| report.call1((done, done, true)).map(drop))?;
        Ok(outcome)
    })
}

impl StoreHandle {
    fn long_work<T: Send + 'static>(
        &self,
        py: Python<'_>,
        report: Report<'_, '_>,
        work: impl FnOnce(&Store, &Watch) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let store = Arc::clone(&self.0);
        watched(py, report, move |watch| work(&store, watch))
    }
}

/// Replaces a store by a backup. Returns whether there was one.
#[pyfunction]
pub(crate) fn _restore(
    backup: &Object<'_>,
    store: &Object<'_>,
    report: Report<'_, '_>,
) -> PyResult<bool> {
    let (py, backup, store) = (backup.py(), path_of(backup, "backup")?, path_of(store, "store")?);
    watched(py, report, move |watch: &Watch| restore(&backup, &store, watch))
}

#[pymethods]
impl StoreHandle {
    fn forget<'py>(
        &self,
        py: Python<'py>,
        feed: Text<'_>,
        before: &Object<'py>,
        tz: &Object<'py>,
        report: Report<'_, '_>,
    ) -> PyResult<Object<'py>> {
        let (_, zone) = zone(tz)?;
        let newest = || self.newest(py, feed.0);
        let before = instant_before(before, "before", &zone, newest)?;
        let name = feed.0.to_owned();
        let work = move |store: &Store, watch: &Watch| forget(store, &name, before, watch);
        dict(py, &self.long_work(py, report, work)?)
    }

    fn compact<'py>(
        &self,
        py: Python<'py>,
        feeds: Option<Vec<String>>,
        report: Report<'_, '_>,
    ) -> PyResult<Object<'py>> {
        let work = move |store: &Store, watch: &Watch| {
            let names = feeds.map_or_else(|| store.feeds(), Ok)?;
            compact(store, &names, watch)
        };
        dict(py, &self.long_work(py, report, work)?)
    }

    fn backup(
        &self,
        py: Python<'_>,
        path: &Object<'_>,
        share: Option<&str>,
        report: Report<'_, '_>,
    ) -> PyResult<()> {
        let path = path_of(path, "path")?;
        let share = share.map(Share::parse).transpose().or_raise()?;
        self.long_work(py, report, move |store, watch| {
            store.backup(&absolute(&path).unwrap_or(path), share, watch)
        })
    }

    fn check(&self, py: Python<'_>, report: Report<'_, '_>) -> PyResult<()> {
        self.long_work(py, report, Store::check)
    }
}
