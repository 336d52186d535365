//! Tests the reader with small sources: each form of a path, and the links that it must find.

use std::collections::BTreeSet;

use crate::circles::{circles, file_circles, ties};
use crate::modules::{may_know, module};
use crate::reader::read;
use crate::source::Source;

/// A small crate in which `auth/own.rs` has this text.
fn small(text: &str) -> Source {
    source(&[
        ("lib.rs", "mod auth; mod data; mod error; pub use error::Error; pub const V: u8 = 1;"),
        ("error.rs", "pub enum Error { Odd } pub fn fail() {}"),
        ("auth/mod.rs", "mod own; mod near; pub struct Key; pub use self::near::Near;"),
        ("auth/near.rs", "pub struct Near; pub fn near() {}"),
        (
            "data/mod.rs",
            "mod cursor; mod page; mod decode; pub use self::decode::decode; pub struct Own;",
        ),
        ("data/cursor.rs", "pub use super::page::*; pub use crate::data::page::Page as Sheet;"),
        ("data/page.rs", "pub struct Page;"),
        ("data/decode.rs", "mod inner; pub use self::inner::deep; pub fn decode() {}"),
        ("data/decode/inner.rs", "pub fn deep() {}"),
        ("auth/own.rs", text),
    ])
}

fn source(files: &[(&str, &str)]) -> Source {
    read(&files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
}

/// Asserts the links of `auth/own.rs`, as `file name` in the order of the files.
fn assert_known(text: &str, expected: &str) {
    let mut links = small(text).links();
    links.retain(|link| link.from == "auth/own.rs");
    links.dedup_by(|one, other| (&one.to, &one.name) == (&other.to, &other.name));
    let found_links: Vec<_> =
        links.iter().map(|link| format!("{} {}", link.to, link.name)).collect();
    assert_eq!(found_links.join(", "), expected, "{text}");
}

#[test]
fn a_path_leads_to_the_file_that_defines_the_item() {
    for (text, expected) in [
        ("use crate::data::Own;", "data/mod.rs Own"),
        (
            "use crate::data::cursor::Sheet as S; fn f(_: S) {}",
            "data/page.rs S, data/page.rs Sheet",
        ),
        ("use crate::data::page::*; fn f(_: Page) {}", "data/page.rs Page, data/page.rs page"),
        ("use crate::data::cursor::Page;", "data/page.rs Page"),
        (
            "use crate::{data::{Own, cursor::Page}, Error};",
            "data/mod.rs Own, data/page.rs Page, error.rs Error",
        ),
        ("fn f() { crate::data::decode::deep() }", "data/decode/inner.rs deep"),
        (
            "use crate::data as d; fn f() { d::decode(); d::lost() }",
            "data/decode.rs decode, data/mod.rs data, data/mod.rs lost",
        ),
        ("fn f() -> crate :: Error { crate::Error::Odd }", "error.rs Error"),
        ("use super::Near;", "auth/near.rs Near"),
        ("use super::near as by; fn f(_: by::Near) {}", "auth/near.rs Near, auth/near.rs near"),
        ("mod inside { use super::super::{Key, super::V}; }", "auth/mod.rs Key, lib.rs V"),
        ("impl From<crate::Error> for self::Mine {} struct Mine;", "error.rs Error"),
        ("pub(in crate::data) struct S(Vec<super::Near>);", "auth/near.rs Near"),
        ("/// [`crate::data::Own`]\nfn f() { other::data::Own; } // crate::data", ""),
        ("use ::data::Own; use std::fmt;", ""),
        ("#[with(crate::data::Own)] struct S;", "data/mod.rs Own"),
        ("fn f() { g!(a.data, crate::V { b: [super::Key] }) }", "auth/mod.rs Key, lib.rs V"),
        ("macro_rules! m { () => { $crate::error::fail() } }", "error.rs fail"),
        ("fn f() { g!(::error::fail, <T>::error::fail, 'crate: {}) }", ""),
    ] {
        assert_known(text, expected);
    }
}

#[test]
fn a_variable_is_not_taken_for_a_function_of_the_same_name() {
    let module = "mod run; pub use self::run::plan; fn f() {";
    // A re-export alone is a declaration, as `mod` is.
    for (text, links) in [("}", 0), ("let plan = 1; g!(plan.plan(plan)) }", 0), ("plan() }", 1)] {
        let text = format!("{module}{text}");
        let source = source(&[("lib.rs", &text), ("run.rs", "pub fn plan() {}")]);
        assert_eq!(source.links().len(), links, "{text}");
    }
}

#[test]
fn items_that_are_only_for_tests_are_recognised() {
    let text = "\n#[cfg(test)]\nuse crate::b::B;\n#[cfg(not(test))]\nuse crate::b::C;\n\
                impl X {\n    #[cfg(test)]\n    fn g() {}\n    fn h() {\n    }\n}\n\
                #[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;\n";
    let source = source(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", text),
        ("a_tests.rs", "mod more { use crate::b::D; }\n"),
        ("b.rs", "pub struct B; pub struct C; pub struct D;"),
    ]);
    let links = source.links();
    let found_links: Vec<_> =
        links.iter().map(|it| (&*it.from, &*it.name, it.line, it.is_test)).collect();
    assert_eq!(
        found_links,
        [("a.rs", "B", 3, true), ("a.rs", "C", 5, false), ("a_tests.rs", "D", 1, true)]
    );
    let file = &source.files[1];
    assert_eq!(
        (file.lines, file.test_lines, &file.functions[..]),
        (14, 7, &[(2, "h".to_owned())][..])
    );
}

