//! Parses the source from `lib.rs` on: modules, the names that they bind, paths, and functions.

use std::mem::replace;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, Item, Lit, Signature, UseTree};

use crate::source::{Binding, File, Kind, Mention, Node, Source, Texts};
use crate::systems::Systems;

pub(crate) fn read(texts: &Texts) -> Source {
    let at = Place::default();
    let mut reader = Reader { texts, source: Source::default(), at };
    reader.source.nodes.push(Node { is_module: true, ..Node::default() });
    reader.file("lib.rs".to_owned());
    let mut source = reader.source;
    let is_stray = |path: &&String| source.files.iter().all(|file| file.path != **path);
    let strays = texts.keys().filter(is_stray).map(|path| format!("{path}: no module declares it"));
    source.refused.extend(strays.collect::<Vec<_>>());
    source
}

struct Reader<'a> {
    texts: &'a Texts,
    source: Source,
    at: Place,
}

/// The position of the reader.
#[derive(Default)]
struct Place {
    file: usize,
    module: usize,
    /// The folder with the files of child modules: `data/`.
    folder: String,
    /// Whether the source being read is compiled only for tests.
    is_test: bool,
    /// Which systems it is compiled for alone.
    systems: Systems,
}

impl Reader<'_> {
    fn file(&mut self, path: String) {
        let text =
            self.texts.get(&path).unwrap_or_else(|| panic!("{path} is declared, but missing"));
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let name = path.rsplit('/').next().unwrap_or_default();
        self.at.is_test |= path.contains("tests/") || name.starts_with("test_");
        self.at.is_test |= name == "tests.rs" || name.ends_with("_tests.rs");
        self.at.file = self.source.files.len();
        self.source.nodes[self.at.module].file = self.at.file;
        let lines = text.matches('\n').count();
        let test_lines = if self.at.is_test { lines } else { 0 };
        self.source.files.push(File { path, lines, test_lines, functions: Vec::new() });
        self.visit_file(&syntax);
    }

    fn bind(&mut self, name: String, binding: Binding) {
        let names = &mut self.source.nodes[self.at.module].names;
        names.entry(name).or_default().push(binding);
    }

    fn node(&mut self, name: &syn::Ident, is_module: bool) -> usize {
        let (id, file, parent) = (self.source.nodes.len(), self.at.file, self.at.module);
        self.source.nodes.push(Node { file, parent, is_module, ..Node::default() });
        self.bind(name.to_string(), Binding::Node(id));
        id
    }

    /// Reads an item, which its attributes may compile only for tests.
    fn item(&mut self, span: Span, function: Option<&Signature>, read: impl FnOnce(&mut Self)) {
        let lines = |from: Span| span.end().line - from.start().line + 1;
        let outer = self.at.is_test;
        self.part(read);
        let is_test = replace(&mut self.at.is_test, outer);
        let file = &mut self.source.files[self.at.file];
        if is_test && !outer {
            file.test_lines += lines(span);
        }
        if let Some(signature) = function.filter(|_| !is_test) {
            file.functions.push((lines(signature.span()), signature.ident.to_string()));
        }
    }

    /// Reads a part, which its attributes may compile only for some systems.
    fn part(&mut self, read: impl FnOnce(&mut Self)) {
        let outer = self.at.systems;
        read(self);
        self.at.systems = outer;
    }

    fn mention(&mut self, path: Vec<String>, span: Span, kind: Kind) {
        let Place { module, is_test, systems, .. } = self.at;
        let line = span.start().line;
        self.source.mentions.push(Mention { module, path, line, is_test, systems, kind });
    }

    /// Reads a path in code. A single lower-case name that is not called is a variable.
    fn code(&mut self, path: Vec<String>, span: Span, is_called: bool) {
        if path.len() == 1 && ["include", "use", "extern"].contains(&path[0].as_str()) {
            self.refuse("an import by or in a macro", span);
        } else if path.len() > 1 || is_called || path[0].starts_with(char::is_uppercase) {
            self.mention(path, span, Kind::Code);
        }
    }

    fn path(&mut self, path: &syn::Path, is_called: bool) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| segment.ident.to_string());
            self.code(names.collect(), path.span(), is_called);
        }
    }

    fn refuse(&mut self, what: &str, span: Span) {
        let (path, line) = (&self.source.files[self.at.file].path, span.start().line);
        self.source.refused.push(format!("{path}:{line}: {what} hides a link"));
    }

    /// Reads the paths of a use tree, and the names that they bind.
    fn import(&mut self, tree: &UseTree, mut path: Vec<String>, kind: Kind) {
        let (last, name) = match tree {
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, path.clone(), kind));
            }
            UseTree::Path(further) => {
                path.push(further.ident.to_string());
                return self.import(&further.tree, path, kind);
            }
            UseTree::Glob(_) => {
                self.source.nodes[self.at.module].globs.push(path.clone());
                return self.mention(path, tree.span(), kind);
            }
            UseTree::Name(it) => (&it.ident, &it.ident),
            UseTree::Rename(it) => (&it.ident, &it.rename),
        };
        if last != "self" {
            path.push(last.to_string());
        }
        let name = if name == "self" { path.last().cloned() } else { Some(name.to_string()) };
        self.bind(name.unwrap_or_default(), Binding::Import(path.clone()));
        self.mention(path, tree.span(), kind);
    }

    /// Reads the paths among the tokens of a macro or an attribute.
    fn tokens(&mut self, stream: TokenStream) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let is = |at: usize, sign: &str| trees.get(at).is_some_and(|it| it.to_string() == sign);
        let joins = |at: usize| is(at, ":") && is(at + 1, ":");
        let mut next = 0;
        while let Some(tree) = trees.get(next) {
            let (start, span) = (next, tree.span());
            next += 1;
            if let TokenTree::Group(group) = tree {
                self.tokens(group.stream());
            } else if tree.to_string().starts_with("\"crate::") {
                self.refuse("a path in a text", span);
            } else if let TokenTree::Ident(first) = tree {
                let mut path = vec![first.to_string()];
                while let Some(TokenTree::Ident(name)) = trees.get(next + 2).filter(|_| joins(next))
                {
                    path.push(name.to_string());
                    next += 3;
                }
                let is_field = start > 0 && path.len() == 1 && is(start - 1, ".");
                let is_tail = start > 1 && joins(start - 2);
                if !(is_field || is_tail) {
                    let is_called = matches!(trees.get(next), Some(TokenTree::Group(_)));
                    self.code(path, span, is_called);
                }
            }
        }
    }

    /// A module's file, and the folder of its children.
    fn declared(&self, name: &str, attribute: Option<String>) -> (String, String) {
        if let Some(name) = attribute {
            let file = &self.source.files[self.at.file].path;
            let folder = file.rfind('/').map_or("", |end| &file[..=end]);
            return (format!("{folder}{name}"), folder.to_owned());
        }
        let place = format!("{}{name}", self.at.folder);
        let flat = format!("{place}.rs");
        let path = if self.texts.contains_key(&flat) { flat } else { format!("{place}/mod.rs") };
        (path, place + "/")
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if let Some(name) = name_of(item) {
            self.node(name, false);
        }
        let function = if let Item::Fn(it) = item { Some(&it.sig) } else { None };
        self.item(item.span(), function, |reader| visit::visit_item(reader, item));
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let function = if let syn::ImplItem::Fn(it) = item { Some(&it.sig) } else { None };
        self.item(item.span(), function, |reader| visit::visit_impl_item(reader, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let function = item.default.as_ref().map(|_| &item.sig);
        self.item(item.span(), function, |reader| visit::visit_trait_item_fn(reader, item));
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let path = attribute.path();
        let text = attribute.meta.require_list().map_or(String::new(), |it| it.tokens.to_string());
        self.at.systems = self.at.systems | Systems::of_attribute(attribute);
        if path.is_ident("cfg") {
            self.at.is_test |= is_for_tests(&text.replace(' ', ""));
        } else if path.is_ident("cfg_attr") && text.contains("path =") {
            self.refuse("#[path] under a condition", attribute.span());
        } else if !path.is_ident("doc") {
            visit::visit_attribute(self, attribute);
        }
    }

    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        node.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
        let attribute = node.attrs.iter().find_map(path_attribute);
        if attribute.as_ref().is_some_and(|path| path.contains('/')) {
            return self.refuse("#[path] to another folder", node.span());
        }
        let module = self.node(&node.ident, true);
        let Place { file, is_test, systems, .. } = self.at;
        let (path, folder) = self.declared(&node.ident.to_string(), attribute);
        let outer = replace(&mut self.at, Place { file, module, folder, is_test, systems });
        match &node.content {
            Some((_, items)) => items.iter().for_each(|item| self.visit_item(item)),
            None => self.file(path),
        }
        self.at = Place { is_test, ..outer };
    }

    fn visit_item_use(&mut self, node: &'ast syn::ItemUse) {
        node.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
        let is_private = matches!(node.vis, syn::Visibility::Inherited);
        if node.leading_colon.is_none() {
            let kind = if is_private { Kind::Import } else { Kind::Reexport };
            self.import(&node.tree, Vec::new(), kind);
        }
    }

    fn visit_item_extern_crate(&mut self, node: &'ast syn::ItemExternCrate) {
        self.refuse("extern crate", node.span());
    }

    fn visit_token_stream(&mut self, stream: &'ast TokenStream) {
        self.tokens(stream.clone());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.path(path, false);
        visit::visit_path(self, path);
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        self.part(|reader| visit::visit_stmt(reader, statement));
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.part(|reader| visit::visit_arm(reader, arm));
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        call.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
        if let Expr::Path(function) = &*call.func {
            self.path(&function.path, true);
        }
        visit::visit_expr_call(self, call);
    }

    /// The path in `pub(in crate::store)` is not a use.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

fn name_of(item: &Item) -> Option<&syn::Ident> {
    match item {
        Item::Const(it) => Some(&it.ident),
        Item::Enum(it) => Some(&it.ident),
        Item::Fn(it) => Some(&it.sig.ident),
        Item::Macro(it) => it.ident.as_ref(),
        Item::Static(it) => Some(&it.ident),
        Item::Struct(it) => Some(&it.ident),
        Item::Trait(it) => Some(&it.ident),
        Item::Type(it) => Some(&it.ident),
        Item::Union(it) => Some(&it.ident),
        _ => None,
    }
}

/// True for `test` and `all(test, …)`.
fn is_for_tests(condition: &str) -> bool {
    let all = condition.strip_prefix("all(").unwrap_or_default();
    condition == "test" || all.starts_with("test,") || all.ends_with(",test)")
}

/// The file's name in `#[path = "name.rs"]`.
fn path_attribute(attribute: &syn::Attribute) -> Option<String> {
    let pair = attribute.meta.require_name_value().ok().filter(|it| it.path.is_ident("path"))?;
    let Expr::Lit(text) = &pair.value else { return None };
    if let Lit::Str(name) = &text.lit { Some(name.value()) } else { None }
}
