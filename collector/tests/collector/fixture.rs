//! The backends of one test (Postgres, Redis, ClickHouse, a segment folder) with one site, and collectors on them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use chrono::{DateTime, TimeDelta, Utc};
use collector::Config;
use domain::analytics::Range;
use domain::plans::Plan;
use rustix::process::{Pid, Signal, kill_process};
use sandbox::test::{TestClickHouse, TestDatabase, TestRedis, until};
use serde_json::Value;
use service::config::{Sources, load};
use service::{Clock, Listeners, Rng, Shutdown};
use store::sites::NewSite;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::browser::EDGE_TOKEN;
use crate::fault_proxy::FaultProxy;

pub(crate) struct Fixture {
    pub(crate) database: TestDatabase,
    pub(crate) redis: TestRedis,
    pub(crate) clickhouse: TestClickHouse,
    pub(crate) site_id: Uuid,
    pub(crate) site_token: String,
    /// One per collector.
    folders: Vec<TempDir>,
    settings: Vec<String>,
}

/// A collector in this process.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    shutdown: Shutdown,
    ended: JoinHandle<anyhow::Result<()>>,
}

/// A collector in a separate process.
pub(crate) struct CollectorProcess {
    pub(crate) address: SocketAddr,
    pub(crate) ops: SocketAddr,
    child: Child,
}

