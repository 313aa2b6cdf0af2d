//! Reads which file of a crate refers to which other file of it, from `use` declarations and paths in code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Item, UseTree, Visibility};

use crate::source_tree::rust_files;

/// The path of a module within its crate; empty for the root.
pub(crate) type ModulePath = Vec<String>;

/// A module that has a file of its own.
#[derive(Default)]
struct Module {
    children: BTreeSet<String>,
    /// Names bound by `use`, with the path they stand for as written.
    imports: BTreeMap<String, Vec<String>>,
    glob_imports: Vec<Vec<String>>,
    /// Names that are only passed on by `pub use`: a table of contents, not a dependency.
    reexports: BTreeSet<String>,
    /// Paths of two and more segments in code.
    paths: BTreeSet<Vec<String>>,
    /// Every identifier in code.
    identifiers: BTreeSet<String>,
}

/// The modules of one crate.
pub(crate) struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

/// How deep a chain of re-exports is followed.
const MAX_REEXPORTS: usize = 16;

impl Crate {
    /// Reads the production code below `folder`/src.
    pub(crate) fn read(folder: &Path) -> Self {
        let source = folder.join("src");
        let mut modules: BTreeMap<ModulePath, Module> = BTreeMap::new();
        for file in rust_files().iter().filter(|file| !file.is_test() && !file.path.ends_with("main.rs")) {
            let Ok(path) = file.path.strip_prefix(&source) else { continue };
            let syntax = syn::parse_file(file.production_text()).expect("a Rust file");
            let mut module = Module::default();
            module.add(syntax.items);
            modules.insert(module_path(path), module);
        }
        let paths: Vec<ModulePath> = modules.keys().filter(|path| !path.is_empty()).cloned().collect();
        for path in paths {
            let (name, parent) = path.split_last().expect("it is not the root");
            if let Some(parent) = modules.get_mut(parent) {
                parent.children.insert(name.clone());
            }
        }
        Self { modules }
    }

    /// For every module the other modules of the crate that it refers to. A path through re-exports counts as a
    /// reference to the module that defines the item.
    pub(crate) fn references(&self) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
        let of = |(path, module): (&ModulePath, &Module)| {
            let is_used =
                |name: &String| !module.reexports.contains(name) || module.identifiers.contains(name);
            let imports = module.imports.iter().filter(|(name, _)| is_used(name)).map(|(_, path)| path);
            let items = imports.filter_map(|import| self.definition(path, import, Some(import)));
            let globs = module.glob_imports.iter().filter_map(|import| self.module(path, import));
            let in_code = module.paths.iter().filter_map(|used| self.definition(path, used, None));
            let references: BTreeSet<ModulePath> =
                items.chain(globs).chain(in_code).filter(|other| other != path).collect();
            (path.clone(), references)
        };
        self.modules.iter().map(of).collect()
    }

    /// The module that defines the item at `path` as written in `from`; `None` if the path leads out of the crate or
    /// to a module.
    fn definition(
        &self,
        from: &ModulePath,
        path: &[String],
        import: Option<&[String]>,
    ) -> Option<ModulePath> {
        let (module, rest) = self.follow(from, path, import, 0)?;
        (!rest.is_empty()).then_some(module)
    }

    /// The module that `path` leads to.
    fn module(&self, from: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let (module, rest) = self.follow(from, path, None, 0)?;
        rest.is_empty().then_some(module)
    }

    /// Follows a path to the last module on it; returns that and the segments that remain. `import` is the `use`
    /// declaration being resolved, so that a name is not looked up in itself.
    fn follow(
        &self,
        from: &ModulePath,
        path: &[String],
        import: Option<&[String]>,
        depth: usize,
    ) -> Option<(ModulePath, Vec<String>)> {
        if depth > MAX_REEXPORTS {
            return None;
        }
        let (first, mut rest) = path.split_first()?;
        let mut at = from.clone();
        match first.as_str() {
            "crate" => at = Vec::new(),
            "self" => {}
            "super" => {
                at.pop()?;
            }
            name => {
                let module = self.modules.get(from)?;
                if module.children.contains(name) {
                    at.push(name.to_owned());
                } else {
                    let target =
                        module.imports.get(name).filter(|target| Some(target.as_slice()) != import)?;
                    let joined = [target.as_slice(), rest].concat();
                    return self.follow(from, &joined, Some(target), depth + 1);
                }
            }
        }
        while let Some((next, after)) = rest.split_first() {
            let module = self.modules.get(&at)?;
            if next == "super" {
                at.pop()?;
            } else if module.children.contains(next) {
                at.push(next.clone());
            } else if let Some(target) = module.imports.get(next) {
                let joined = [target.as_slice(), after].concat();
                // An import of another crate's item ends here: this module passes it on.
                return self.follow(&at, &joined, Some(target), depth + 1).or(Some((at, rest.to_vec())));
            } else {
                break;
            }
            rest = after;
        }
        Some((at, rest.to_vec()))
    }
}

impl Module {
    fn add(&mut self, items: Vec<Item>) {
        for item in items {
            match item {
                Item::Use(item) => {
                    let is_reexport = !matches!(item.vis, Visibility::Inherited);
                    self.add_import(&item.tree, &mut Vec::new(), is_reexport);
                }
                Item::Mod(item) => self.add(item.content.map(|(_, items)| items).unwrap_or_default()),
                other => self.add_code(other.to_token_stream()),
            }
        }
    }

    fn add_import(&mut self, tree: &UseTree, prefix: &mut Vec<String>, is_reexport: bool) {
        let mut bind = |name: String, path: Vec<String>| {
            if is_reexport {
                self.reexports.insert(name.clone());
            }
            self.imports.insert(name, path);
        };
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.add_import(&path.tree, prefix, is_reexport);
                prefix.pop();
            }
            UseTree::Name(name) if name.ident == "self" => {
                bind(prefix.last().cloned().unwrap_or_default(), prefix.clone());
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                bind(name.clone(), [prefix.as_slice(), &[name]].concat());
            }
            UseTree::Rename(rename) => {
                let name = rename.ident.to_string();
                bind(rename.rename.to_string(), [prefix.as_slice(), &[name]].concat());
            }
            UseTree::Glob(_) => self.glob_imports.push(prefix.clone()),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_import(tree, prefix, is_reexport);
                }
            }
        }
    }

    /// Notes identifiers and paths, those within macro calls too.
    fn add_code(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        let mut finish = |path: &mut Vec<String>| {
            if path.len() > 1 {
                self.paths.insert(std::mem::take(path));
            }
            path.clear();
        };
        let mut groups = Vec::new();
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        finish(&mut path);
                    }
                    self.identifiers.insert(ident.to_string());
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    groups.push(group.stream());
                    finish(&mut path);
                    colons = 0;
                }
                _ => {
                    finish(&mut path);
                    colons = 0;
                }
            }
        }
        finish(&mut path);
        groups.into_iter().for_each(|group| self.add_code(group));
    }
}

/// `sites/page_cache.rs` is the module `sites::page_cache`.
fn module_path(file: &Path) -> ModulePath {
    let module: PathBuf = if file.ends_with("mod.rs") || file.ends_with("lib.rs") {
        file.parent().unwrap_or(Path::new("")).to_owned()
    } else {
        file.with_extension("")
    };
    module.iter().map(|part| part.to_string_lossy().into_owned()).collect()
}
