//! Migrations run while programs of the last release work: none of them breaks those programs or stops them for long, and each
//! release has its row in the database.

mod rules;
mod sql;

use serde_json::Value;

use crate::source_tree::files;
use rules::{Migration, Release};

/// The last migration before the rules.
const BASELINE: i64 = 187;

/// The releases of `migrations/released`, in order.
fn releases() -> Vec<Release> {
    let lists = files(&["migrations/released/*.json"]);
    let read = |text: &str| {
        let list: Value = serde_json::from_str(text).ok()?;
        let number = list["release"].as_i64()?.try_into().ok()?;
        Some(Release { number, name: list["name"].as_str()?.to_owned(), schema: list["schema"].as_i64()? })
    };
    let mut releases: Vec<Release> =
        lists.iter().map(|list| read(&list.text).expect("a list of statements")).collect();
    releases.sort_by_key(|release| release.number);
    releases
}

#[test]
fn migrations_keep_the_last_release_working() {
    let releases = releases();
    let mut migrations: Vec<Migration> = files(&["migrations/postgres/*.sql"])
        .into_iter()
        .filter_map(|file| Migration::new(&file.name(), file.text))
        .filter(|migration| migration.version > BASELINE)
        .collect();
    migrations.sort_by_key(|migration| migration.version);
    assert!(!migrations.is_empty(), "no migration after {BASELINE} found");
    let mut violations: Vec<String> =
        migrations.iter().flat_map(|migration| migration.violations(&releases)).collect();
    violations.extend(rules::missing_releases(&migrations, &releases));
    violations.extend(rules::shared_versions(&migrations));
    assert!(violations.is_empty(), "see deploy/docs/upgrades.md:\n{}", violations.join("\n"));
}
