//! What must hold before and after the files are restored: the right keys, the right program, the right installation.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use domain::Transient as _;
use domain::encryption::MasterKey;
use domain::peppers::Peppers;
use service::ticks;
use store::backups::{has_action, is_in_recovery};
use store::key_peppers::list_pepper_uses;
use tokio::time::Instant;

use super::super::installation::Installation;
use super::super::manifest::{KEY_DIGEST_PURPOSE, Manifest};
use crate::checks::{Status, check_master_keys};

const POLL_INTERVAL: Duration = Duration::from_millis(250);
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Fails if a key that the backup needs is not configured.
pub(super) fn check_key_ids(installation: &Installation<'_>, manifest: &Manifest) -> Result<()> {
    let keys = MasterKey::parse(&installation.secrets.master_key)?;
    let peppers = Peppers::parse(&installation.secrets.key_pepper)?;
    let configured: Vec<String> = keys.ids().map(|id| id.to_string()).collect();
    let first = manifest.keys.master.first();
    if let Some(id) = first.filter(|id| !configured.contains(id)) {
        bail!("the backup needs the master key `{id}`, which secrets.master_key lacks");
    }
    let parts = [manifest.id.as_str()];
    let mut digests = keys.digests(KEY_DIGEST_PURPOSE, &parts).map(hex::encode);
    if !digests.any(|digest| digest == manifest.keys.master_digest) {
        bail!("secrets.master_key is not the one of the backup {}, although it has the same id", manifest.id);
    }
    let first = manifest.keys.pepper.first();
    if first.is_some_and(|id| !peppers.ids().contains(id)) {
        bail!(
            "the backup needs another pepper than those of secrets.key_pepper: all API keys would be invalid"
        );
    }
    Ok(())
}

/// Waits until Postgres has replayed its log and accepts writes.
pub(super) async fn wait_for_postgres(installation: &Installation<'_>, limit: Duration) -> Result<()> {
    let (began, mut ticks) = (Instant::now(), ticks(POLL_INTERVAL));
    let mut report_at = began + REPORT_INTERVAL;
    loop {
        ticks.tick().await;
        let state = match store::try_connect(installation.db).await {
            Err(error) if error.is_transient() => format!("{error}"),
            Err(error) => return Err(error).context("connecting to Postgres"),
            Ok(()) => {
                let mut conn = store::acquire(installation.db).await?;
                match is_in_recovery(&mut conn).await {
                    Ok(false) => return Ok(()),
                    Ok(true) => "it replays its log".to_owned(),
                    Err(error) if error.is_transient() => format!("{error}"),
                    Err(error) => return Err(error).context("asking Postgres"),
                }
            }
        };
        if began.elapsed() >= limit {
            bail!("Postgres accepts no writes after {} s: {state}; its log says why", limit.as_secs());
        }
        if Instant::now() >= report_at {
            (installation.report)(&format!(
                "  waiting for Postgres for {} s: {state}",
                began.elapsed().as_secs()
            ));
            report_at = Instant::now() + REPORT_INTERVAL;
        }
    }
}

/// Fails if what Postgres has is not the restored backup, has another schema than this program, or is sealed with other keys.
pub(super) async fn check_restored(installation: &Installation<'_>, manifest: &Manifest) -> Result<()> {
    let mut conn = store::acquire(installation.db).await?;
    let state = store::list_migrations(&mut conn).await?;
    ensure!(
        state.pending.is_empty() && state.unknown.is_empty(),
        "the restored schema is not that of this program: run the webruntime of the release that made the backup"
    );
    if manifest.postgres.is_some() {
        ensure!(
            has_action(&mut conn, "backup", &manifest.id).await?,
            "Postgres does not know the backup {}: it has other data, or an earlier state than the backup",
            manifest.id
        );
    }
    let peppers = Peppers::parse(&installation.secrets.key_pepper)?;
    let uses = list_pepper_uses(&mut conn, installation.clock.now()).await?;
    let known = peppers.ids();
    let unknown = uses.iter().find(|one| one.pepper_id.as_ref().is_some_and(|id| !known.contains(id)));
    if let Some(one) = unknown {
        bail!(
            "{} API keys are stored under a pepper that secrets.key_pepper lacks: restore it first",
            one.keys
        );
    }
    drop(conn);
    let findings = check_master_keys(installation.db, &installation.secrets.master_key).await;
    match findings.into_iter().find(|finding| finding.status == Status::Failed) {
        Some(finding) => bail!("secrets.master_key does not open what was restored: {}", finding.detail),
        None => Ok(()),
    }
}
