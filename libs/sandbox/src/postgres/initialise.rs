//! Creation of an empty database: in place for persistent data; copied from a template for temporary data, which saves each
//! test process a second.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::account::Account;
use crate::child::pidfd;
use crate::programs::{Postgres as Programs, major_version};
use crate::progress::{Progress, Step};
use crate::{dirs, secret};

/// Hashes a password once instead of 4,096 times. That protects short passwords; this one has 192 random bits. Each connection
/// of a client without optimization took a tenth of a second, so a pool that opens its connections at once timed out.
const ONE_ITERATION: &str = "scram_iterations=1";
/// The first version with that setting.
const ITERATIONS_SINCE: u32 = 16;

/// Creates `data` and `password` in `dir`, unless they exist.
pub(super) async fn in_place(
    programs: &Programs,
    dir: &Path,
    account: Option<Account>,
    progress: &Progress,
) -> Result<()> {
    let (programs, dir, progress) = (programs.clone(), dir.to_owned(), progress.clone());
    tokio::task::spawn_blocking(move || create(&programs, &dir, account, &progress)).await?
}

/// Copies both from the template in the cache. Creates the template if it is missing.
pub(super) async fn from_template(
    programs: &Programs,
    dir: &Path,
    account: Option<Account>,
    progress: &Progress,
) -> Result<()> {
    let (programs, dir, progress) = (programs.clone(), dir.to_owned(), progress.clone());
    tokio::task::spawn_blocking(move || {
        let template = template(&programs, account, &progress)?;
        copy(&template.join("data"), &dir.join("data"))?;
        copy(&template.join("password"), &dir.join("password"))?;
        account.map_or(Ok(()), |account| account.own(&dir.join("data")))
    })
    .await?
}

fn template(programs: &Programs, account: Option<Account>, progress: &Progress) -> Result<PathBuf> {
    let version = Command::new(&programs.server).arg("--version").output()?.stdout;
    let key = Sha256::new()
        .chain_update(version)
        .chain_update(programs.server.as_os_str().as_encoded_bytes())
        .chain_update(ONE_ITERATION);
    let name: String = hex::encode(key.finalize()).chars().take(16).collect();
    let cache = dirs::cache_readable_by(account.as_ref())?;
    let dir = cache.join(format!("postgres-template-{name}"));
    let lock = File::create(dir.with_extension("lock"))?;
    lock.lock()?;
    if !dir.is_dir() {
        let partial = dir.with_extension("partial");
        dirs::remove(&partial)?;
        fs::create_dir(&partial)?;
        fs::set_permissions(&partial, Permissions::from_mode(0o755))?;
        create(programs, &partial, account, progress)?;
        fs::rename(&partial, &dir)?;
    }
    Ok(dir)
}

fn create(programs: &Programs, dir: &Path, account: Option<Account>, progress: &Progress) -> Result<()> {
    let (data, partial) = (dir.join("data"), dir.join("data.partial"));
    if data.is_dir() {
        return Ok(());
    }
    progress.report(Step::Initialising { name: "Postgres" });
    let password = dir.join("password");
    secret::read_or_create(&password)?;
    let mut outcome = Ok(());
    // Unicode, or plain bytes if this machine's C library lacks that locale.
    for locale in ["C.UTF-8", "C"] {
        dirs::remove(&partial)?;
        fs::DirBuilder::new().mode(0o700).create(&partial)?;
        if let Some(account) = account {
            account.own(&partial)?;
            account.own(&password)?;
        }
        outcome = initdb(programs, &partial, &password, locale, account);
        if outcome.is_ok() {
            break;
        }
    }
    outcome?;
    fs::rename(&partial, &data).context("putting the new database in place")
}

fn initdb(
    programs: &Programs,
    data: &Path,
    password: &Path,
    locale: &str,
    account: Option<Account>,
) -> Result<()> {
    let mut command = Command::new(&programs.initdb);
    if let Some(account) = account {
        account.run(&mut command);
    }
    command.args(["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--no-instructions"]);
    command.arg(format!("--locale={locale}")).arg("--pgdata").arg(data).arg("--pwfile").arg(password);
    if major_version(&programs.server).is_some_and(|version| version >= ITERATIONS_SINCE) {
        command.args(["-c", ONE_ITERATION]);
    }
    let output = command.output().context("running initdb")?;
    if !output.status.success() {
        bail!("initdb: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let kind = fs::symlink_metadata(from)?;
    if !kind.is_dir() {
        fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
        return Ok(());
    }
    fs::DirBuilder::new().mode(0o700).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Removes a `postmaster.pid` with a process id that another process uses by now: Postgres would refuse to start. Call it when no
/// process uses the directory, so that a process with that id can't be Postgres.
pub(super) fn remove_stale_pid_file(data: &Path) -> Result<()> {
    let file = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
    let recorded = text.lines().next().and_then(|line| line.trim().parse().ok());
    if recorded.is_some_and(|pid| pidfd(pid).is_ok()) {
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    }
    Ok(())
}
