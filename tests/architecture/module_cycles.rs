//! No file of a crate depends on itself through other files of the crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::module_paths::{Crate, ModulePath};
use crate::source_tree::crate_folders;

type References = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// Everything that can be reached from a module.
fn reachable(references: &References, from: &ModulePath) -> BTreeSet<ModulePath> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&ModulePath> = references[from].iter().collect();
    while let Some(module) = next.pop() {
        if found.insert(module.clone()) {
            next.extend(references.get(module).into_iter().flatten());
        }
    }
    found
}

/// The references that are part of a cycle.
fn cyclic(references: &References) -> Vec<(ModulePath, ModulePath)> {
    let reachable: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
        references.keys().map(|module| (module, reachable(references, module))).collect();
    let is_cyclic =
        |from: &ModulePath, to: &ModulePath| reachable.get(to).is_some_and(|set| set.contains(from));
    let all = references.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    all.filter(|(from, to)| is_cyclic(from, to)).map(|(from, to)| (from.clone(), to.clone())).collect()
}

#[test]
fn no_crate_has_a_module_cycle() {
    let mut violations = Vec::new();
    let mut references_read = 0;
    for folder in crate_folders() {
        let references = Crate::read(&folder).references();
        references_read += references.values().map(BTreeSet::len).sum::<usize>();
        for (from, to) in cyclic(&references) {
            violations.push(format!("{}: {} -> {}", folder.display(), from.join("::"), to.join("::")));
        }
    }
    assert!(references_read > 500, "only {references_read} references found");
    assert!(violations.is_empty(), "{} references in cycles:\n{}", violations.len(), violations.join("\n"));
}

#[test]
fn a_cycle_over_three_modules_is_found() {
    let module = |name: &str| vec![name.to_owned()];
    let references: References = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]
        .map(|(from, to)| (module(from), BTreeSet::from([module(to)])))
        .into();
    let found = cyclic(&references);
    assert_eq!(found, [("a", "b"), ("b", "c"), ("c", "a")].map(|(from, to)| (module(from), module(to))));
}
