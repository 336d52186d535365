//! The tables of modules and of the folders of the Python layer, and the links that they allow.

use std::collections::BTreeSet;

/// Each module, and the modules that it may know. A re-export at the crate's root counts as its module.
pub(crate) const ARROWS: [(&str, &[&str]); 20] = [
    ("fork", &[]),
    ("lock", &[]),
    ("system", &["fork"]),
    ("files", &[]),
    ("error", &["system"]),
    ("written", &[]),
    ("arrow", &[]),
    ("clock", &["fork", "lock"]),
    ("http", &["fork", "lock", "system", "files", "error", "written", "clock"]),
    ("auth", &["fork", "lock", "system", "files", "error", "clock", "http"]),
    ("agent", &["fork", "lock", "system", "files", "error", "clock", "http", "auth"]),
    ("duration", &["error"]),
    ("data", &["lock", "error", "arrow", "duration"]),
    ("preview", &["data"]),
    ("client", &["fork", "lock", "system", "error", "clock", "http", "auth", "agent", "data"]),
    ("store", &["fork", "lock", "system", "files", "error", "data"]),
    ("sync", &["fork", "lock", "error", "clock", "http", "data", "client", "store"]),
    ("settings", &["system", "error", "written"]),
    ("sandbox", &["lock", "system", "clock", "arrow"]),
    ("python", &["all"]),
];

/// Each folder of `src/python`, and the folders of `src/python` that it may know.
pub(crate) const FOLDERS: [(&str, &[&str]); 8] = [
    ("python/bridge", &[]),
    ("python/convert", &["python/bridge"]),
    ("python/auth", &["python/bridge", "python/convert"]),
    ("python/client", &["python/bridge", "python/convert", "python/auth"]),
    ("python/store", &["python/bridge", "python/convert", "python/client"]),
    ("python/sync", &["python/bridge", "python/convert", "python/client", "python/store"]),
    ("python/agent", &["python/bridge", "python/convert", "python/client"]),
    ("python/sandbox", &["python/bridge", "python/convert", "python/auth", "python/client"]),
];

/// Files that may form a circle, and the reason.
pub(crate) const CIRCLES: [(&[&str], &str); 0] = [];

/// The reason why these files may form a circle.
pub(crate) fn reason(circle: &BTreeSet<&str>) -> Option<&'static str> {
    let named = |files: &[&str]| files.iter().copied().collect::<BTreeSet<_>>() == *circle;
    CIRCLES.iter().find(|(files, _)| named(files)).map(|(_, reason)| *reason)
}

/// The module of a file: `data`, `python/store`; `lib` and `python` for the files that declare them.
pub(crate) fn module(file: &str) -> &str {
    let place = file.trim_end_matches("/mod.rs").trim_end_matches(".rs");
    let steps = if place.starts_with("python/") { 2 } else { 1 };
    match place.match_indices('/').nth(steps - 1) {
        Some((end, _)) => &place[..end],
        None => place,
    }
}

/// Whether a module may know another. `lib.rs` and `python/mod.rs` may know all that they declare.
pub(crate) fn may_know(module: &str, other: &str) -> bool {
    let row = ARROWS.iter().chain(&FOLDERS).find(|(name, _)| *name == module);
    let known = row.map_or(&[][..], |(_, known)| known);
    match module.split_once('/') {
        _ if module == other || module == "lib" || other == "lib" => true,
        Some((layer, _)) if !other.contains('/') => other != layer && may_know(layer, other),
        None if known.contains(&"all") => true,
        _ => known.contains(&other),
    }
}
