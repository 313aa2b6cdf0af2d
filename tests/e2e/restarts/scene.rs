//! An account with a page, a form, a webhook and an analytics site, and the requests of their visitors and owner.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use harness::{Client, Rate, Receiver, System, until};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::faults::set_scale_plan;

/// Settings of all replicas: the load comes from one address and one account, two of each service share Postgres's
/// connections, and a busy machine makes it slow.
const SET: [&str; 5] = [
    "listen.drain=5s",
    "store.max_connections=8",
    "store.acquire_timeout=1m",
    "store.lock_timeout=1m",
    "store.statement_timeout=1m",
];

/// The settings of a service, the last of which take precedence.
pub(super) fn set_of<'a>(service: &str, more: &[&'a str]) -> Vec<&'a str> {
    let own = match service {
        "edge-server" => "forms.lock_timeout=1m",
        "collector" => "collector.events_per_minute=1000000",
        _ => "listen.drain_timeout=1m",
    };
    SET.into_iter().chain([own]).chain(more.iter().copied()).collect()
}

#[derive(Clone)]
pub(super) struct Scene {
    pub(super) client: Client,
    pub(super) port: u16,
    pub(super) base: String,
    /// The host of the site with the page.
    host: String,
    form: Value,
    site_token: String,
    receiver: Arc<Receiver>,
    submitted: Arc<Mutex<BTreeSet<String>>>,
    pub(super) created: Arc<Mutex<BTreeSet<String>>>,
}

impl Scene {
    /// Creates the account through the public port.
    pub(super) async fn create(system: &System, port: u16) -> Result<Self> {
        let base = system.file.base_url.clone();
        let mut client = Client::new(port);
        let post = async |client: &Client, path: &str, body: Value| {
            client.retry_until_ok(Method::POST, &format!("{base}{path}"), &body).await
        };
        let trial = post(&client, "/api/trial", Value::Null).await?;
        client.key = trial["key"].as_str().map(str::to_owned);
        set_scale_plan(system, &client, &base).await?;
        let page = json!({"slug": "index", "title": "Hello", "html": "<h1>Hello</h1>"});
        let page = post(&client, "/api/pages", page).await?;
        let url: http::Uri = page["subdomainUrl"].as_str().context("no subdomainUrl")?.parse()?;
        let form = json!({"name": "Load", "fields": [{"name": "n", "label": "N", "type": "number"}]});
        let form = post(&client, "/api/forms", form).await?;
        let receiver = Receiver::listen(0).await?;
        post(&client, "/api/webhooks", json!({"url": receiver.url})).await?;
        let site = post(&client, "/api/analytics/sites", json!({"name": "Load"})).await?;
        let scene = Self {
            client,
            port,
            base,
            host: url.authority().context("no host")?.to_string(),
            form,
            site_token: site["site"]["siteToken"].as_str().context("no siteToken")?.to_owned(),
            receiver: Arc::new(receiver),
            submitted: Arc::default(),
            created: Arc::default(),
        };
        let page = scene.page_url();
        until("the page to be served", async || {
            let answer = scene.client.get(&page).await.ok()?;
            (answer.status == StatusCode::OK).then_some(())
        })
        .await?;
        Ok(scene)
    }

    fn page_url(&self) -> String {
        format!("http://{}/", self.host)
    }

    /// Visitors' requests for the page: over kept connections, over new ones, and over HTTP/2.
    pub(super) fn page_views(&self) -> Vec<Rate> {
        let (kept, new) = (self.clone(), self.clone());
        let http2 = self.clone();
        // Over HTTP/2 the URL names the host, so each name leads to this machine.
        let resolver = tower::service_fn(|_name: Name| async {
            Ok::<_, Infallible>(std::iter::once(SocketAddr::from(([127, 0, 0, 1], 0))))
        });
        let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .http2_only(true)
            .build::<_, Full<Bytes>>(HttpConnector::new_with_resolver(resolver));
        vec![
            Rate::new("page, kept connection", 8, move |_| {
                let scene = kept.clone();
                async move { expect(StatusCode::OK, &scene.client.get(&scene.page_url()).await?) }
            }),
            Rate::new("page, new connection", 8, move |_| {
                let scene = new.clone();
                async move { scene.page_over_a_new_connection().await }
            }),
            Rate::new("page, HTTP/2", 5, move |_| {
                let (scene, client) = (http2.clone(), client.clone());
                async move {
                    let name = scene.host.split(':').next().unwrap_or_default();
                    let url = format!("http://{name}:{}/", scene.port);
                    let request = Request::get(url).body(Full::default())?;
                    let response = match client.request(request.clone()).await {
                        // It met the end of its connection and was not processed (RFC 9113, 6.8): clients repeat it.
                        Err(error) if is_unprocessed(&error) => client.request(request).await?,
                        answered => answered?,
                    };
                    let status = response.status();
                    response.into_body().collect().await?;
                    ensure!(status == StatusCode::OK, "{status}");
                    Ok(())
                }
            }),
        ]
    }

