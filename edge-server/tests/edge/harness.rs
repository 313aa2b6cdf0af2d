//! Starts an edge for one test, and waits for its cache and its signals.

use std::net::SocketAddr;

use contract::{Change, DatedSignal, Signal};
use edge_server::{Config, DEFAULTS};
use sandbox::test::{TestDatabase, TestFolder, TestRedis, eventually, until};
use service::config::{Listen, Sources, load};
use service::{Listeners, Shutdown};
use tokio::net::TcpStream;
use url::Url;

use crate::client::{TestResponse, Visitor};
use crate::fault_proxy::FaultProxy;
use crate::upstream::Upstream;

/// The token that authenticates the edge to the upstreams.
pub(crate) const TOKEN: &str = "a-token-for-tests-alone";

/// A running edge with its own stores and upstreams.
pub(crate) struct Edge {
    pub(crate) visitor: Visitor,
    pub(crate) database: TestDatabase,
    pub(crate) postgres: FaultProxy,
    pub(crate) redis: TestRedis,
    pub(crate) control_plane: Upstream,
    pub(crate) collector: Upstream,
    pub(crate) bus: cache::Bus<Signal>,
    /// The folder of the blob store.
    pub(crate) blobs: TestFolder,
    /// The address for https, unless it is off.
    https: Option<SocketAddr>,
    port: u16,
    settings: Vec<String>,
    shutdown: Shutdown,
}

impl Edge {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts an edge with these settings on top of the test defaults.
    pub(crate) async fn with(set: &[&str]) -> Self {
        Self::listening(Listen::default(), set).await
    }

    /// Starts an edge that listens as told, with these settings on top of the test defaults.
    pub(crate) async fn listening(listen: Listen, set: &[&str]) -> Self {
        let database = sandbox::test::database().await;
        let redis = sandbox::test::redis().await;
        let mut url = Url::parse(&database.url).unwrap();
        let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
        let postgres = FaultProxy::to(server).await;
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(postgres.address.port())).unwrap();
        let (control_plane, collector) = (Upstream::start().await, Upstream::start().await);
        let listeners = Listeners::bind(&listen).unwrap();
        let address: SocketAddr = listeners.main.local_addr().unwrap();
        let https = listeners.https.as_ref().map(|https| https.local_addr().unwrap());

