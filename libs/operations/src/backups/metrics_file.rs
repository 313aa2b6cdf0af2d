//! Metrics of the last backups for node-exporter's textfile collector, made from the manifests.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::manifest::Manifest;
use super::parts::Part;

const FILE: &str = "webruntime_backup.prom";

/// Replaces the file at once, so that no reader sees a part of it.
pub(super) fn write(folder: &Path, manifests: &[Manifest]) -> Result<()> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    let (path, partial) = (folder.join(FILE), folder.join(format!("{FILE}.partial")));
    let replace = || fs::write(&partial, render(manifests)).and_then(|()| fs::rename(&partial, &path));
    replace().with_context(|| format!("writing {} (backup.metrics_folder)", path.display()))
}

fn render(manifests: &[Manifest]) -> String {
    let last = Part::ALL.map(|part| {
        let with_part =
            manifests.iter().rev().find_map(|manifest| Some((manifest, manifest.bytes_of(part)?)));
        (part, with_part)
    });
    let mut text = String::new();
    let mut family = |name: &str, help: &str, value: &dyn Fn(&Manifest, u64) -> i64| {
        let _infallible = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
        for (part, last) in &last {
            if let Some((manifest, bytes)) = last {
                let value = value(manifest, *bytes);
                let _infallible = writeln!(text, "{name}{{part=\"{}\"}} {value}", part.as_str());
            }
        }
    };
    family(
        "webruntime_backup_last_success_timestamp_seconds",
        "Start of the last complete backup of this part, as seconds since 1970.",
        &|manifest, _| manifest.started_at.timestamp(),
    );
    family(
        "webruntime_backup_last_bytes",
        "Bytes that the last complete backup of this part added.",
        &|_, bytes| i64::try_from(bytes).unwrap_or(i64::MAX),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::super::manifest::{KeyIds, PostgresPart};
    use super::*;

    #[test]
    fn each_part_has_the_time_of_the_last_backup_with_it() {
        let started_at = chrono::DateTime::from_timestamp(1_795_000_000, 0).unwrap();
        let postgres = PostgresPart {
            label: "F".into(),
            stop_lsn: String::new(),
            bytes: 7,
            rows: [].into(),
            seconds: 0.1,
        };
        let with = Manifest {
            format: 1,
            id: "20261127T165000Z".into(),
            full: "20261127T165000Z".into(),
            base: None,
            started_at,
            ended_at: started_at,
            program: "0.2.0".into(),
            schema: 200,
            keys: KeyIds { master: vec![], master_digest: String::new(), pepper: vec![] },
            postgres: Some(postgres),
            clickhouse: None,
            blobs: None,
        };
        let later =
            Manifest { postgres: None, started_at: started_at + chrono::TimeDelta::days(1), ..with.clone() };
        let text = render(&[with, later]);
        assert!(text.contains(
            "# TYPE webruntime_backup_last_bytes gauge\nwebruntime_backup_last_bytes{part=\"postgres\"} 7\n"
        ));
        assert!(
            text.contains("webruntime_backup_last_success_timestamp_seconds{part=\"postgres\"} 1795000000\n")
        );
        assert!(!text.contains("clickhouse"), "{text}");
    }
}
