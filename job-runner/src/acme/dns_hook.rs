//! Publishes the record of a DNS-01 challenge with the operator's program.
//!
//! The program gets no shell, no input and an empty environment with three variables. It can only be asked for the record
//! of the sites domain's wildcard. When it takes too long, its process group is killed.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// How long the program may run.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Longer messages of the program are cut.
const MAX_MESSAGE_BYTES: u64 = 2_000;

/// The program that publishes the record `_acme-challenge` of the sites domain.
#[derive(Debug, Clone)]
pub(super) struct DnsHook {
    /// Program and arguments.
    command: Vec<String>,
    record: String,
    timeout: Duration,
}

/// Kills the process group of the program unless it exited.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Fails only if all of its processes have exited.
            let _exited = kill_process_group(group, Signal::KILL);
        }
    }
}

impl DnsHook {
    pub(super) fn new(command: Vec<String>, record: String) -> Self {
        Self { command, record, timeout: TIMEOUT }
    }

    /// Publishes a value of the record. The program returns when the domain's name servers answer with it.
    pub(super) async fn publish(&self, value: &str) -> anyhow::Result<()> {
        self.call("publish", value).await
    }

    /// Removes all values of the record that were published.
    pub(super) async fn remove(&self) -> anyhow::Result<()> {
        self.call("remove", "").await
    }

    async fn call(&self, action: &str, value: &str) -> anyhow::Result<()> {
        let (program, arguments) = self.command.split_first().context("acme.exec.command is empty")?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        command.env("ACME_ACTION", action).env("ACME_RECORD", &self.record).env("ACME_VALUE", value);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().with_context(|| format!("starting {program}"))?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let mut group = ProcessGroup(pid);
        let stderr = child.stderr.take();
        let finished = async {
            let mut message = Vec::new();
            if let Some(stderr) = stderr {
                let mut start = stderr.take(MAX_MESSAGE_BYTES);
                start.read_to_end(&mut message).await?;
                // The rest is read too: a closed pipe would kill the program.
                tokio::io::copy(&mut start.into_inner(), &mut tokio::io::sink()).await?;
            }
            let status = child.wait().await?;
            anyhow::Ok((status, String::from_utf8_lossy(&message).trim().to_owned()))
        };
        let finished = tokio::time::timeout(self.timeout, finished).await;
        let (status, message) =
            finished.with_context(|| format!("{program} did not end within {:?}", self.timeout))??;
        group.0 = None;
        if !status.success() {
            bail!("{program} ended with {status}: {message}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const RECORD: &str = "_acme-challenge.sites.example.net";

    fn hook(script: &str) -> DnsHook {
        let command = ["/bin/sh", "-c", script].map(str::to_owned);
        DnsHook::new(command.to_vec(), RECORD.to_owned())
    }

    #[tokio::test]
    async fn a_program_that_writes_much_is_not_killed() {
        let script = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789 >&2 || exit 1; i=$((i+1)); done";
        hook(script).publish("value").await.unwrap();
    }

    #[tokio::test]
    async fn the_program_gets_three_variables_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("env");
        // The environment that the program was given, without what the shell adds.
        let script = format!("/bin/cat /proc/$$/environ > {}", file.display());
        hook(&script).publish("a value; rm -rf \"$HOME\"").await.unwrap();
        let seen = fs::read_to_string(file).unwrap();
        let mut seen: Vec<&str> = seen.split_terminator('\0').collect();
        seen.sort_unstable();
        let wanted = [
            "ACME_ACTION=publish",
            "ACME_RECORD=_acme-challenge.sites.example.net",
            "ACME_VALUE=a value; rm -rf \"$HOME\"",
        ];
        assert_eq!(seen, wanted);
    }

    #[tokio::test]
    async fn a_failing_program_is_reported_with_its_message() {
        let error = hook("echo no such zone >&2; exit 3").publish("x").await.unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("/bin/sh") && error.contains("no such zone"), "{error}");
        let missing = DnsHook::new(vec!["/nonexistent/hook".to_owned()], RECORD.to_owned());
        assert!(format!("{:#}", missing.publish("x").await.unwrap_err()).contains("/nonexistent/hook"));
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("child");
        let script = format!("/bin/sleep 600 & echo $! > {}; wait", file.display());
        let hook = DnsHook { timeout: Duration::from_secs(1), ..hook(&script) };
        let error = format!("{:#}", hook.publish("x").await.unwrap_err());
        assert!(error.contains("did not end"), "{error}");
        let child = fs::read_to_string(file).unwrap();
        // A killed process is a zombie until its parent takes its status.
        let is_gone = || {
            let status = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
            status.is_empty() || status.contains(") Z ")
        };
        let gone = async {
            while !is_gone() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap();
    }
}
