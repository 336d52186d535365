//! What only one kind of system has stands where it is compiled for that kind alone: the crate is
//! built on Unix, and Windows would be the first to notice.

use std::ops::{BitAnd, BitOr};

use syn::punctuated::Punctuated;
use syn::{Expr, Lit, Meta, Token};

use crate::source::{Mention, Source};

/// The kinds of systems that source is compiled for alone.
#[derive(Clone, Copy, Default)]
pub(crate) struct Systems {
    unix: bool,
    windows: bool,
}

impl BitOr for Systems {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self { unix: self.unix | other.unix, windows: self.windows | other.windows }
    }
}

impl BitAnd for Systems {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self { unix: self.unix & other.unix, windows: self.windows & other.windows }
    }
}

impl Systems {
    /// Those of `#[cfg(…)]`; none for another attribute.
    pub(crate) fn of_attribute(attribute: &syn::Attribute) -> Self {
        let is_condition = attribute.path().is_ident("cfg");
        let condition = is_condition.then(|| attribute.parse_args::<Meta>().ok()).flatten();
        condition.map_or(Self::default(), |condition| Self::of_condition(&condition))
    }

    fn of_condition(condition: &Meta) -> Self {
        let parts = |list: &syn::MetaList| {
            let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            parts.into_iter().flatten().map(|part| Self::of_condition(&part)).collect::<Vec<_>>()
        };
        match condition {
            Meta::Path(path) => {
                Self { unix: path.is_ident("unix"), windows: path.is_ident("windows") }
            }
            Meta::NameValue(pair) if pair.path.is_ident("target_os") => {
                let Expr::Lit(text) = &pair.value else { return Self::default() };
                let windows = matches!(&text.lit, Lit::Str(name) if name.value() == "windows");
                Self { unix: !windows, windows }
            }
            Meta::List(list) if list.path.is_ident("all") => {
                parts(list).into_iter().fold(Self::default(), Self::bitor)
            }
            Meta::List(list) if list.path.is_ident("any") => {
                parts(list).into_iter().reduce(Self::bitand).unwrap_or_default()
            }
            _ => Self::default(),
        }
    }

    fn allows(self, path: &[String]) -> bool {
        let begins = |names: &[&str]| {
            path.len() >= names.len() && path.iter().zip(names).all(|(a, b)| a == b)
        };
        let of_unix = [&["std", "os", "unix"][..], &["std", "os", "linux"], &["nix"], &["libc"]];
        let of_windows = [&["std", "os", "windows"][..], &["windows_sys"]];
        (self.unix || !of_unix.into_iter().any(begins))
            && (self.windows || !of_windows.into_iter().any(begins))
    }
}

impl Source {
    /// A line for each path that other systems do not have.
    pub(crate) fn unportable(&self) -> Vec<String> {
        let wrong = self.mentions.iter().filter(|it| !it.systems.allows(&it.path));
        let mut lines: Vec<String> = wrong.map(|it| self.line_of(it)).collect();
        lines.dedup();
        lines
    }

    fn line_of(&self, mention: &Mention) -> String {
        let file = &self.files[self.nodes[mention.module].file].path;
        format!("{file}:{}: {} is not on every system", mention.line, mention.path.join("::"))
    }
}

#[cfg(test)]
mod tests {
    use crate::reader::read;

    /// What is found in a crate of two files.
    fn found(lib: &str, own: &str) -> Vec<String> {
        let texts = [("lib.rs", lib), ("own.rs", own)];
        read(&texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into()).unportable()
    }

    #[test]
    fn a_path_of_one_system_is_found_outside_its_condition() {
        for text in [
            "use std::os::unix::fs::chown;",
            "use std::{fs, os::unix::ffi::OsStrExt as _};",
            "use nix::libc;",
            "fn f() { libc::getpid(); }",
            "fn f() { nix::unistd::getpid() }",
            "fn f() { g!(nix::unistd::getpid()) }",
            "#[cfg(windows)] use std::os::unix::fs::chown;",
            "#[cfg(not(unix))] use std::os::unix::fs::chown;",
            "#[cfg(any(unix, test))] use std::os::unix::fs::chown;",
            "#[cfg(unix)] use std::fs; use std::os::unix::fs::chown;",
            "#[cfg(unix)] mod a {} mod b { use nix::unistd; }",
            "fn f() { #[cfg(unix)] one(); nix::two(); }",
            "fn f() { #[cfg(unix)] { one() } nix::two(); }",
            "fn f() { match 1 { #[cfg(unix)] 1 => one(), _ => nix::two() } }",
            "struct S; impl S { #[cfg(unix)] fn f() {} fn g() { nix::two() } }",
            "fn f() { if cfg!(unix) { nix::two() } }",
            "use std::os::windows::fs::MetadataExt;",
            "#[cfg(unix)] use std::os::windows::fs::MetadataExt;",
        ] {
            assert_eq!(found("mod own;", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn under_its_condition_it_is_as_it_should_be() {
        for text in [
            "#[cfg(unix)] use std::os::unix::fs::chown;",
            "#[cfg(target_os = \"linux\")] fn f() { nix::two(); libc::three() }",
            "#[cfg(all(test, unix))] use nix::unistd;",
            "#[cfg(any(target_os = \"linux\", target_os = \"macos\"))] use nix::unistd;",
            "#[cfg(unix)] mod a { mod b { use nix::unistd; } }",
            "fn f() { #[cfg(unix)] nix::two(1); #[cfg(unix)] { use nix::unistd; } three() }",
            "fn f() { #[cfg(unix)] let a = nix::two(); }",
            "fn f() { #[cfg(unix)] return nix::two(); }",
            "fn f() { match 1 { #[cfg(unix)] 1 => nix::two(), _ => one() } }",
            "struct S; impl S { #[cfg(unix)] fn f() { nix::two() } }",
            "#[cfg(windows)] use std::os::windows::fs::MetadataExt;",
            "use std::os::raw::c_int; use unix::filesystem; fn f() { own::nix::two() }",
        ] {
            assert_eq!(found("mod own;", text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn the_condition_of_a_module_in_another_file_counts() {
        let text = "use std::os::unix::fs::chown;";
        assert_eq!(found("#[cfg(unix)] mod own;", text), Vec::<String>::new());
        let wrong = ["own.rs:1: std::os::unix::fs::chown is not on every system"];
        assert_eq!(found("#[cfg(unix)] mod other {} mod own;", text), wrong);
    }
}
