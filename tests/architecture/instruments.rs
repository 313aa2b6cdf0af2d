//! Every instrument of a crate stands in its `metrics.rs`, is listed there, and has a conventional name and a help text.

use std::collections::BTreeSet;

use regex::Regex;

use crate::source_tree::{File, rust_files};

/// The folders of crates with instruments, and what the names of these begin with.
const CRATES: [(&str, &str); 7] = [
    ("collector", "collector_"),
    ("control-plane", "control_plane_"),
    ("edge-server", "edge_"),
    ("job-runner", "job_runner_"),
    ("libs/instruments", "webruntime_"),
    ("libs/redis-connection", "webruntime_"),
    ("libs/store", "webruntime_"),
];

/// What is wrong with the instruments of one file of a crate.
fn violations(path: &str, text: &str, prefix: &str) -> Vec<String> {
    let declaration = Regex::new(
        r#"static (\w+): (Counter|FastCounters|FastCounterTable|Gauge|ObservableGauge|Histogram)\b[^=]*=\s*\w+::new\(\s*"([^"]*)",\s*"([^"]*)""#,
    )
    .expect("a valid pattern");
    let list = text.split_once("static ALL:").map_or("", |(_, list)| list);
    let listed: BTreeSet<&str> =
        list.split(['[', ',', ']', '\n']).filter_map(|item| item.trim().strip_prefix('&')).collect();
    let mut found = Vec::new();
    for [instrument, kind, name, help] in declaration.captures_iter(text).map(|capture| capture.extract().1) {
        let mut require = |holds: bool, rule: &str| {
            if !holds {
                found.push(format!("{path}: {instrument} {rule}"));
            }
        };
        require(path.ends_with("/src/metrics.rs"), "belongs into metrics.rs");
        require(listed.contains(instrument), "is not listed in ALL");
        require(name.starts_with(prefix), &format!("does not begin with {prefix}"));
        require(
            name.ends_with("_total") == matches!(kind, "Counter" | "FastCounters" | "FastCounterTable"),
            "ends wrongly: _total",
        );
        require(kind != "Histogram" || name.ends_with("_seconds"), "does not end in its unit");
        require(help.ends_with('.') && help.len() > 10, "has no sentence of help");
    }
    found
}

#[test]
fn every_instrument_is_listed_with_its_help() {
    let (mut found, mut count) = (Vec::new(), 0);
    for file in rust_files().iter().filter(|file: &&File| !file.is_test()) {
        let Some((_, prefix)) =
            CRATES.iter().find(|(folder, _)| file.path.starts_with(format!("{folder}/src")))
        else {
            continue;
        };
        let text = file.production_text();
        count += text.matches(": Counter =").count() + text.matches(": Gauge =").count();
        found.extend(violations(&file.name(), text, prefix));
    }
    assert!(found.is_empty(), "{found:#?}");
    assert!(count > 30, "only {count} counters and gauges");
}

#[test]
fn an_instrument_against_the_rules_is_found() {
    let text = "pub(crate) static SENT: Counter =\n    Counter::new(\"mails_sent\", \"Mails\", &[]);\nstatic ALL: &[&dyn Instrument] = &[&OTHER];";
    let found = violations("job-runner/src/mail.rs", text, "job_runner_");
    assert_eq!(found.len(), 5, "{found:#?}");
}
