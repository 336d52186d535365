//! Panics of the core. No text of one reaches stderr: each is caught at the crossing and raised as an
//! `InternalError`, which names the place.

use std::any::Any;
use std::panic::{Location, set_hook};

use crate::lock::Mutex;

/// The text and the place of the latest panic.
static LATEST: Mutex<Option<(String, String)>> = Mutex::new(None);

/// Keeps the place of a panic, and prints nothing. The hook is that of this library, not of others in the
/// process.
pub(crate) fn keep_places() {
    set_hook(Box::new(|panic| {
        let place = panic.location().map(shown).unwrap_or_default();
        // No thread waits here: the process may have forked while another had the lock.
        if let Some(mut latest) = LATEST.try_lock() {
            *latest = Some((text_of(panic.payload()), place));
        }
    }));
}

/// What a panic says.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}

/// The same, with its place.
pub(crate) fn text_and_place_of(panic: &(dyn Any + Send)) -> String {
    let text = text_of(panic);
    match LATEST.try_lock().as_deref() {
        Some(Some((latest, place))) if *latest == text && !place.is_empty() => {
            format!("{text} ({place})")
        }
        _ => text,
    }
}

/// File and line. Of a path of the machine that built this, only its end: `tokio-1.54.1/src/task.rs:7`.
fn shown(place: &Location<'_>) -> String {
    let file = place.file().replace('\\', "/");
    let end = match (file.split_once("/registry/src/"), file.rsplit_once("/library/")) {
        (Some((_, crates)), _) => crates.split_once('/').map_or(crates, |(_, file)| file),
        (None, Some((_, library))) => library,
        (None, None) if file.starts_with('/') || file.contains(':') => {
            file.rsplit('/').next().unwrap_or_default()
        }
        (None, None) => &file,
    };
    format!("{end}:{}", place.line())
}
