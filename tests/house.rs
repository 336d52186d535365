//! The house is as it is drawn: every `crate::` path in the source is held against the table of who
//! may know whom. Arrows point down only.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Room, and the rooms that it may know. `error` stands also for its re-exports at the crate's root.
const ARROWS: [(&str, &[&str]); 9] = [
    ("error", &[]),
    ("clock", &[]),
    ("http", &["error", "clock"]),
    ("auth", &["error", "clock", "http"]),
    ("data", &["error"]),
    ("client", &["error", "clock", "http", "auth", "data"]),
    ("settings", &["error", "auth"]),
    ("sandbox", &["clock"]),
    ("python", &["error", "clock", "http", "auth", "data", "client", "settings", "sandbox"]),
];

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

/// The rooms that a source text names: `crate::http::…`, `use crate::{auth, error::Kind}`.
fn rooms_named(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
        .collect::<Vec<_>>()
        .join("\n");
    let mut rooms = BTreeSet::new();
    for (start, _) in code.match_indices("crate::") {
        if code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[start + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
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
        } else {
            rooms.extend(room(rest));
        }
    }
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
            let text = fs::read_to_string(&file).expect("a readable source");
            read += 1;
            for other in rooms_named(&text) {
                if other != name && !known.contains(&other.as_str()) {
                    wrong.push(format!("{} knows {other}", file.display()));
                }
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
fn the_reader_of_this_test_sees_every_form_of_a_path() {
    let text = "use crate::{auth::Key, error::{Error, Kind}, VERSION};\n\
                // crate::python is only spoken of\n\
                fn f() -> crate::Result<()> { crate::http::send() }";
    let rooms: Vec<String> = rooms_named(text).into_iter().collect();
    assert_eq!(rooms, ["auth", "error", "http"]);
}