    async fn page_over_a_new_connection(&self) -> Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let request = format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host);
        stream.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        ensure!(response.starts_with("HTTP/1.1 200 "), "answered {response:?}");
        ensure!(response.contains("<h1>Hello</h1>"), "cut: {response:?}");
        Ok(())
    }

    /// The owner's API calls: with and without bodies, reading and writing.
    pub(super) fn api_calls(&self) -> Vec<Rate> {
        let (read, write, empty) = (self.clone(), self.clone(), self.clone());
        vec![
            Rate::new("GET /api/account", 5, move |_| {
                let scene = read.clone();
                async move {
                    let answer = scene.client.get(&format!("{}/api/account", scene.base)).await?;
                    expect(StatusCode::OK, &answer)
                }
            }),
            Rate::new("POST /api/pages", 3, move |number| {
                let scene = write.clone();
                async move {
                    let slug = format!("page-{number}");
                    let page = json!({"slug": slug, "title": "Hello", "html": "<h1>Hello</h1>"});
                    let url = format!("{}/api/pages", scene.base);
                    let answer = scene.client.json(Method::POST, &url, &page).await?;
                    expect(StatusCode::CREATED, &answer)?;
                    scene.created.lock().unwrap_or_else(PoisonError::into_inner).insert(slug);
                    Ok(())
                }
            }),
            Rate::new("POST /api/trial", 1, move |_| {
                let scene = empty.clone();
                async move {
                    let url = format!("{}/api/trial", scene.base);
                    let answer = scene.client.send(Method::POST, &url, &[], Bytes::new()).await?;
                    expect(StatusCode::CREATED, &answer)
                }
            }),
        ]
    }

    /// Visitors' submissions and events.
    pub(super) fn submissions_and_events(&self) -> Vec<Rate> {
        let (submit, collect) = (self.clone(), self.clone());
        vec![
            Rate::new("submission", 3, move |number| {
                let scene = submit.clone();
                async move {
                    let url = scene.form["submitUrl"].as_str().context("no submitUrl")?;
                    let answer = scene.client.json(Method::POST, url, &json!({"n": number})).await?;
                    expect(StatusCode::CREATED, &answer)?;
                    let id = answer.json()["submissionId"].as_str().context("no submissionId")?.to_owned();
                    scene.submitted.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
                    Ok(())
                }
            }),
            Rate::new("event", 5, move |_| {
                let scene = collect.clone();
                async move {
                    let event =
                        json!({"siteToken": scene.site_token, "name": "page_view", "url": "https://x.test/"});
                    let url = format!("{}/api/collect", scene.base);
                    let answer = scene.client.json(Method::POST, &url, &event).await?;
                    expect(StatusCode::NO_CONTENT, &answer)
                }
            }),
        ]
    }

    /// Waits until every accepted submission is delivered.
    pub(super) async fn until_delivered(&self) -> Result<()> {
        let submitted = self.submitted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        until("every submission to be delivered", async || {
            let delivered: BTreeSet<_> =
                self.receiver.received().iter().map(harness::Delivery::submission_id).collect();
            submitted.is_subset(&delivered).then_some(())
        })
        .await
    }

    /// Fails unless each page that a call created is stored, and none besides.
    pub(super) async fn ensure_each_page_is_stored_once(&self) -> Result<()> {
        let created = self.created.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let account = self.client.get(&format!("{}/api/account", self.base)).await?.json();
        let mut stored = BTreeSet::new();
        let mut cursor = String::new();
        loop {
            let url = format!("{}/api/pages?limit=100{cursor}", self.base);
            let list = self.client.get(&url).await?.json();
            for page in list["pages"].as_array().with_context(|| format!("no pages: {list} {account}"))? {
                let slug = page["slug"].as_str().context("no slug")?.to_owned();
                ensure!(stored.insert(slug.clone()), "{slug} is stored twice");
            }
            match list["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        stored.remove("index");
        ensure!(stored == created, "{} pages are stored, {} were created", stored.len(), created.len());
        Ok(())
    }
}

/// Whether HTTP/2 reports the end of a connection without an error.
fn is_unprocessed(error: &hyper_util::client::legacy::Error) -> bool {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |cause| cause.source());
    causes.map(ToString::to_string).any(|text| text.contains("not a result of an error"))
}

fn expect(status: StatusCode, answer: &harness::Response) -> Result<()> {
    ensure!(answer.status == status, "answered {} {}", answer.status, answer.text());
    Ok(())
}
