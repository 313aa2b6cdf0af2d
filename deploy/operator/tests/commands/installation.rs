//! The stores of one test, and runs of the program with their settings.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use sandbox::test::{TestClickHouse, TestDatabase, TestFolder, TestRedis, settings_for};
use serde_json::Value;

pub(crate) const MASTER_KEY: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9";
pub(crate) const PEPPER: &str = "8d2f0c5b7a914e63";

/// An installation without services.
pub(crate) struct Installation {
    pub(crate) database: TestDatabase,
    pub(crate) clickhouse: TestClickHouse,
    redis: TestRedis,
    pub(crate) blobs: TestFolder,
    /// Settings beside those of the stores, the strongest last.
    pub(crate) set: Vec<String>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Installation {
    /// Stores with a current schema.
    pub(crate) async fn new() -> Self {
        Self {
            database: sandbox::test::database().await,
            clickhouse: sandbox::test::clickhouse().await,
            redis: sandbox::test::redis().await,
            blobs: sandbox::test::folder(),
            set: vec![
                format!("secrets.master_key={MASTER_KEY}"),
                format!("secrets.key_pepper={PEPPER}"),
                "http.sites_domain=localhost".to_owned(),
            ],
        }
    }

    /// Stores without a schema.
    pub(crate) async fn empty() -> Self {
        let mut installation = Self::new().await;
        let (server, name) = installation.database.url.rsplit_once('/').unwrap();
        let (name, url) = (format!("{name}_empty"), format!("{server}/{name}_empty"));
        installation.execute(&format!("create database {name}")).await;
        installation.clickhouse.database.push_str("_empty");
        installation.set.push(format!("store.url={url}"));
        installation.database.db = store::connect(&store::Config::new(&url, 2)).unwrap();
        installation.database.url = url;
        installation
    }

    pub(crate) async fn execute(&self, statement: &str) {
        store::execute_raw(&self.database.db, statement).await.unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = program(args);
        let stores = settings_for(&[&self.database, &self.clickhouse, &self.redis, &self.blobs]);
        for set in stores.iter().chain(&self.set) {
            command.args(["--set", set]);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        ended(self.command(args).output().unwrap())
    }

    /// Returns the output of a run that must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {ended:?}");
        ended.stdout
    }

    /// Returns the error of a run that must fail.
    pub(crate) fn error(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, 1, "{args:?}: {ended:?}");
        ended.stderr
    }

    /// Returns the JSON of a run.
    pub(crate) fn json(&self, args: &[&str]) -> (i32, Value) {
        let ended = self.run(args);
        (ended.code, serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}")))
    }

    /// Starts a run; its output is read later.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// The program without settings of the environment.
pub(crate) fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webruntime"));
    command.args(args).stdin(Stdio::null()).env_clear();
    command
}

pub(crate) fn ended(output: std::process::Output) -> Ended {
    Ended {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Waits for the end of a run.
pub(crate) fn wait(mut child: Child) -> Ended {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    Ended { code: child.wait().unwrap().code().unwrap(), stdout, stderr }
}
