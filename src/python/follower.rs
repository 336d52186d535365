//! [`Follower`]: one chain that Python reads, one page ahead of whoever takes them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::client::pages::{Pages, Taken};
use crate::client::scan::{Provenance, ReadFailure};
use crate::error::Result;
use crate::python::logging::CommonDesk;
use crate::python::progress::{Reporter, end};
use crate::python::runtime::{Aside, asides, block_on_at, spawn_at};
use crate::python::scan::read_failure;

/// Follows one chain. While whoever has a page works on it, the next comes.
///
/// What goes on aside holds the chain and the desk and nothing else: with the follower it ends, and
/// with it its request. What is said of a page, ahead or not, lies on the one desk until somebody
/// waits for that page or takes it.
pub(crate) struct Follower {
    pages: Arc<Pages>,
    desk: CommonDesk,
    ahead: Mutex<Option<Aside>>,
    /// How many wait for the next page.
    waiting: AtomicUsize,
}

impl Follower {
    pub(crate) fn new(pages: Pages) -> Arc<Self> {
        Arc::new(Self {
            pages: Arc::new(pages),
            desk: CommonDesk::default(),
            ahead: Mutex::new(None),
            waiting: AtomicUsize::new(0),
        })
    }

    pub(crate) fn provenance(&self) -> &Provenance {
        self.pages.provenance()
    }

    /// As [`Pages::check_process`].
    pub(crate) fn check_process(&self) -> Result<()> {
        self.pages.check_process()
    }

    /// Takes the next page, where it is here and was heard of. Does not wait, runs no Python code.
    pub(crate) fn take(&self) -> Taken {
        self.pages.take_heard()
    }

    /// After a page was taken: reads the next one, unless that is under way. Where it cannot be read
    /// ahead, it is read when it is asked for.
    pub(crate) fn read_ahead(&self, py: Python<'_>) {
        if !self.pages.begins_ahead() {
            return;
        }
        let Ok(Some(asides)) = asides(py) else { return };
        let mut ahead = self.ahead();
        if let Some(turn) = self.pages.begin_ahead() {
            let pages = Arc::clone(&self.pages);
            // The one before is over.
            *ahead =
                Some(asides.begin(self.desk.get(), async move { pages.read_ahead(turn).await }));
        }
    }

    /// Waits until the next page is here, and hears of it.
    ///
    /// # Errors
    /// Why it did not come; what a handler of `logging`, `progress=` or Ctrl-C raised, which loses no
    /// page.
    pub(crate) fn wait(
        self: &Arc<Self>,
        py: Python<'_>,
        reporter: Option<&Reporter>,
    ) -> PyResult<()> {
        // Where every page is here already, no wait would hear of Ctrl-C.
        py.check_signals()?;
        if self.hear(py, reporter)? {
            return Ok(());
        }
        match block_on_at(py, &self.desk.get(), self.fill())? {
            Ok(()) => self.hear(py, reporter).map(drop),
            Err(failure) => {
                end(py, reporter)?;
                Err(read_failure(py, failure))
            }
        }
    }

    /// An awaitable of the running asyncio loop: until the next page is here, to be heard of.
    pub(crate) fn awaited<'py>(self: &Arc<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        spawn_at(py, self.desk.get(), self.fill(), |py, filled| {
            filled.map(|()| py.None()).map_err(|failure| read_failure(py, failure))
        })
    }

    /// Where a page is here that nobody heard of: hands over what was said while it was read, and
    /// tells of it whoever wants to know. Whether there was one.
    ///
    /// # Errors
    /// What a handler of `logging` or `progress=` raised; the page is held.
    pub(crate) fn hear(&self, py: Python<'_>, reporter: Option<&Reporter>) -> PyResult<bool> {
        if !self.pages.has_news() {
            return Ok(false);
        }
        self.desk.get().clear(py)?;
        if let (Some(progress), Some(reporter)) = (self.pages.news(), reporter) {
            reporter.tell(py, &progress)?;
        }
        Ok(true)
    }

    /// Waits from now on, whether or not the future comes to its first step.
    fn fill(self: &Arc<Self>) -> impl Future<Output = Result<(), ReadFailure>> + Send + 'static {
        let waiting = Waiting::begin(self);
        async move {
            let filled = waiting.follower.pages.fill().await;
            waiting.end();
            filled
        }
    }

    fn ahead(&self) -> MutexGuard<'_, Option<Aside>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody waits for the next page. Dropped before that is here, the last one who waits gives up
/// what was begun ahead too.
struct Waiting {
    follower: Arc<Follower>,
    is_over: bool,
}

impl Waiting {
    fn begin(follower: &Arc<Follower>) -> Self {
        follower.waiting.fetch_add(1, Ordering::SeqCst);
        Self { follower: Arc::clone(follower), is_over: false }
    }

    fn end(mut self) {
        self.is_over = true;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let others = self.follower.waiting.fetch_sub(1, Ordering::SeqCst) > 1;
        if self.is_over || others {
            return;
        }
        let mut ahead = self.follower.ahead();
        if ahead.take().is_some() {
            self.follower.pages.give_up_ahead();
        }
    }
}
