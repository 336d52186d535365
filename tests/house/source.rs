//! The source as modules: which file holds each, the names it binds, and the paths written in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Each file's text by its path from `src`, as in `data/cursor.rs`.
pub(crate) type Texts = BTreeMap<String, String>;

#[derive(Default)]
pub(crate) struct Source {
    pub(crate) files: Vec<File>,
    /// The first is the crate's root.
    pub(crate) nodes: Vec<Node>,
    pub(crate) mentions: Vec<Mention>,
    /// What would lead out of a room unseen.
    pub(crate) refused: Vec<String>,
}

#[derive(Default)]
pub(crate) struct File {
    pub(crate) path: String,
    /// As `wc -l` counts: comments and blank lines too.
    pub(crate) lines: usize,
    /// Those of its lines that are compiled for tests only.
    pub(crate) test_lines: usize,
    /// Lines from the signature to the closing brace, and name; without those of tests.
    pub(crate) functions: Vec<(usize, String)>,
}

/// A module, or an item in one.
#[derive(Default)]
pub(crate) struct Node {
    pub(crate) file: usize,
    pub(crate) parent: usize,
    pub(crate) is_module: bool,
    pub(crate) names: BTreeMap<String, Vec<Binding>>,
    pub(crate) globs: Vec<Vec<String>>,
}

/// What a name stands for in its module.
pub(crate) enum Binding {
    Node(usize),
    Import(Vec<String>),
}

/// A path as it is written.
pub(crate) struct Mention {
    pub(crate) module: usize,
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    pub(crate) is_test: bool,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Code,
    Import,
    Reexport,
}

/// Adds every Rust file below a folder.
pub(crate) fn collect(folder: &Path, prefix: &str, found: &mut Texts) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("a readable source");
            found.insert(format!("{prefix}{name}"), text);
        }
    }
}
