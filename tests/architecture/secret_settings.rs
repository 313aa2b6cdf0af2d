//! Every secret setting has a sibling `<setting>_file`, so that container runtimes can mount it.

use std::collections::BTreeSet;

use crate::source_tree::{File, files, rust_files};

/// Types of settings that are never shown.
const SECRET_TYPES: [&str; 2] = ["Secret,", "SecretString,"];
/// Settings with another type that may contain a password.
const URLS: [(&str, &str); 2] = [("store", "url"), ("redis", "url")];
/// In a section of the operator's own keys; every key there has such a sibling without a line in the default file.
const OPEN: &str = "client_secret";

/// The names of fields with a secret type in the files of settings.
fn secret_fields() -> BTreeSet<String> {
    let is_config = |file: &File| {
        let name = file.name();
        !file.is_test() && (name.ends_with("config.rs") || name.ends_with("settings.rs"))
    };
    let mut names = BTreeSet::new();
    for file in rust_files().iter().filter(|file| is_config(file)) {
        for line in file.production_text().lines().map(str::trim) {
            let Some((field, kind)) = line.split_once(": ") else { continue };
            if line.starts_with("pub") && SECRET_TYPES.contains(&kind) {
                names.insert(field.rsplit(' ').next().unwrap_or_default().to_owned());
            }
        }
    }
    names
}

/// The settings of a default file, as section and key.
fn settings(text: &str) -> BTreeSet<(&str, &str)> {
    let mut section = "";
    let mut settings = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((key, _)) = line.split_once(" = ") {
            settings.insert((section, key));
        }
    }
    settings
}

#[test]
fn every_secret_setting_may_come_from_a_file() {
    let secrets = secret_fields();
    assert!(secrets.contains("master_key") && secrets.contains(OPEN), "{secrets:?}");
    let (mut missing, mut unknown) = (Vec::new(), secrets.clone());
    unknown.remove(OPEN);
    for file in files(&["*/config.toml"]) {
        let settings = settings(&file.text);
        for (section, key) in settings.iter().copied() {
            if !secrets.contains(key) && !URLS.contains(&(section, key)) {
                continue;
            }
            unknown.remove(key);
            let sibling = format!("{key}_file");
            if !settings.contains(&(section, sibling.as_str())) {
                missing.push(format!("{}: {section}.{sibling}", file.name()));
            }
        }
    }
    assert!(missing.is_empty(), "add these beside the secrets: {missing:?}");
    assert!(unknown.is_empty(), "no default file has these settings: {unknown:?}");
}
