//! Verifies backups: checksums of their files, pgBackRest's own verification, and that no secret is among them.

use anyhow::Result;

use super::file_list;
use super::folder::BackupFolder;
use super::installation::Installation;
use super::manifest::Manifest;
use super::parts::pgbackrest::PgBackRest;
use super::parts::{blob_pool, clickhouse};
use super::secrets_apart::{self, Search};
use crate::checks::Finding;

/// Problems of one part of one backup that are listed.
const MAX_PROBLEMS: usize = 5;

/// Checks all backups. Reads every file.
pub async fn check(installation: &Installation<'_>) -> Result<Vec<Finding>> {
    installation.config.check()?;
    let folder = BackupFolder::open(&installation.config.folder)?;
    let manifests = folder.manifests()?;
    let mut findings = Vec::new();
    findings.push(match secrets_apart::check(folder.path(), &installation.secrets, Search::All) {
        Ok(()) => Finding::ok("backup.secrets", "no file holds a secret of this installation"),
        Err(error) => {
            Finding::failed("backup.secrets", error.to_string(), "then replace the secret that was there")
        }
    });
    if manifests.is_empty() {
        findings.push(Finding::failed("backup.list", "there is no backup", "run `webruntime backup`"));
        return Ok(findings);
    }
    for id in folder.incomplete()? {
        let detail = format!("{id} was stopped before its end");
        findings.push(Finding::warning("backup.list", detail, "the next backup deletes it"));
    }
    for manifest in &manifests {
        (installation.report)(&format!("reading {}", manifest.id));
        findings.push(check_clickhouse(installation, &folder, manifest));
        findings.push(check_blobs(&folder, manifest));
    }
    if manifests.iter().any(|manifest| manifest.postgres.is_some()) {
        (installation.report)("pgbackrest verify …");
        findings.push(check_postgres(installation, &manifests).await);
    }
    Ok(findings)
}

async fn check_postgres(installation: &Installation<'_>, manifests: &[Manifest]) -> Finding {
    const CHECK: &str = "backup.postgres";
    let advice = "make a full backup with `webruntime backup --full`, and look for the cause: a disk, or a deleted file";
    let pgbackrest = PgBackRest::new(installation.config);
    let labels = async {
        pgbackrest.verify().await?;
        pgbackrest.backups().await
    };
    let backups = match labels.await {
        Ok(backups) => backups,
        Err(error) => return Finding::failed(CHECK, format!("{error:#}"), advice),
    };
    let wanted = manifests.iter().filter_map(|manifest| manifest.postgres.as_ref());
    let missing: Vec<&str> = wanted
        .map(|part| part.label.as_str())
        .filter(|label| !backups.iter().any(|backup| backup.label == *label))
        .collect();
    match missing.is_empty() {
        true => Finding::ok(CHECK, format!("{} backups verified by pgBackRest", backups.len())),
        false => Finding::failed(CHECK, format!("pgBackRest lacks {}", missing.join(", ")), advice),
    }
}

fn check_clickhouse(installation: &Installation<'_>, folder: &BackupFolder, manifest: &Manifest) -> Finding {
    const CHECK: &str = "backup.clickhouse";
    let Some(part) = &manifest.clickhouse else {
        return Finding::warning(
            CHECK,
            format!("{} lacks this part", manifest.id),
            "back it up by other means",
        );
    };
    let Some(sha256) = &part.list_sha256 else {
        let advice = "set backup.clickhouse_folder to the folder of its files, if there is one";
        return Finding::warning(CHECK, format!("the files of {} are not visible here", manifest.id), advice);
    };
    let root = installation.config.clickhouse_folder().join(&part.name);
    let list = folder.of(&manifest.id).join(clickhouse::LIST);
    finding(
        CHECK,
        manifest,
        file_list::read(&list, sha256)
            .map(|files| (files.len(), file_list::verify(&root, &files, MAX_PROBLEMS))),
    )
}

fn check_blobs(folder: &BackupFolder, manifest: &Manifest) -> Finding {
    const CHECK: &str = "backup.blobs";
    let Some(part) = &manifest.blobs else {
        return Finding::warning(
            CHECK,
            format!("{} lacks this part", manifest.id),
            "back it up by other means",
        );
    };
    let list = folder.of(&manifest.id).join(blob_pool::LIST);
    let verified = file_list::read(&list, &part.list_sha256)
        .map(|files| (files.len(), file_list::verify(&folder.blobs(), &files, MAX_PROBLEMS)));
    finding(CHECK, manifest, verified)
}

fn finding(check: &'static str, manifest: &Manifest, verified: Result<(usize, Vec<String>)>) -> Finding {
    let advice = "make a full backup with `webruntime backup --full`, and look for the cause: a disk, or a deleted file";
    match verified {
        Ok((files, problems)) if problems.is_empty() => {
            Finding::ok(check, format!("{}: {files} files have their checksums", manifest.id))
        }
        Ok((_, problems)) => {
            Finding::failed(check, format!("{}: {}", manifest.id, problems.join("; ")), advice)
        }
        Err(error) => Finding::failed(check, format!("{}: {error:#}", manifest.id), advice),
    }
}
