//! A crate depends only on lower layers, never on its own, and each outside library has a fixed set of users.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// The crates of each layer, lowest first.
const LAYERS: [&[&str]; 7] = [
    &["domain", "instruments"],
    &["contract", "automation", "redis-connection"],
    &["store", "warehouse", "cache", "queue", "blobs", "outbound", "dns", "web", "service"],
    &["sandbox", "operations", "console"],
    &["control-plane", "edge-server", "collector", "job-runner"],
    &["local", "operator"],
    &["tests"],
];

/// The crates that may depend on a library directly. All others go through them. Dev-dependencies are exempt.
const ALLOWED_USERS: [(&str, &[&str]); 23] = [
    ("sqlx", &["store"]),
    ("clickhouse", &["warehouse"]),
    ("apalis", &["queue"]),
    ("apalis-core", &["queue"]),
    ("apalis-redis", &["queue"]),
    ("reqwest", &["outbound", "blobs"]),
    ("object_store", &["blobs"]),
    ("zip", &["console", "control-plane", "sandbox"]),
    ("moka", &["cache", "warehouse"]),
    ("redis", &["redis-connection", "cache", "queue"]),
    ("libloading", &["sandbox"]),
    ("lettre", &["job-runner"]),
    (
        "rustls",
        &[
            "redis-connection",
            "warehouse",
            "service",
            "outbound",
            "blobs",
            "sandbox",
            "edge-server",
            "job-runner",
        ],
    ),
    ("tokio-rustls", &["edge-server", "sandbox"]),
    ("rustls-webpki", &["edge-server"]),
    ("ring", &["edge-server"]),
    ("ppp", &["edge-server"]),
    ("hickory-resolver", &["dns"]),
    ("instant-acme", &["job-runner"]),
    ("rcgen", &["job-runner", "edge-server", "local", "sandbox"]),
    ("x509-parser", &["job-runner"]),
    ("rhai", &["automation"]),
    ("croner", &["automation"]),
];

fn metadata() -> Metadata {
    MetadataCommand::new().no_deps().exec().expect("cargo metadata")
}

#[test]
fn a_crate_depends_only_on_lower_layers() {
    let layer_of: BTreeMap<&str, usize> = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(layer, crates)| crates.iter().map(move |name| (*name, layer)))
        .collect();
    let mut violations = Vec::new();
    for package in metadata().packages {
        let name = package.name.to_string();
        let Some(own) = layer_of.get(name.as_str()) else {
            violations.push(format!("{name} has no layer: add it to LAYERS"));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|one| one.kind != DependencyKind::Development) {
            if layer_of.get(dependency.name.as_str()).is_some_and(|layer| layer >= own) {
                violations.push(format!("{name} must not depend on {}", dependency.name));
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn each_library_is_used_only_by_its_allowed_crates() {
    let mut violations = Vec::new();
    for package in metadata().packages {
        for dependency in package.dependencies.iter().filter(|one| one.kind != DependencyKind::Development) {
            let allowed = ALLOWED_USERS.iter().find(|(library, _)| *library == dependency.name);
            if let Some((library, crates)) = allowed
                && !crates.contains(&package.name.as_str())
            {
                let crates = crates.join(", ");
                violations.push(format!("{} must not depend on {library}; only {crates} may", package.name));
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}
