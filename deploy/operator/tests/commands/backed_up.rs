//! An installation with backups: Postgres that archives its log with pgBackRest, a ClickHouse that may write backups, a folder of
//! blobs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use sandbox::programs::PgBackRest;
use sandbox::test::{
    BackedUpClickHouse, KillablePostgres, TestFolder, TestRedis, clickhouse_with_backups, settings_for, until,
};
use sha2::{Digest as _, Sha256};
use store::Db;
use uuid::Uuid;

use crate::installation::{Ended, MASTER_KEY, PEPPER, ended, program};

/// An installation with backups. Accounts have the ids 1, 2, …; the site of an account has its id plus 100.
pub(crate) struct BackedUp {
    pub(crate) postgres: KillablePostgres,
    clickhouse: BackedUpClickHouse,
    db: Db,
    pub(crate) folder: TestFolder,
    blobs: TestFolder,
    pub(crate) set: Vec<String>,
}

impl BackedUp {
    pub(crate) async fn new(program: &PgBackRest) -> Self {
        let (folder, blobs) = (sandbox::test::folder(), sandbox::test::folder());
        let (config, backups) = (folder.path().join("pgbackrest.conf"), folder.path().join("backups"));
        let root = folder.path();
        for folder in ["backups/postgres", "backups/clickhouse", "metrics", "log", "lock"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).unwrap();
            // Postgres and pgBackRest run as another user than this test.
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        }
        let push = [&program.by_postgres[..], &[format!("--config={}", config.display())]].concat().join(" ");
        let settings = [
            "archive_mode=on".to_owned(),
            format!("archive_command={push} --stanza=webruntime archive-push %p"),
        ];
        let clickhouse = backups.join("clickhouse");
        let (postgres, clickhouse, redis) = tokio::join!(
            KillablePostgres::start(&settings),
            clickhouse_with_backups(&clickhouse),
            sandbox::test::redis(),
        );
        let server = postgres.server();
        let text = format!(
            "[global]\nrepo1-path={0}/backups/postgres\nlog-path={0}/log\nlock-path={0}/lock\nlog-level-file=off\n\
             compress-type=none\narchive-timeout=30\n[webruntime]\npg1-path={1}\npg1-port={2}\npg1-user=postgres\n",
            root.display(),
            server.data_dir().display(),
            server.port()
        );
        fs::write(&config, text).unwrap();
        let db = store::connect(&store::Config::new(postgres.url(), 1)).unwrap();
        let mut installation = Self { postgres, clickhouse, db, folder, blobs, set: Vec::new() };
        installation.set = installation.settings(program, &config, &redis);
        installation
    }

    fn settings(&self, program: &PgBackRest, config: &Path, redis: &TestRedis) -> Vec<String> {
        let password = self.postgres.url().split(':').nth(2).unwrap().split('@').next().unwrap();
        let environment = ["env".to_owned(), "PGHOST=127.0.0.1".to_owned(), format!("PGPASSWORD={password}")];
        let command =
            [&environment[..], &program.as_postgres, &[format!("--config={}", config.display())]].concat();
        let mut settings = settings_for(&[&self.clickhouse.database, redis, &self.blobs]);
        settings.extend([
            format!("store.url={}", self.postgres.url()),
            format!("secrets.key_pepper={PEPPER}"),
            format!("backup.folder={}", self.backups().display()),
            format!("backup.metrics_folder={}", config.with_file_name("metrics").display()),
            format!("backup.pgbackrest={}", serde_json::to_string(&command).unwrap()),
        ]);
        settings
    }

    pub(crate) fn backups(&self) -> PathBuf {
        self.folder.path().join("backups")
    }

    pub(crate) fn run_with(&self, master_key: &str, args: &[&str]) -> Ended {
        let mut command: Command = program(args);
        // `setpriv` and `env` are looked up in it.
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        for set in self.set.iter().chain([&format!("secrets.master_key={master_key}")]) {
            command.args(["--set", set]);
        }
        ended(command.output().unwrap())
    }

    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ended = self.run_with(MASTER_KEY, args);
        assert_eq!(ended.code, 0, "{args:?}: {ended:?}");
        ended.stdout
    }

    pub(crate) fn error(&self, args: &[&str]) -> String {
        let ended = self.run_with(MASTER_KEY, args);
        assert_eq!(ended.code, 1, "{args:?}: {ended:?}");
        ended.stderr
    }

    pub(crate) async fn execute(&self, statement: &str) {
        store::execute_raw(&self.db, statement).await.unwrap();
    }

    /// Closes this test's connections, as services that stop do.
    pub(crate) async fn disconnect(&mut self) {
        self.db.close().await;
        self.db = store::connect(&store::Config::new(self.postgres.url(), 1)).unwrap();
    }

    /// Adds an account with a site, two events and a blob.
    pub(crate) async fn add_account(&self, number: u128) {
        let (account, site) = (Uuid::from_u128(number), Uuid::from_u128(number + 100));
        let bytes = Bytes::from(format!("blob of {number}"));
        let sha256: [u8; 32] = Sha256::digest(&bytes).into();
        self.execute(&format!(
            "insert into accounts (id, name, claimed_at, created_at) values ('{account}', 'a', now(), now());
             insert into analytics_sites (id, account_id, site_token, name, created_at)
             values ('{site}', '{account}', 't{number}', 's', now());
             insert into blobs (id, account_id, sha256, size_bytes) values
                 ('{site}', '{account}', decode('{}', 'hex'), {})",
            hex::encode(sha256),
            bytes.len()
        ))
        .await;
        let store = blobs::Blobs::connect(&self.blob_settings()).unwrap();
        store.put(blobs::Name { account_id: account, sha256 }, bytes).await.unwrap();
        let values = format!("('{site}', '{account}', now64(3)), ('{site}', '{account}', now64(3))");
        self.clickhouse_query(&format!(
            "INSERT INTO events (site_id, account_id, received_at) VALUES {values}"
        ))
        .await;
    }

    fn blob_settings(&self) -> blobs::Config {
        blobs::Config {
            url: self.blobs.path().display().to_string(),
            endpoint: String::new(),
            region: String::new(),
            key_id: String::new(),
            secret: String::new().into(),
            path_style: true,
        }
    }

    pub(crate) async fn delete_account(&self, number: u128) {
        let now = service::Clock::system().now();
        let mut tx = store::begin(&self.db).await.unwrap();
        store::purges::delete_account(&mut tx, Uuid::from_u128(number), now).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    pub(crate) async fn delete_site(&self, number: u128) {
        let (account, site) = (Uuid::from_u128(number), Uuid::from_u128(number + 100));
        let now = service::Clock::system().now();
        let mut tx = store::begin(&self.db).await.unwrap();
        store::sites::delete_site(&mut tx, account, site).await.unwrap().unwrap();
        store::purges::insert_event_purge(&mut tx, account, Some(site), now).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    /// Waits until everything that was committed so far is archived.
    pub(crate) async fn archive(&self) -> DateTime<Utc> {
        let mut conn = store::acquire(&self.db).await.unwrap();
        let switch = "select pg_walfile_name(pg_switch_wal())";
        let segment: String = sqlx::query_scalar(switch).fetch_one(&mut *conn).await.unwrap();
        let at: DateTime<Utc> = sqlx::query_scalar("select now()").fetch_one(&mut *conn).await.unwrap();
        drop(conn);
        until(async || {
            let mut conn = store::acquire(&self.db).await.unwrap();
            let last = "select coalesce(last_archived_wal, '') from pg_stat_archiver";
            let last: String = sqlx::query_scalar(last).fetch_one(&mut *conn).await.unwrap();
            last >= segment
        })
        .await;
        at
    }

    pub(crate) async fn accounts(&self) -> Vec<u128> {
        let mut conn = store::acquire(&self.db).await.unwrap();
        let ids: Vec<Uuid> =
            sqlx::query_scalar("select id from accounts order by id").fetch_all(&mut *conn).await.unwrap();
        ids.into_iter().map(|id| id.as_u128()).collect()
    }

    /// Returns the accounts with events, and how many each has.
    pub(crate) async fn events(&self) -> Vec<(u128, u64)> {
        let counts =
            "SELECT account_id, count() FROM events GROUP BY account_id ORDER BY account_id FORMAT TSV";
        let text = self.clickhouse_query(counts).await;
        let pair = |line: &str| {
            let (account, count) = line.split_once('\t').unwrap();
            (account.parse::<Uuid>().unwrap().as_u128(), count.parse().unwrap())
        };
        text.lines().map(pair).collect()
    }

    async fn clickhouse_query(&self, sql: &str) -> String {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let database = &self.clickhouse.database;
        let host = database.url.trim_start_matches("http://");
        let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
        let request = format!(
            "POST /?database={} HTTP/1.0\r\nX-ClickHouse-User: {}\r\nX-ClickHouse-Key: {}\r\nContent-Length: {}\r\n\r\n{sql}",
            database.database,
            database.user,
            database.password,
            sql.len(),
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{sql}: {response}");
        body.to_owned()
    }

    /// Stops Postgres and deletes all data.
    pub(crate) async fn wipe(&mut self) {
        let data = self.postgres.server().data_dir().to_owned();
        self.disconnect().await;
        self.postgres.stop().await;
        for entry in fs::read_dir(&data).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
        }
        self.clickhouse_query("DROP DATABASE webruntime SYNC").await;
        fs::remove_dir_all(self.blobs.path()).unwrap();
    }

    pub(crate) fn blob_files(&self) -> Vec<String> {
        let accounts = self.blobs.files().into_iter().filter_map(|path| {
            let account = path.strip_prefix("kept/")?.split('/').next()?.to_owned();
            Some(account.parse::<Uuid>().unwrap().as_u128().to_string())
        });
        accounts.collect()
    }

    /// Returns the accounts with blobs in the backup folder.
    pub(crate) fn blob_pool(&self) -> Vec<String> {
        let accounts = fs::read_dir(self.backups().join("blobs")).unwrap().map(|entry| entry.unwrap());
        accounts
            .filter(|account| fs::read_dir(account.path()).unwrap().next().is_some())
            .map(|account| account.file_name().into_string().unwrap())
            .collect()
    }
}
