//! An empty database: made in place for data that stays, copied from a template for data that doesn't (a
//! second faster, and every test process wants one).

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::account::Account;
use crate::child::pidfd;
use crate::programs::Postgres as Programs;
use crate::progress::{Progress, Step};
use crate::{dirs, secret};

/// Makes `home/data` and `home/password`, if they aren't there.
pub(super) async fn in_place(
    programs: &Programs,
    home: &Path,
    account: Option<Account>,
    progress: &Progress,
) -> Result<()> {
    let (programs, home, progress) = (programs.clone(), home.to_owned(), progress.clone());
    tokio::task::spawn_blocking(move || make(&programs, &home, account, &progress)).await?
}

/// Copies both from the template in the cache, which is made if it isn't there.
pub(super) async fn from_template(
    programs: &Programs,
    home: &Path,
    account: Option<Account>,
    progress: &Progress,
) -> Result<()> {
    let (programs, home, progress) = (programs.clone(), home.to_owned(), progress.clone());
    tokio::task::spawn_blocking(move || {
        let template = template(&programs, account, &progress)?;
        copy(&template.join("data"), &home.join("data"))?;
        copy(&template.join("password"), &home.join("password"))?;
        account.map_or(Ok(()), |account| account.own(&home.join("data")))
    })
    .await?
}

fn template(programs: &Programs, account: Option<Account>, progress: &Progress) -> Result<PathBuf> {
    let version = Command::new(&programs.server).arg("--version").output()?.stdout;
    let key =
        Sha256::new().chain_update(version).chain_update(programs.server.as_os_str().as_encoded_bytes());
    let name: String = hex::encode(key.finalize()).chars().take(16).collect();
    let cache = dirs::cache_readable_by(account.as_ref())?;
    let home = cache.join(format!("postgres-template-{name}"));
    let lock = File::create(home.with_extension("lock"))?;
    lock.lock()?;
    if !home.is_dir() {
        let partial = home.with_extension("partial");
        dirs::remove(&partial)?;
        fs::create_dir(&partial)?;
        fs::set_permissions(&partial, Permissions::from_mode(0o755))?;
        make(programs, &partial, account, progress)?;
        fs::rename(&partial, &home)?;
    }
    Ok(home)
}

fn make(programs: &Programs, home: &Path, account: Option<Account>, progress: &Progress) -> Result<()> {
    let (data, partial) = (home.join("data"), home.join("data.partial"));
    if data.is_dir() {
        return Ok(());
    }
    progress.report(Step::Initialising { what: super::WHAT });
    let password = home.join("password");
    secret::keep(&password)?;
    let mut outcome = Ok(());
    // By Unicode where this machine's C library knows that locale, by bytes alone where it doesn't.
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
    let said = command.output().context("running initdb")?;
    if !said.status.success() {
        bail!("initdb: {}: {}", said.status, String::from_utf8_lossy(&said.stderr).trim());
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

/// After a crash, Postgres believes in its old process id; should that by now be another program's, it would
/// not start. To be called when nobody lives in the folder: then a living process of that id is a stranger.
pub(super) fn forget_recycled_process(data: &Path) -> Result<()> {
    let file = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
    let recorded = text.lines().next().and_then(|line| line.trim().parse().ok());
    if recorded.is_some_and(|pid| pidfd(pid).is_ok()) {
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    }
    Ok(())
}
