//! Public types, traits and functions have docs. Fields, variants and methods need them only where a name says too little.

use syn::{Attribute, Item, Visibility};

use crate::source_tree::rust_files;

fn is_documented(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("doc"))
}

/// The public items among these that lack docs, those of inline modules too.
fn undocumented(items: &[Item]) -> Vec<String> {
    let mut found = Vec::new();
    for item in items {
        let (visibility, attributes, name) = match item {
            Item::Enum(item) => (&item.vis, &item.attrs, &item.ident),
            Item::Fn(item) => (&item.vis, &item.attrs, &item.sig.ident),
            Item::Struct(item) => (&item.vis, &item.attrs, &item.ident),
            Item::Trait(item) => (&item.vis, &item.attrs, &item.ident),
            Item::Type(item) => (&item.vis, &item.attrs, &item.ident),
            Item::Mod(item) => {
                found.extend(item.content.iter().flat_map(|(_, items)| undocumented(items)));
                continue;
            }
            _ => continue,
        };
        if matches!(visibility, Visibility::Public(_)) && !is_documented(attributes) {
            found.push(name.to_string());
        }
    }
    found
}

#[test]
fn public_types_traits_and_functions_have_docs() {
    let mut found = Vec::new();
    for file in rust_files().iter().filter(|file| !file.is_test()) {
        let syntax = syn::parse_file(file.production_text()).expect("Rust");
        found.extend(undocumented(&syntax.items).into_iter().map(|name| format!("{}: {name}", file.name())));
    }
    assert!(found.is_empty(), "without docs:\n{}", found.join("\n"));
}

#[test]
fn an_item_without_docs_is_found() {
    let syntax = syn::parse_file("/// A.\npub struct A;\npub struct B;\nstruct C;\nmod d { pub fn e() {} }")
        .expect("Rust");
    assert_eq!(undocumented(&syntax.items), ["B", "e"]);
}
