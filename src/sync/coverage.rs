//! Which ranges of a feed have been read, and when: the windows as a user sees them.

use jiff::Timestamp;

use super::state::State;

/// What is known of a stretch of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowState {
    /// Never read to the end of a chain.
    Unread,
    /// Read; it may still change and is not yet due to be read again.
    Provisional,
    /// Read; the lateness is over, and it waits to be read once more for its final values.
    Settling,
    /// Read after the lateness.
    Settled,
}

/// A stretch of one window, all of it in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Where it begins.
    pub start: Timestamp,
    /// Where it ends.
    pub end: Timestamp,
    /// What is known of it.
    pub state: WindowState,
    /// When the newest chain that read it began, by the service's time.
    pub read_at: Option<Timestamp>,
}

/// The windows from the feed's beginning to `now` less the settle lag, in order, without gaps.
#[must_use]
pub fn windows(state: &State, now: Timestamp) -> Vec<Window> {
    todo!("{state:?} {now}")
}