        let blobs = sandbox::test::folder();
        let mut settings = sandbox::test::settings_for(&[&redis, &blobs]);
        settings.extend([
            format!("store.url={url}"),
            "store.max_connections=10".to_owned(),
            format!("http.base_url=http://localhost:{}", address.port()),
            "http.sites_domain=localhost".to_owned(),
            format!("upstreams.control_plane={}", control_plane.url()),
            format!("upstreams.collector={}", collector.url()),
            format!("secrets.edge_token={TOKEN}"),
            // Longer than any test: a reload always follows a signal, never the age of an entry.
            "cache.max_age=1h".to_owned(),
            // Tests send many submissions from one address.
            "forms.max_submissions_per_minute=0".to_owned(),
            "forms.max_submissions_per_day=0".to_owned(),
        ]);
        settings.extend(set.iter().map(ToString::to_string));
        let shutdown = Shutdown::new();
        tokio::spawn(edge_server::run(config(&settings), listeners, shutdown.clone()));
        let bus = cache::Bus::connect(&redis.url, &redis.prefix).unwrap();
        let visitor = Visitor::of(address);
        let port = address.port();
        Self {
            visitor,
            database,
            postgres,
            redis,
            control_plane,
            collector,
            bus,
            blobs,
            https,
            port,
            settings,
            shutdown,
        }
    }

    /// The host of a site.
    pub(crate) fn site_host(&self, name: &str) -> String {
        let domain = self.settings.iter().rev().find_map(|set| set.strip_prefix("http.sites_domain="));
        format!("{name}.{}", domain.unwrap())
    }

    /// The address for https.
    pub(crate) fn https(&self) -> SocketAddr {
        self.https.unwrap()
    }

    /// Starts another edge over the same stores, with https. Returns its address for https.
    pub(crate) fn start_another(&self) -> SocketAddr {
        let listeners = Listeners::bind(&over_https()).unwrap();
        let https = listeners.https.as_ref().unwrap().local_addr().unwrap();
        tokio::spawn(edge_server::run(config(&self.settings), listeners, self.shutdown.clone()));
        https
    }

    /// Returns why another edge over the same stores does not start, or `None` if it accepts a connection before it ends.
    pub(crate) async fn refusal(&self) -> Option<String> {
        let listeners = Listeners::reserve(&Listen::default()).unwrap();
        let address = listeners.main.local_addr().unwrap();
        let run = edge_server::run(config(&self.settings), listeners, Shutdown::new());
        let connecting = async {
            while TcpStream::connect(address).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            ended = sandbox::test::with_timeout(run) => Some(ended.unwrap_err().to_string()),
            () = connecting => None,
        }
    }

    /// Waits until the edge is subscribed to the bus and has reloaded the entries whose signals it may have missed.
    /// Call it once per edge.
    pub(crate) async fn wait_until_subscribed(&self) {
        self.wait_until_subscribed_to(&self.redis.url).await;
        let probe = self.account("the-probe").await;
        probe.page("probe", "").await;
        self.visitor.get(&probe.host, "/probe").await;
        // The first miss may come from the reload at the subscription; only a later signal causes the second.
        for _ in 0..2 {
            let change =
                Change::Page { subdomain_id: probe.subdomain_id, slug: "probe".to_owned(), path: None };
            self.bus.publish(&Signal::Changed(change)).await.unwrap();
            self.get_until(&probe.host, "/probe", |response| response.header("x-cache") == "miss").await;
        }
    }

    /// Waits until the edge is subscribed to the bus of this Redis.
    pub(crate) async fn wait_until_subscribed_to(&self, redis_url: &str) {
        let channel = format!("{}:bus", self.redis.prefix);
        let client = redis::Client::open(redis_url).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        until(async || {
            let mut command = redis::cmd("PUBSUB");
            command.arg("NUMSUB").arg(&channel);
            let (_, listening): (String, usize) = command.query_async(&mut connection).await.unwrap();
            listening > 0
        })
        .await;
    }

    /// Counts the queries that read a table from now on; see [`Self::reads_at_most`].
    pub(crate) async fn count_reads(&self, table: &str) {
        // A sequence counts reads, because the subquery runs once for each.
        self.run(&format!(
            "create sequence {table}_reads minvalue 0; select nextval('{table}_reads');
             alter table {table} rename to stored_{table};
             create view {table} as select * from stored_{table} where (select nextval('{table}_reads')) > 0"
        ))
        .await;
    }

    /// Returns whether a table was read by at most this many queries since [`Self::count_reads`].
    pub(crate) async fn reads_at_most(&self, table: &str, limit: u64) -> bool {
        let count = format!(
            "do $$ begin if (select last_value from {table}_reads) > {limit} then raise 'more'; end if; end $$"
        );
        store::execute_raw(&self.database.db, &count).await.is_ok()
    }

    /// Publishes a change on the bus.
    pub(crate) async fn publish_change(&self, change: Change) {
        self.bus.publish(&Signal::Changed(change)).await.unwrap();
    }

    /// Publishes a signal that the edge cannot parse. It then marks every cache entry as stale.
    pub(crate) async fn publish_unreadable_signal(&self) {
        let newer: cache::Bus<serde_json::Value> =
            cache::Bus::connect(&self.redis.url, &self.redis.prefix).unwrap();
        newer.publish(&serde_json::json!({"signal": "of_a_later_version"})).await.unwrap();
    }

    /// Requests a shutdown.
    pub(crate) fn stop(&self) {
        self.shutdown.request();
    }

    /// Waits until the edge has handled every signal published so far. Call it after [`Self::wait_until_subscribed`].
    pub(crate) async fn wait_until_signals_handled(&self) {
        let host = &self.site_host("the-probe");
        self.get_until(host, "/probe", |response| response.header("x-cache") == "hit").await;
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let site = store::subdomains::find_site_by_name(&mut conn, "the-probe", crate::fixtures::now()).await;
        let subdomain_id = site.unwrap().unwrap().subdomain_id;
        drop(conn);
        // Signals arrive in the order of their publication.
        self.publish_change(Change::Page { subdomain_id, slug: "probe".to_owned(), path: None }).await;
        self.get_until(host, "/probe", |response| response.header("x-cache") == "miss").await;
    }

    /// The port in the edge's URLs.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Publishes the signals in the outbox, as the job-runner does. Returns their number.
    pub(crate) async fn relay_outbox(&self) -> usize {
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let due = store::outbox::lock_signals(&mut tx, crate::fixtures::now(), 1_000).await.unwrap();
        for row in &due {
            let signal = row.message.clone().unwrap();
            let dated = DatedSignal { signal, written_at: Some(row.created_at) };
            self.bus.with_messages().publish(&dated).await.unwrap();
        }
        store::outbox::delete(&mut tx, &due.iter().map(|row| row.id).collect::<Vec<_>>()).await.unwrap();
        store::commit(tx).await.unwrap();
        due.len()
    }

    /// Requests a page until the response matches.
    pub(crate) async fn get_until(
        &self,
        host: &str,
        path: &str,
        matches_response: impl Fn(&TestResponse) -> bool,
    ) -> TestResponse {
        eventually(async || {
            let response = self.visitor.get(host, path).await;
            matches_response(&response).then_some(response)
        })
        .await
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}

/// Listens on free ports, for https too.
pub(crate) fn over_https() -> Listen {
    Listen { https: Some((std::net::Ipv4Addr::LOCALHOST, 0).into()), ..Listen::default() }
}

fn config(settings: &[String]) -> Config {
    load(DEFAULTS, &Sources { set: settings.to_vec(), ..Sources::default() }).unwrap().config
}

/// A short pause between the writes or reads of a slow client.
pub(crate) async fn short_pause() {
    #[expect(clippy::disallowed_methods, reason = "a slow client needs real time")]
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
}
