//! The supervisor: what a test asks for is there, and goes with whoever asked, even by kill -9.
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
    /// The backend, watched before anything can happen to it.
    backend: OwnedFd,
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
        backend: pidfd_open(pid, PidfdFlags::empty()).unwrap(),
        folder,
    }
}

/// Waits for the end itself; the limit only fails the test.
fn assert_ends(process: &OwnedFd, whose: &str) {
    let limit = Timespec::try_from(Duration::from_secs(60)).unwrap();
    let ended = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ended, 1, "{whose} lives on");
}

#[test]
fn a_backend_goes_with_its_files_when_its_keepers_end_of_the_pipe_closes() {
    for name in BACKENDS {
        let mut held = supervise(name);
        assert!(held.announcement.url.contains("127.0.0.1"), "{name}");
        assert!(held.folder.is_dir(), "{name}");
        drop(held.supervisor.stdin.take());
        assert!(held.supervisor.wait().unwrap().success(), "{name}");
        assert_ends(&held.backend, name);
        assert!(!held.folder.exists(), "{name} left {}", held.folder.display());
    }
}

#[test]
fn a_backend_ends_when_its_supervisor_is_killed() {
    let mut all = BACKENDS.map(supervise);
    for held in &mut all {
        held.supervisor.kill().unwrap();
        held.supervisor.wait().unwrap();
    }
    for (held, name) in all.iter().zip(BACKENDS) {
        assert_ends(&held.backend, name);
    }
    // The folders of the killed are swept by whoever comes next.
    drop(supervise("redis").supervisor.wait_with_output().unwrap());
    for held in &all {
        assert!(!held.folder.exists(), "{} stays", held.folder.display());
    }
}

#[tokio::test]
async fn every_test_gets_a_migrated_database_of_its_own() {
    let (one, other) = tokio::join!(sandbox::test::database(), sandbox::test::database());
    store::execute_raw(&one.db, "CREATE TABLE mine (n int)").await.unwrap();
    assert!(store::execute_raw(&other.db, "SELECT * FROM mine").await.is_err());
    store::execute_raw(&other.db, "SELECT * FROM pages").await.unwrap();
}

#[tokio::test]
async fn every_test_gets_a_prefix_and_a_clickhouse_database_of_its_own() {
    let (one, other) = tokio::join!(sandbox::test::redis(), sandbox::test::redis());
    assert_eq!(one.url, other.url);
    assert_ne!(one.prefix, other.prefix);
    let (one, other) = tokio::join!(sandbox::test::clickhouse(), sandbox::test::clickhouse());
    assert_eq!(one.url, other.url);
    assert_ne!(one.database, other.database);
}
