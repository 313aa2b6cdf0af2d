//! pgBackRest, which backs up and restores Postgres. Its own configuration names the repository and the data directory.

use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize;
use tokio::process::Command;

use super::super::config::Config;

/// Lines of a failed command's output that its error repeats.
const SHOWN_LINES: usize = 6;

/// A backup in pgBackRest's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct PostgresBackup {
    pub(in super::super) label: String,
    pub(in super::super) stop_lsn: String,
    /// Bytes that it added to the repository.
    pub(in super::super) bytes: u64,
}

/// The point to which Postgres is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The end of the archived write-ahead log.
    Latest,
    /// The end of the backup.
    Backup,
    /// A point in time.
    Time(DateTime<Utc>),
}

/// Runs its commands.
pub(in super::super) struct PgBackRest<'a> {
    config: &'a Config,
}

impl<'a> PgBackRest<'a> {
    pub(in super::super) fn new(config: &'a Config) -> Self {
        Self { config }
    }

    /// Makes a backup and returns it. Creates the stanza if it is missing.
    pub(in super::super) async fn backup(&self, full: bool) -> Result<PostgresBackup> {
        self.run("stanza-create", &[]).await?;
        let kind = if full { "--type=full" } else { "--type=incr" };
        // Old backups expire together with those of the other parts.
        self.run("backup", &[kind, "--no-expire-auto", "--start-fast"]).await?;
        let backups = self.backups().await?;
        backups.into_iter().next_back().context("pgBackRest lists no backup after it made one")
    }

    /// Returns the backups, oldest first.
    pub(in super::super) async fn backups(&self) -> Result<Vec<PostgresBackup>> {
        let output = self.run("info", &["--output=json"]).await?;
        parse_info(&output)
    }

    /// Checks all files of the repository.
    pub(in super::super) async fn verify(&self) -> Result<()> {
        let output = self.run("verify", &["--output=text", "--verbose"]).await?;
        // Some versions report errors in the text alone.
        let is_wrong = |line: &str| line.contains("status: error") || line.contains("status: invalid");
        match output.lines().find(|line| is_wrong(line)) {
            Some(_) => bail!("pgbackrest verify: {}", last_lines(&output)),
            None => Ok(()),
        }
    }

    /// Deletes all full backups but the last ones, with those that depend on them and the log before them.
    pub(in super::super) async fn expire(&self, retained_fulls: u32) -> Result<()> {
        let retention = format!("--repo1-retention-full={retained_fulls}");
        self.run("expire", &[&retention]).await.map(drop)
    }

    /// Writes the files of a backup into the data directory. Postgres replays the log when it starts.
    pub(in super::super) async fn restore(&self, label: &str, target: Target, replace: bool) -> Result<()> {
        let set = format!("--set={label}");
        let time;
        let mut options: Vec<&str> = match target {
            Target::Latest => vec![&set],
            Target::Backup => vec![&set, "--type=immediate", "--target-action=promote"],
            // pgBackRest chooses the last backup before that time.
            Target::Time(at) => {
                time = format!(
                    "--target={}",
                    at.to_rfc3339_opts(SecondsFormat::Micros, false).replace('T', " ")
                );
                vec!["--type=time", &time, "--target-action=promote"]
            }
        };
        if replace {
            options.push("--delta");
        }
        match self.run("restore", &options).await {
            Err(error) => {
                let text = format!("{error:#}");
                if text.contains("[038]") || text.contains("postmaster.pid") {
                    bail!("Postgres is running on the data directory: stop it, then run this again");
                }
                if text.contains("[040]") || text.contains("not empty") {
                    bail!("the data directory of Postgres is not empty; `--replace` overwrites it ({text})");
                }
                Err(error)
            }
            Ok(_) => Ok(()),
        }
    }

    async fn run(&self, command: &str, options: &[&str]) -> Result<String> {
        let (program, arguments) =
            self.config.pgbackrest.split_first().context("backup.pgbackrest is empty")?;
        let mut process = Command::new(program);
        process.args(arguments).arg(format!("--stanza={}", self.config.stanza));
        process.arg("--log-level-console=warn").args(options).arg(command).stdin(Stdio::null());
        process.kill_on_drop(true);
        let output = process.output().await.with_context(|| {
            format!("running `{program}`: is pgBackRest installed, and does backup.pgbackrest name it?")
        })?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let text = stdout + &String::from_utf8_lossy(&output.stderr);
            bail!("pgbackrest {command}: {}: {}", output.status, last_lines(&text));
        }
        Ok(stdout)
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join(" | ")
}

#[derive(Deserialize)]
struct StanzaInfo {
    #[serde(default)]
    backup: Vec<BackupInfo>,
}

#[derive(Deserialize)]
struct BackupInfo {
    label: String,
    #[serde(default)]
    error: Option<bool>,
    lsn: Option<Lsn>,
    info: SizeInfo,
}

#[derive(Deserialize)]
struct Lsn {
    stop: String,
}

#[derive(Deserialize)]
struct SizeInfo {
    repository: RepositoryInfo,
}

#[derive(Deserialize)]
struct RepositoryInfo {
    delta: u64,
}

fn parse_info(json: &str) -> Result<Vec<PostgresBackup>> {
    let stanzas: Vec<StanzaInfo> = serde_json::from_str(json).context("reading pgBackRest's info")?;
    ensure!(stanzas.len() <= 1, "pgBackRest lists several stanzas");
    let backups = stanzas.into_iter().flat_map(|stanza| stanza.backup);
    // Pages with wrong checksums were found in it.
    let usable = backups.filter(|backup| backup.error != Some(true));
    Ok(usable
        .map(|backup| PostgresBackup {
            label: backup.label,
            stop_lsn: backup.lsn.map(|lsn| lsn.stop).unwrap_or_default(),
            bytes: backup.info.repository.delta,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_backups_of_a_stanza() {
        let json = r#"[{"name":"webruntime","status":{"code":0},"backup":[
            {"label":"20261127-165000F","type":"full","error":false,"lsn":{"start":"0/2000028","stop":"0/2000100"},
             "info":{"size":100,"delta":100,"repository":{"size":40,"delta":30}}},
            {"label":"20261127-165000F_20261127-170000I","error":true,
             "info":{"size":1,"delta":1,"repository":{"size":1,"delta":1}}}]}]"#;
        let expected =
            PostgresBackup { label: "20261127-165000F".into(), stop_lsn: "0/2000100".into(), bytes: 30 };
        assert_eq!(parse_info(json).unwrap(), [expected]);
        assert_eq!(parse_info("[]").unwrap(), []);
    }

    #[test]
    fn an_error_ends_with_the_last_lines() {
        let text: String = (0..20).map(|line| format!("line {line}\n\n")).collect();
        assert!(last_lines(&text).starts_with("line 14 | ") && last_lines(&text).ends_with("line 19"));
    }
}