pub(crate) fn now() -> DateTime<Utc> {
    Clock::system().now()
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let (database, redis, clickhouse) =
            tokio::join!(sandbox::test::database(), sandbox::test::redis(), sandbox::test::clickhouse());
        let mut settings = sandbox::test::settings_for(&[&database, &redis, &clickhouse]);
        settings.push(format!("secrets.edge_token={EDGE_TOKEN}"));
        let mut fixture = Self {
            database,
            redis,
            clickhouse,
            site_id: Uuid::nil(),
            site_token: String::new(),
            folders: Vec::new(),
            settings,
        };
        fixture.set_folder();
        fixture.site_token = domain::sites::token(&Rng::system().bytes());
        fixture.site_id = fixture.insert_site(&fixture.site_token).await;
        fixture
    }

    /// Adds a setting for collectors started later.
    pub(crate) fn set(&mut self, setting: &str) {
        self.settings.push(setting.to_owned());
    }

    /// Creates a new segment folder for collectors started later.
    pub(crate) fn set_folder(&mut self) {
        let folder = TempDir::new().unwrap();
        self.set(&format!("segments.folder={}", folder.path().display()));
        self.folders.push(folder);
    }

    /// Reads the segments in the current folder.
    pub(crate) fn read_segments(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = std::fs::read_dir(self.folders.last().unwrap().path()).unwrap();
        let paths = files.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some());
        paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    }

    /// Writes the segments back, as if they had not been sent.
    pub(crate) fn restore_segments(&self, segments: &[(PathBuf, Vec<u8>)]) {
        segments.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    }

    /// Makes the segments in the current folder older: the time is a part of their names.
    pub(crate) fn age_segments(&self, age: TimeDelta) {
        for (path, _) in self.read_segments() {
            let id: Uuid = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
            let (seconds, nanoseconds) = id.get_timestamp().unwrap().to_unix();
            let created_at = DateTime::from_timestamp(seconds.cast_signed(), nanoseconds).unwrap() - age;
            let millis = u64::try_from(created_at.timestamp_millis()).unwrap();
            let id = uuid::Builder::from_unix_timestamp_millis(millis, &Rng::system().bytes()).into_uuid();
            let name = id.to_string();
            let aged = path.with_file_name(name).with_extension(path.extension().unwrap());
            std::fs::rename(path, aged).unwrap();
        }
    }

    /// Returns this month's events charged to the account of the site with this token.
    pub(crate) async fn charged_events(&self, site_token: &str) -> i64 {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let owner = store::sites::find_owner_by_token(&mut conn, site_token).await.unwrap().unwrap();
        store::monthly_usage::find_monthly_usage(&mut conn, owner.account_id, now()).await.unwrap().events
    }

    /// Returns the host and port of Postgres.
    pub(crate) fn database_host(&self) -> &str {
        self.database.url.split('@').next_back().unwrap().split('/').next().unwrap()
    }

    /// Routes Postgres through the proxy for collectors started later.
    pub(crate) fn route_postgres_through(&mut self, proxy: &FaultProxy) {
        let address = proxy.url.trim_start_matches("http://");
        let (user, rest) = self.database.url.rsplit_once('@').unwrap();
        let (_, name) = rest.split_once('/').unwrap();
        self.set(&format!("store.url={user}@{address}/{name}"));
    }

    /// Inserts an account with a site that has this token. Returns the site's id.
    pub(crate) async fn insert_site(&self, site_token: &str) -> Uuid {
        let rng = Rng::system();
        let account_id = rng.uuid_v7(now());
        sandbox::test::trial(&self.database, account_id, now()).await;
        let site = NewSite {
            id: rng.uuid_v7(now()),
            folder_id: None,
            site_token: site_token.to_owned(),
            name: "Shop".into(),
            domain: None,
            subdomain_id: None,
            hash_routing: false,
            created_at: now(),
        };
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        assert!(store::sites::insert_site(&mut conn, account_id, &site).await.unwrap());
        site.id
    }

    /// Returns the id of the site's account.
    pub(crate) async fn account_id(&self) -> Uuid {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let owner = store::sites::find_owner_by_token(&mut conn, &self.site_token).await.unwrap();
        owner.unwrap().account_id
    }

    pub(crate) async fn set_plan(&self, plan: Plan) {
        let account_id = self.account_id().await;
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        assert!(store::accounts::update_plan(&mut conn, account_id, plan).await.unwrap());
    }

    pub(crate) async fn start(&self) -> Collector {
        let sources = Sources { set: self.settings.clone(), ..Sources::default() };
        let config: Config = load(collector::DEFAULTS, &sources).unwrap().config;
        let listeners = Listeners::on_free_ports().unwrap();
        let (address, shutdown) = (listeners.main.local_addr().unwrap(), Shutdown::new());
        let ended = tokio::spawn(collector::run(config, listeners, shutdown.clone()));
        Collector { address, shutdown, ended }
    }

    pub(crate) async fn start_process(&self) -> CollectorProcess {
        let mut command = Command::new(env!("CARGO_BIN_EXE_collector"));
        let ports = ["listen.main=127.0.0.1:0", "listen.ops=127.0.0.1:0", "telemetry.format=json"];
        for setting in ports.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.args(["--set", setting]);
        }
        let mut child = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let (address, ops) = loop {
            let line = log.next_line().await.unwrap().expect("the collector ended before it listened");
            let entry: Value = serde_json::from_str(&line).unwrap();
            let address = |key: &str| entry[key].as_str().and_then(|text| text.parse().ok());
            if let Some(both) = address("main").zip(address("ops")) {
                break both;
            }
        };
        // Drains the pipe so that it never fills; the output is shown if the test fails.
        tokio::spawn(async move {
            while let Ok(Some(line)) = log.next_line().await {
                println!("{line}");
            }
        });
        // The addresses are logged before the schema is checked, and connections are refused until then.
        until(async || TcpStream::connect(address).await.is_ok()).await;
        until(async || TcpStream::connect(ops).await.is_ok()).await;
        CollectorProcess { address, ops, child }
    }

    /// The range of the last 500 days and the next day.
    pub(crate) fn all_time() -> Range {
        Range { start: now() - TimeDelta::days(500), end: now() + TimeDelta::days(1) }
    }

    pub(crate) async fn page_views(&self) -> u64 {
        self.page_views_of(self.site_id, Self::all_time()).await
    }

    pub(crate) async fn page_views_of(&self, site: Uuid, Range { start, end }: Range) -> u64 {
        let (start, end) = (start.timestamp_millis(), end.timestamp_millis());
        let sql = format!(
            "SELECT count() FROM events WHERE site_id = '{site}' AND name = 'page_view'
                 AND toUnixTimestamp64Milli(received_at) >= {start} AND toUnixTimestamp64Milli(received_at) < {end}"
        );
        self.query(&sql).await.trim().parse().unwrap()
    }

    pub(crate) async fn visitors(&self) -> u64 {
        let site = self.site_id;
        let sql = format!("SELECT uniqExact(visitor) FROM events WHERE site_id = '{site}'");
        self.query(&sql).await.trim().parse().unwrap()
    }

    /// Counts the stored events by path.
    pub(crate) async fn count_by_path(&self) -> BTreeMap<String, u64> {
        let pair = |line: &str| {
            let (path, count) = line.split_once('\t').unwrap();
            (path.to_owned(), count.parse().unwrap())
        };
        self.query("SELECT path, count() FROM events GROUP BY path").await.lines().map(pair).collect()
    }

    /// Returns the page views and visitors by `events` and by `sessions`.
    pub(crate) async fn sums_of_events_and_visits(&self) -> (String, String) {
        let of_events = "SELECT countIf(name = 'page_view'), uniqExact(visitor) FROM events";
        let of_visits = "SELECT sum(page_views), uniqExact(visitor) FROM sessions FINAL";
        (self.query(of_events).await, self.query(of_visits).await)
    }

    /// Runs a query on ClickHouse, bypassing proxies.
    pub(crate) async fn query(&self, sql: &str) -> String {
        let sql = format!("{sql} FORMAT TSV");
        let host = self.clickhouse.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let request = format!(
            "POST /?database={} HTTP/1.0\r\nX-ClickHouse-User: {}\r\nX-ClickHouse-Key: {}\r\nContent-Length: {}\r\n\r\n{sql}",
            self.clickhouse.database,
            self.clickhouse.user,
            self.clickhouse.password,
            sql.len(),
        );
        let mut stream = TcpStream::connect(&host).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{response}");
        body.to_owned()
    }
}

impl Collector {
    /// Waits until it ends without a request.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        sandbox::test::with_timeout(self.ended).await.unwrap()
    }

    /// Shuts it down as SIGTERM does, and waits until it has ended.
    pub(crate) async fn stop(self) {
        self.shutdown.request();
        self.ended.await.unwrap().unwrap();
    }
}

impl CollectorProcess {
    /// Ends it with SIGTERM, and waits until it has ended.
    pub(crate) async fn stop(mut self) {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())).unwrap();
        kill_process(id, Signal::TERM).unwrap();
        let ended = sandbox::test::with_timeout(self.child.wait()).await.unwrap();
        assert!(ended.success(), "{ended}");
    }

    /// `kill -9`.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}
