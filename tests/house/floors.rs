//! A crate leans only on lower floors, never sideways; and each outside library has one door.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

const FLOORS: [&[&str]; 7] = [
    &["domain"],
    &["contract"],
    &["store", "warehouse", "cache", "queue", "blobs", "outbound", "web", "service"],
    &["sandbox"],
    &["control-plane", "edge-server", "collector", "job-runner"],
    &["local"],
    &["tests"],
];

/// Which of our crates may know a library; everybody else goes through them. Tests may know more.
const DOORS: [(&str, &[&str]); 12] = [
    ("sqlx", &["store"]),
    ("clickhouse", &["warehouse"]),
    ("apalis", &["queue"]),
    ("apalis-core", &["queue"]),
    ("apalis-redis", &["queue"]),
    ("reqwest", &["outbound", "blobs"]),
    ("object_store", &["blobs"]),
    ("zip", &["control-plane", "sandbox"]),
    ("moka", &["cache"]),
    ("redis", &["cache", "queue"]),
    ("libloading", &["sandbox"]),
    ("lettre", &["job-runner"]),
];

fn metadata() -> Metadata {
    MetadataCommand::new().no_deps().exec().expect("cargo metadata")
}

#[test]
fn a_crate_leans_only_on_lower_floors() {
    let floor_of: BTreeMap<&str, usize> = FLOORS
        .iter()
        .enumerate()
        .flat_map(|(floor, crates)| crates.iter().map(move |name| (*name, floor)))
        .collect();
    let mut wrong = Vec::new();
    for package in metadata().packages {
        let name = package.name.to_string();
        let Some(own) = floor_of.get(name.as_str()) else {
            wrong.push(format!("{name} stands on no floor: put it into FLOORS"));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|one| one.kind != DependencyKind::Development) {
            if floor_of.get(dependency.name.as_str()).is_some_and(|floor| floor >= own) {
                wrong.push(format!("{name} must not lean on {}", dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_library_is_known_only_behind_its_door() {
    let mut wrong = Vec::new();
    for package in metadata().packages {
        for dependency in package.dependencies.iter().filter(|one| one.kind != DependencyKind::Development) {
            let door = DOORS.iter().find(|(library, _)| *library == dependency.name);
            if let Some((library, rooms)) = door
                && !rooms.contains(&package.name.as_str())
            {
                wrong.push(format!(
                    "{} must not know {library}; that is for {}",
                    package.name,
                    rooms.join(", ")
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
