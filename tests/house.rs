//! The house is as it is drawn: every path in the source that leads out of its room is held against
//! the table of who may know whom. Arrows point down only.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Room, and the rooms that it may know. `error` stands also for its re-exports at the crate's root.
const ARROWS: [(&str, &[&str]); 11] = [
    ("error", &[]),
    ("clock", &[]),
    ("http", &["error", "clock"]),
    ("auth", &["error", "clock", "http"]),
    ("data", &["error"]),
    ("client", &["error", "clock", "http", "auth", "data"]),
    ("store", &["error", "http", "data"]),
    ("sync", &["error", "clock", "http", "data", "client", "store"]),
    ("settings", &["error"]),
    ("sandbox", &["clock"]),
    (
        "python",
        &[
            "error", "clock", "http", "auth", "data", "client", "store", "sync", "settings",
            "sandbox",
        ],
    ),
];

/// What would lead out of a room unseen: another name for the crate's root, or a file from elsewhere.
const UNSEEN: [&str; 6] =
    ["extern crate", "crate as ", "crate::{self", "crate::*", "include!(", "#[path = \".."];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The code of a source text: without comments, each stretch of blanks one blank, none around `::`
/// and braces.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    let words = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    ["::", "{", "}"].into_iter().fold(words, |code, sign| {
        code.replace(&format!(" {sign}"), sign).replace(&format!("{sign} "), sign)
    })
}

/// The rooms that a code names. `depth` is how many modules lie between the crate's root and the
/// file: that many `super::` lead to the root.
fn rooms_named(code: &str, depth: usize) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for (start, _) in code.match_indices("crate::").filter(|(start, _)| begins(code, *start)) {
        rooms.extend(first_names(&code[start + "crate::".len()..]));
    }
    for (start, _) in code.match_indices("super::").filter(|(start, _)| begins(code, *start)) {
        let mut rest = &code[start..];
        let mut steps = 0;
        while let Some(further) = rest.strip_prefix("super::") {
            (rest, steps) = (further, steps + 1);
        }
        if steps >= depth + modules_open(&code[..start]) {
            rooms.extend(first_names(rest));
        }
    }
    rooms
}

/// True where a path begins, not the tail of a longer name or path. A macro's `$crate` is a path.
fn begins(code: &str, start: usize) -> bool {
    !code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
}

/// How many modules are written in this file around the end of this code.
fn modules_open(code: &str) -> usize {
    let mut open = Vec::new();
    for (at, brace) in code.match_indices(['{', '}']) {
        if brace == "}" {
            open.pop();
        } else {
            let mut words = code[..at].rsplit([' ', ';', '{', '}', ']']);
            let is_module = words.next().is_some() && words.next() == Some("mod");
            open.push(is_module);
        }
    }
    open.into_iter().filter(|is_module| *is_module).count()
}

/// The names that follow a path's `::`: one, or those of a list.
fn first_names(rest: &str) -> BTreeSet<String> {
    let Some(list) = rest.strip_prefix('{') else { return room(rest).into_iter().collect() };
    let mut rooms = BTreeSet::new();
    let (mut depth, mut item) = (0, String::new());
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => rooms.extend(room(&std::mem::take(&mut item))),
            _ if depth == 0 => item.push(c),
            _ => {}
        }
    }
    rooms.extend(room(&item));
    rooms
}

fn room(path: &str) -> Option<String> {
    let name: String =
        path.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    match name.as_str() {
        "" | "VERSION" => None,
        "Error" | "Kind" | "Result" => Some("error".to_owned()),
        _ => Some(name),
    }
}

/// How many modules lie between the crate's root and this file's own: `data/mod.rs` 1,
/// `data/page.rs` 2.
fn depth(source: &Path, file: &Path) -> usize {
    let path = file.strip_prefix(source).expect("a file of the source");
    path.components().count() - usize::from(path.ends_with("mod.rs"))
}

#[test]
fn every_room_knows_only_the_rooms_that_it_may_know() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    let mut read = 0;
    for (name, known) in ARROWS {
        let mut files = Vec::new();
        let folder = source.join(name);
        if folder.is_dir() {
            sources(&folder, &mut files);
        } else {
            files.push(source.join(format!("{name}.rs")));
        }
        for file in files {
            let code = code(&fs::read_to_string(&file).expect("a readable source"));
            read += 1;
            for other in rooms_named(&code, depth(&source, &file)) {
                if other != name && !known.contains(&other.as_str()) {
                    wrong.push(format!("{} knows {other}", file.display()));
                }
            }
            for way in UNSEEN.into_iter().filter(|way| code.contains(way)) {
                wrong.push(format!("{} has {way:?}, which hides whom it knows", file.display()));
            }
        }
    }
    assert!(read > 20, "only {read} sources were read");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_room_is_in_the_table() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(source).expect("the source folder") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        assert!(
            name == "lib" || ARROWS.iter().any(|(room, _)| *room == name),
            "{name} is in no row of the table"
        );
    }
}

#[test]
fn the_map_of_the_crate_is_this_table() {
    let map = include_str!("../src/lib.rs");
    for (room, known) in ARROWS {
        let cells = |line: &'static str| line.split('|').map(str::trim).collect::<Vec<_>>();
        let row = map
            .lines()
            .map(cells)
            .find(|cells| cells.len() == 5 && cells[1].trim_matches(['[', ']', '`']) == room);
        let row = row.unwrap_or_else(|| panic!("{room} is not on the map in src/lib.rs"));
        let drawn: BTreeSet<_> = row[3].split(", ").filter(|room| *room != "-").collect();
        let known = known.iter().copied().collect();
        assert!(drawn == known || drawn == ["all"].into() && room == "python", "{room}: {drawn:?}");
    }
}

#[test]
fn the_reader_of_this_test_sees_every_form_of_a_path() {
    let text = "use crate::{auth::Key, error::{Error, Kind}, VERSION};\n\
                // crate::python is only spoken of\n\
                fn f() -> crate::Result<()> { crate :: http::send() }\n\
                macro_rules! m { () => { $crate::client::Client } }\n\
                use crate::\n    settings::Environment;\n\
                use other_crate::clock;";
    let rooms: Vec<String> = rooms_named(&code(text), 2).into_iter().collect();
    assert_eq!(rooms, ["auth", "client", "error", "http", "settings"]);
}

#[test]
fn the_reader_of_this_test_counts_the_steps_up() {
    let text = "use super::own; use super::super::http::Body;\n\
                use super::super::{auth, data::Query};\n\
                #[cfg(test)] mod tests { fn f() { if a { b } } use super::super::near;\n\
                use super::super::super::client::Client; }\n\
                fn g() { super::super::settings::read() }";
    let rooms: Vec<String> = rooms_named(&code(text), 2).into_iter().collect();
    assert_eq!(rooms, ["auth", "client", "data", "http", "settings"]);
    for way in ["use crate as c;", "use crate::{self as c};", "extern crate self as c;"] {
        assert!(UNSEEN.into_iter().any(|unseen| code(way).contains(unseen)), "{way}");
    }
}
