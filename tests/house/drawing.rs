//! The output of `make house`: the modules and folders of the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::circles::{circles, file_circles, ties};
use crate::modules::{ARROWS, FOLDERS, module, reason};
use crate::names::Link;
use crate::source::{File, Source};

const WIDTH: usize = 100;

const HEAD: &str = "\
Lines are counted as by `wc -l`, comments and blank lines included; lines compiled only for tests
are counted separately. A function is counted from its signature to its closing brace.

folder         files  lines  tests  median  largest file        functions  median  largest function
";

/// The arrows between modules and folders, without tests.
pub(crate) fn arrows(links: &[Link]) -> BTreeSet<(&str, &str)> {
    let product = links.iter().filter(|link| !link.is_test);
    let arrows = product.map(|link| (module(&link.from), module(&link.to)));
    arrows.filter(|(from, to)| from != to).collect()
}

pub(crate) fn draw(source: &Source, links: &[Link]) -> String {
    let mut text = HEAD.to_owned();
    let files = source.files.iter();
    let layer: Vec<&File> = files.filter(|file| file.path.starts_with("python/")).collect();
    let core = ARROWS.iter().filter(|(name, _)| *name != "python");
    let names = core.chain(&FOLDERS).map(|(name, _)| *name);
    for name in ["lib"].into_iter().chain(names).chain(["python"]) {
        let files = source.files.iter().filter(|file| module(&file.path) == name);
        text += &row(name, &files.collect::<Vec<_>>());
    }
    text += &row("src/python", &layer);
    text += &row("src", &source.files.iter().collect::<Vec<_>>());

    text += "\nfolder         knows\n";
    let mut known: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let arrows = arrows(links);
    for (from, to) in &arrows {
        known.entry(from).or_default().push(to);
    }
    for (name, known) in known {
        text += &wrapped(&format!("{name:<14} {}", known.join(", ")), 15);
    }
    text += &circle_lines("folders", &circles(arrows), &[]);
    text += &circle_lines("files", &file_circles(links), links);
    text
}

fn product(file: &File) -> usize {
    file.lines - file.test_lines
}

fn row(name: &str, files: &[&File]) -> String {
    let tests: usize = files.iter().map(|file| file.test_lines).sum();
    let product_files = files.iter().filter(|file| product(file) > 0);
    let short = |path: &str| match path.strip_prefix(&format!("{name}/")) {
        Some(rest) => rest.to_owned(),
        None => path.strip_prefix("python/").unwrap_or(path).to_owned(),
    };
    let mut sizes: Vec<_> = product_files.map(|file| (product(file), short(&file.path))).collect();
    let mut functions: Vec<_> = files.iter().flat_map(|file| file.functions.clone()).collect();
    let lines: usize = sizes.iter().map(|(lines, _)| lines).sum();
    let (median, largest) = middle_and_largest(&mut sizes, 20);
    let start = format!("{name:<15}{:>5}{lines:>7}{tests:>7}{median:>8}  {largest}", sizes.len());
    let (median, largest) = middle_and_largest(&mut functions, 21);
    let line = format!("{start:<65}{:>8}{median:>8}  {largest}", functions.len());
    format!("{}\n", line.trim_end())
}

/// The median, and the largest with its name, truncated to `columns`.
fn middle_and_largest(sizes: &mut [(usize, String)], columns: usize) -> (usize, String) {
    sizes.sort();
    let median = sizes.get(sizes.len() / 2).map_or(0, |(lines, _)| *lines);
    let largest = sizes.last().map_or(String::new(), |(lines, name)| format!("{lines:>3} {name}"));
    (median, largest.chars().take(columns).collect())
}

fn circle_lines(of: &str, circles: &[BTreeSet<&str>], links: &[Link]) -> String {
    let mut text = format!("\ncircles of {of}: {}\n", circles.len());
    for circle in circles {
        let names: Vec<&str> = circle.iter().copied().collect();
        let reason = reason(circle).map(|reason| format!(": {reason}")).unwrap_or_default();
        text += &wrapped(&format!("  {}{reason}", names.join(", ")), 2);
        for tie in ties(circle, links) {
            text += &wrapped(&format!("    {tie}"), 6);
        }
    }
    text
}

/// The line, wrapped at spaces; continuation lines are indented.
fn wrapped(line: &str, indent: usize) -> String {
    let mut text = String::new();
    let mut rest = line.to_owned();
    while rest.len() > WIDTH {
        let end = rest[..WIDTH].rfind(' ').expect("a blank to break at");
        let next = format!("{:indent$}{}", "", &rest[end + 1..]);
        let _ = writeln!(text, "{}", &rest[..end]);
        rest = next;
    }
    text + &rest + "\n"
}
