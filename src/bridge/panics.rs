//! The boundary raises panics as an `InternalError` with their place. They never print to stderr.

use std::any::Any;
use std::panic::{Location, set_hook};

use crate::prelude::*;

static LATEST: Mutex<Option<(String, String)>> = Mutex::new(None);

/// The hook applies only to this library.
pub(crate) fn keep_places() {
    set_hook(Box::new(|panic| {
        let place = panic.location().map(shown).unwrap_or_default();
        // Not waited for: the process may have forked while another thread held it.
        if let Some(mut latest) = LATEST.try_lock() {
            *latest = Some((text_of(panic.payload()), place));
        }
    }));
}

pub(crate) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}

/// The place is only known if the hook recorded this panic last.
pub(crate) fn text_and_place_of(panic: &(dyn Any + Send)) -> String {
    let text = text_of(panic);
    match LATEST.try_lock().as_deref() {
        Some(Some((latest, place))) if *latest == text && !place.is_empty() => {
            format!("{text} ({place})")
        }
        _ => text,
    }
}

/// Shortens paths of the build machine, as in `tokio-1.54.1/src/task.rs:7`.
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
