//! [`Whole`]: the whole of a scan, read once and remembered, however many ask for it.

use std::sync::{Arc, Mutex, PoisonError};

use super::page_request::PageRequest;
use super::scan::{ReadFailure, Reading, Scan, Step, Table};
use crate::data::Bookmark;
use crate::error::{Error, Kind, Result};
use crate::http::Deadline;

/// The whole of a scan. Those who ask while it is being read take part in that read, page by page.
/// A failure is not remembered. A read that all who asked have given up stays where it is, and goes
/// on when somebody asks again: its pages are paid for.
#[derive(Debug)]
pub struct Whole {
    scan: Scan,
    slot: Mutex<Slot>,
}

/// How far a whole has been read.
#[derive(Debug, Clone, Default)]
pub struct SoFar {
    /// Where it goes on; `None` where nothing was read, and for what was read to its end.
    pub bookmark: Option<Bookmark>,
    /// What was read, merged.
    pub partial: Option<Arc<Table>>,
    /// True where that is the whole, remembered.
    pub is_whole: bool,
    /// True where the read failed: what it had read is here only, and its [`Whole`] begins anew.
    pub failed: bool,
}

/// One for each process, because a fork may leave the state locked for ever.
#[derive(Debug)]
struct Slot {
    process: u32,
    state: Arc<tokio::sync::Mutex<State>>,
}

/// Held over a step.
#[derive(Debug, Default)]
pub(super) enum State {
    #[default]
    Unread,
    Reading(Box<Reading>),
    Read(Arc<Table>),
}

impl Whole {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(scan: Scan) -> Self {
        let slot = Slot { process: std::process::id(), state: Arc::default() };
        Self { scan, slot: Mutex::new(slot) }
    }

    /// The scan whose whole it is.
    #[must_use]
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// The whole, merged: read now, or remembered.
    ///
    /// # Errors
    /// As [`Reading::step`].
    pub async fn table(&self) -> Result<Arc<Table>, ReadFailure> {
        let deadline = self.scan.deadline();
        loop {
            if let Step::Whole(table) = self.step(deadline).await? {
                return Ok(table);
            }
        }
    }

    /// One step towards the whole: a page more, or the table, which is remembered.
    ///
    /// # Errors
    /// As [`Reading::step`].
    pub async fn step(&self, deadline: Deadline) -> Result<Step<Arc<Table>>, ReadFailure> {
        let state = self.state();
        let mut state = state.lock().await;
        if matches!(*state, State::Unread) {
            *state = State::Reading(Box::new(self.scan.read()?));
        }
        let step = match &mut *state {
            State::Reading(reading) => reading.step(deadline).await,
            State::Read(table) => return Ok(Step::Whole(Arc::clone(table))),
            State::Unread => return Err(Error::new(Kind::Internal, "a read did not begin").into()),
        };
        match step {
            Ok(Step::Page(progress)) => Ok(Step::Page(progress)),
            Ok(Step::Whole(table)) => {
                let table = Arc::new(table);
                *state = State::Read(Arc::clone(&table));
                Ok(Step::Whole(table))
            }
            Err(failure) => {
                *state = State::Unread;
                Err(failure)
            }
        }
    }

    /// After the last step that somebody takes: gives up the page that is asked for already, unless
    /// another caller goes on with it. It is to be dropped where a connection may be.
    #[must_use]
    pub fn rest(&self) -> Option<PageRequest> {
        let state = self.state();
        let mut state = state.try_lock().ok()?;
        match &mut *state {
            State::Reading(reading) => reading.rest(),
            State::Unread | State::Read(_) => None,
        }
    }

    /// Whether a page is asked for already that the next step takes.
    pub(super) fn is_ahead(&self) -> bool {
        let state = self.state();
        let state = state.try_lock();
        matches!(state.as_deref(), Ok(State::Reading(reading)) if reading.is_ahead())
    }

    /// How far it has been read, at this moment. What another caller is reading just now is not seen.
    ///
    /// # Errors
    /// As [`crate::data::Merger::finish`].
    pub fn so_far(&self) -> Result<SoFar> {
        let state = self.state();
        let Ok(state) = state.try_lock() else { return Ok(SoFar::default()) };
        match &*state {
            State::Unread => Ok(SoFar::default()),
            State::Reading(reading) => {
                let (bookmark, partial) = reading.so_far()?;
                Ok(SoFar { bookmark, partial: partial.map(Arc::new), ..SoFar::default() })
            }
            State::Read(table) => {
                let partial = Some(Arc::clone(table));
                Ok(SoFar { partial, is_whole: true, ..SoFar::default() })
            }
        }
    }

    /// Pages that are still to be read, where the whole chain is expected to have so many: none of
    /// what is remembered, and one at least of all else.
    #[must_use]
    pub fn pages_left(&self, expected: Option<u64>) -> Option<u64> {
        let state = self.state();
        let read = match state.try_lock().as_deref() {
            Ok(State::Read(_)) => return Some(0),
            Ok(State::Reading(reading)) if reading.is_done() => return Some(0),
            Ok(State::Reading(reading)) => reading.pages(),
            _ => self.scan.resumed_after_pages(),
        };
        expected.map(|pages| pages.saturating_sub(read).max(1))
    }

    fn state(&self) -> Arc<tokio::sync::Mutex<State>> {
        let process = std::process::id();
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.process != process {
            // What the parent had read is there; what it was reading, it reads for itself.
            let known = match slot.state.try_lock().as_deref() {
                Ok(State::Read(table)) => State::Read(Arc::clone(table)),
                _ => State::Unread,
            };
            *slot = Slot { process, state: Arc::new(tokio::sync::Mutex::new(known)) };
        }
        Arc::clone(&slot.state)
    }
}

#[cfg(test)]
impl Whole {
    /// What a fork leaves: a lock that may be held for ever, and another process number.
    pub(super) fn inherit(&self) -> Arc<tokio::sync::Mutex<State>> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.process = 0;
        Arc::clone(&slot.state)
    }
}
