//! The parsed source: modules with their files, the names they bind, and the paths they use.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::systems::Systems;

/// The text of each file by its path below `src`, such as `data/cursor.rs`.
pub(crate) type Texts = BTreeMap<String, String>;

#[derive(Default)]
pub(crate) struct Source {
    pub(crate) files: Vec<File>,
    /// The first node is the crate's root.
    pub(crate) nodes: Vec<Node>,
    pub(crate) mentions: Vec<Mention>,
    /// Source that could hide a link.
    pub(crate) refused: Vec<String>,
}

#[derive(Default)]
pub(crate) struct File {
    pub(crate) path: String,
    /// The number of lines, comments and blank lines included.
    pub(crate) lines: usize,
    /// The number of lines that are compiled only for tests.
    pub(crate) test_lines: usize,
    /// The lines, from the signature to the closing brace, and the name of each function; no tests.
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

/// The meaning of a name in its module.
pub(crate) enum Binding {
    Node(usize),
    Import(Vec<String>),
}

/// A path in the source, unresolved.
pub(crate) struct Mention {
    pub(crate) module: usize,
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    pub(crate) is_test: bool,
    pub(crate) systems: Systems,
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