#[test]
fn a_forbidden_arrow_is_found() {
    let wrong =
        crate::forbidden(&small("#[cfg(test)] mod tests { use crate::data::Own; }").links());
    assert_eq!(wrong, ["auth/own.rs:1 knows Own of data/mod.rs"]);
    assert!(crate::forbidden(&small("use crate::{Error, V}; use super::Key;").links()).is_empty());
}

#[test]
fn a_folder_of_the_python_layer_knows_the_core_and_the_folders_below_it() {
    let modules =
        ["python/store/mod.rs", "python/store/feed.rs", "python/mod.rs", "clock.rs"].map(module);
    assert_eq!(modules, ["python/store", "python/store", "python", "clock"]);
    for (from, to) in [("store", "client"), ("bridge", "bridge"), ("sandbox", "auth")] {
        assert!(may_know(&format!("python/{from}"), &format!("python/{to}")));
    }
    assert!(may_know("python/bridge", "sandbox") && may_know("python", "python/sync"));
    for (from, to) in [("client", "store"), ("bridge", "convert"), ("sync", "sandbox")] {
        assert!(!may_know(&format!("python/{from}"), &format!("python/{to}")));
    }
    assert!(!may_know("python/bridge", "python") && !may_know("sync", "python/sync"));
}

#[test]
fn a_circle_is_found_with_the_names_that_connect_it() {
    assert!(file_circles(&small("use super::Key;").links()).is_empty());
    let links = source(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B; pub struct A; #[cfg(test)] mod tests { use crate::c::C; }"),
        ("b.rs", "pub struct B; fn f() { crate::c::C::new() }"),
        ("c.rs", "pub struct C(super::a::A);"),
    ])
    .links();
    let found = file_circles(&links);
    assert_eq!(found, [BTreeSet::from(["a.rs", "b.rs", "c.rs"])]);
    assert_eq!(ties(&found[0], &links), ["a.rs -> b.rs: B", "b.rs -> c.rs: C", "c.rs -> a.rs: A"]);
    let two = circles([("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "c"), ("e", "a")]);
    assert_eq!(two, [BTreeSet::from(["a", "b"]), BTreeSet::from(["c", "d"])]);
}

#[test]
fn imports_that_hide_a_link_are_refused() {
    for text in [
        "extern crate self as c;",
        "use crate as c;",
        "use crate::{self as c};",
        "use crate::*;",
        "use super::super as up;",
        "macro_rules! m { () => { use crate as c; } }",
        "#[with(\"crate::data::Own\")] struct S;",
        "include!(\"elsewhere.rs\");",
        "fn f() { g!(include!(\"elsewhere.rs\")) }",
        "#[path = \"../data/mod.rs\"] mod other;",
        "#[cfg_attr(unix, path = \"../data/mod.rs\")] mod other {}",
    ] {
        assert_eq!(small(text).hidden().len(), 1, "{text}");
    }
    assert_eq!(small("use crate::data; use super::super::V;").hidden(), [""; 0]);
    let stray = source(&[("lib.rs", "mod a;"), ("a/mod.rs", ""), ("b.rs", "")]);
    assert_eq!(stray.hidden(), ["b.rs: no module declares it"]);
}
