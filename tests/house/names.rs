//! Resolves a path to the file that defines the item, through imports and re-exports.

use std::collections::BTreeSet;

use crate::source::{Binding, Kind, Mention, Source};

/// The most imports and re-exports between a name and its item.
const STEPS: usize = 8;

/// A use of an item of another file.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) is_test: bool,
}

impl Source {
    /// Every use of one file by another. A module's re-export of an item of its own children does
    /// not count: it is a declaration, as `mod` is.
    pub(crate) fn links(&self) -> Vec<Link> {
        let mut links = BTreeSet::new();
        for mention in &self.mentions {
            let from = self.path(mention.module);
            let children = ["lib.rs", "mod.rs"].into_iter().find_map(|end| from.strip_suffix(end));
            let children = children.map_or(from.replace(".rs", "/"), str::to_owned);
            for node in self.targets(mention) {
                let to = self.path(node);
                let declares = mention.kind == Kind::Reexport && to.starts_with(&children);
                if from != to && !declares {
                    let Mention { line, is_test, .. } = *mention;
                    let (from, to, name) = (from.to_owned(), to.to_owned(), item(&mention.path));
                    links.insert(Link { from, to, name, line, is_test });
                }
            }
        }
        links.into_iter().collect()
    }

    /// Source that could hide a link: what the reader refused, and aliases of the crate's root.
    pub(crate) fn hidden(&self) -> Vec<String> {
        let imports = self.mentions.iter().filter(|mention| mention.kind != Kind::Code);
        let roots = imports.filter(|mention| self.targets(mention).contains(&0));
        let aliases = roots.map(|it| {
            format!("{}:{}: another name for the crate's root", self.path(it.module), it.line)
        });
        self.refused.iter().cloned().chain(aliases).collect()
    }

    fn path(&self, node: usize) -> &str {
        &self.files[self.nodes[node].file].path
    }

    fn targets(&self, mention: &Mention) -> BTreeSet<usize> {
        let mut found = self.resolve(mention.module, &mention.path, STEPS);
        if mention.kind == Kind::Code && mention.path.len() == 1 {
            found.retain(|node| !self.nodes[*node].is_module); // A module is no value.
        }
        found
    }

    fn resolve(&self, module: usize, path: &[String], steps: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([module]);
        for (at, name) in path.iter().enumerate() {
            // Before `::` a name is a module, even if a function has the same name.
            if found.iter().any(|node| self.nodes[*node].is_module) {
                found.retain(|node| self.nodes[*node].is_module);
            }
            let step = |node: usize| match name.as_str() {
                "crate" => [0].into(),
                "self" => [node].into(),
                "super" => [self.nodes[node].parent].into(),
                name => match self.lookup(node, name, steps) {
                    // A variant, a method, or what a macro defines: it is in the same file.
                    Some(found) if found.is_empty() && at > 0 => [node].into(),
                    found => found.unwrap_or_default(),
                },
            };
            found = found.into_iter().flat_map(step).collect();
        }
        found
    }

    /// Looks up a name in the scope of a module; `None` after too many steps.
    fn lookup(&self, module: usize, name: &str, steps: usize) -> Option<BTreeSet<usize>> {
        let steps = steps.checked_sub(1)?;
        let node = &self.nodes[module];
        if let Some(bindings) = node.names.get(name) {
            let found = bindings.iter().flat_map(|binding| match binding {
                Binding::Node(id) => [*id].into(),
                Binding::Import(path) => self.resolve(module, path, steps),
            });
            return Some(found.collect());
        }
        let from = node.globs.iter().flat_map(|path| self.resolve(module, path, steps));
        Some(from.filter_map(|module| self.lookup(module, name, steps)).flatten().collect())
    }
}

/// The item that the file defines, not a member of it: `Kind` for `Kind::ConfigError`.
fn item(path: &[String]) -> String {
    let upper = path.iter().find(|name| name.starts_with(char::is_uppercase));
    upper.or(path.last()).cloned().unwrap_or_default()
}
