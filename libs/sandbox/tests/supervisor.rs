//! The supervisor stops a backend and deletes its data when its client ends, even by SIGKILL.
#![expect(clippy::unwrap_used, reason = "a test's own plumbing may fail loudly")]

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sandbox::supervisor::Announcement;

const BACKENDS: [&str; 3] = ["postgres", "redis", "clickhouse"];

struct SupervisedBackend {
    supervisor: Child,
    announcement: Announcement,
    /// A handle of the backend, opened while it certainly runs.
    process: OwnedFd,
    folder: PathBuf,
}

fn supervise(backend: &str) -> SupervisedBackend {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandbox"));
    let mut supervisor =
        command.args(["run", backend]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(supervisor.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let announcement: Announcement = serde_json::from_str(&line).unwrap();
    let pid = Pid::from_raw(i32::try_from(announcement.pid).unwrap()).unwrap();
    let folder = std::fs::read_link(format!("/proc/{}/cwd", announcement.pid)).unwrap();
    SupervisedBackend {
        supervisor,
        announcement,
        process: pidfd_open(pid, PidfdFlags::empty()).unwrap(),
        folder,
    }
}

/// Waits until a process exits. Fails the test after a minute.
fn assert_exits(process: &OwnedFd, name: &str) {
    let limit = Timespec::try_from(Duration::from_secs(60)).unwrap();
    let ended = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ended, 1, "{name} is still running");
}

#[test]
fn closing_the_supervisors_input_stops_the_backend_and_deletes_its_files() {
    for name in BACKENDS {
        let mut backend = supervise(name);
        assert!(backend.announcement.url.contains("127.0.0.1"), "{name}");
        assert!(backend.folder.is_dir(), "{name}");
        drop(backend.supervisor.stdin.take());
        assert!(backend.supervisor.wait().unwrap().success(), "{name}");
        assert_exits(&backend.process, name);
        assert!(!backend.folder.exists(), "{name} did not delete {}", backend.folder.display());
    }
}

#[test]
fn a_backend_stops_when_its_supervisor_is_killed() {
    let mut all = BACKENDS.map(supervise);
    for backend in &mut all {
        backend.supervisor.kill().unwrap();
        backend.supervisor.wait().unwrap();
    }
    for (backend, name) in all.iter().zip(BACKENDS) {
        assert_exits(&backend.process, name);
    }
    // The next start deletes the directories of the killed ones.
    drop(supervise("redis").supervisor.wait_with_output().unwrap());
    for backend in &all {
        assert!(!backend.folder.exists(), "{} was not deleted", backend.folder.display());
    }
}

#[tokio::test]
async fn every_test_gets_its_own_migrated_database() {
    let (one, other) = tokio::join!(sandbox::test::database(), sandbox::test::database());
    store::execute_raw(&one.db, "CREATE TABLE mine (n int)").await.unwrap();
    assert!(store::execute_raw(&other.db, "SELECT * FROM mine").await.is_err());
    store::execute_raw(&other.db, "SELECT * FROM pages").await.unwrap();
}

#[tokio::test]
async fn every_test_gets_its_own_prefix_and_clickhouse_database() {
    let (one, other) = tokio::join!(sandbox::test::redis(), sandbox::test::redis());
    assert_eq!(one.url, other.url);
    assert_ne!(one.prefix, other.prefix);
    let (one, other) = tokio::join!(sandbox::test::clickhouse(), sandbox::test::clickhouse());
    assert_eq!(one.url, other.url);
    assert_ne!(one.database, other.database);
}
