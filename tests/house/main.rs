//! Checks the architecture: every path in the source is resolved to the file that defines the item,
//! and compared with the tables in `modules.rs`. Arrows point down only. `make house` prints the
//! result.

mod circles;
mod drawing;
mod examples;
mod modules;
mod names;
mod reader;
mod source;
mod systems;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use crate::modules::{ARROWS, CIRCLES, FOLDERS, may_know, module};
use crate::names::Link;
use crate::source::{Source, Texts};

/// The source of this crate, and the links between its files.
static HOUSE: LazyLock<(Source, Vec<Link>)> = LazyLock::new(|| {
    let mut texts = Texts::new();
    source::collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut texts);
    let source = reader::read(&texts);
    let links = source.links();
    (source, links)
});

/// A line for each link that no table allows, tests included.
fn forbidden(links: &[Link]) -> Vec<String> {
    let wrong = links.iter().filter(|it| !may_know(module(&it.from), module(&it.to)));
    wrong.map(|it| format!("{}:{} knows {} of {}", it.from, it.line, it.name, it.to)).collect()
}

#[test]
fn every_room_knows_only_the_rooms_that_it_may_know() {
    let (source, links) = &*HOUSE;
    let wrong = forbidden(links);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(source.files.len() > 100 && links.len() > 500, "too few files or links were found");
}

#[test]
fn no_import_hides_a_link() {
    let hidden = HOUSE.0.hidden();
    assert!(hidden.is_empty(), "{hidden:#?}");
}

#[test]
fn what_one_system_has_is_compiled_for_it_alone() {
    let wrong = HOUSE.0.unportable();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_room_is_in_the_table() {
    for file in &HOUSE.0.files {
        let module = module(&file.path);
        let is_drawn = ARROWS.iter().chain(&FOLDERS).any(|(name, _)| *name == module);
        assert!(is_drawn || module == "lib", "{} is in no row", file.path);
    }
}

#[test]
fn no_folders_know_each_other_in_a_circle() {
    let circles = circles::circles(drawing::arrows(&HOUSE.1));
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn no_files_know_each_other_in_a_circle() {
    let links = &HOUSE.1;
    let found = circles::file_circles(links);
    let new = found.iter().filter(|circle| modules::reason(circle).is_none());
    let new: Vec<_> = new.map(|circle| circles::ties(circle, links)).collect();
    assert!(new.is_empty(), "{new:#?}");
    assert_eq!(found.len(), CIRCLES.len(), "a circle in the list no longer exists");
}

/// The sandbox is a feature: without it, nothing else may miss it.
#[test]
fn only_the_folder_of_the_sandbox_knows_the_sandbox() {
    let known_by = |name: &str| -> BTreeSet<&str> {
        let from = HOUSE.1.iter().filter(|link| module(&link.to) == name);
        from.map(|link| module(&link.from)).filter(|from| *from != name).collect()
    };
    assert_eq!(known_by("sandbox"), BTreeSet::from(["python/sandbox"]));
    assert_eq!(known_by("python/sandbox"), BTreeSet::from(["python"]));
}

#[test]
fn the_map_in_lib_rs_agrees_with_the_table() {
    let map = include_str!("../../src/lib.rs");
    for (module, known) in ARROWS {
        let row = map.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        let mut row = row.filter(|cells| cells.len() == 5);
        let row = row.find(|cells| cells[1].trim_matches(['[', ']', '`']) == module);
        let row = row.unwrap_or_else(|| panic!("{module} is not on the map in src/lib.rs"));
        let drawn: BTreeSet<_> = row[3].split(", ").filter(|module| *module != "-").collect();
        assert_eq!(drawn, known.iter().copied().collect(), "{module}");
    }
}

/// `make house` runs only this test, to show its output.
#[test]
#[expect(clippy::print_stdout, reason = "make house shows the output")]
fn the_house_is_printed() {
    let (source, links) = &*HOUSE;
    let text = drawing::draw(source, links);
    println!("\n{text}");
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(wide.is_empty(), "{wide:#?}");
}
