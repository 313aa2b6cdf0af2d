//! Test servers, healthy and faulty, and a resolver with scripted results.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{HeaderMap, Method};
use outbound::{Client, Config, Error, Request, Resolve, Resolving, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A secret that no error message may repeat.
pub(crate) const SECRET: &str = "T0K3N";

/// Serves `app` for as long as the test runs.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}

/// Serves raw TCP: reads each connection's request head, then runs `respond`.
pub(crate) async fn raw<F, A>(respond: F) -> SocketAddr
where
    F: Fn(TcpStream) -> A + Clone + Send + 'static,
    A: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let respond = respond.clone();
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let _part = stream.read(&mut head).await?;
                respond(stream).await
            });
        }
    });
    address
}

/// Sends `head`, then bytes until the client disconnects.
pub(crate) async fn without_end(head: &'static str) -> SocketAddr {
    raw(async move |mut stream: TcpStream| {
        stream.write_all(head.as_bytes()).await?;
        loop {
            stream.write_all(&[b'x'; 8192]).await?;
        }
    })
    .await
}

/// Sends `text` and then nothing.
pub(crate) async fn silent_after(text: &'static str) -> SocketAddr {
    raw(async move |mut stream: TcpStream| {
        stream.write_all(text.as_bytes()).await?;
        std::future::pending().await
    })
    .await
}

pub(crate) fn config(allow: &[&str]) -> Config {
    Config {
        allow: allow.iter().map(|entry| entry.parse().unwrap()).collect(),
        connect_timeout: Duration::from_secs(10),
        total_timeout: Duration::from_secs(30),
        max_body_bytes: 1_000,
        authorities: Vec::new(),
        user_agent: "tests".into(),
    }
}

/// A client that may call this machine.
pub(crate) fn local() -> Client {
    Client::new(config(&["127.0.0.0/8"])).unwrap()
}

pub(crate) fn get(url: impl Into<String>) -> Request {
    Request { method: Method::GET, ..Request::post(url, HeaderMap::new(), Bytes::new()) }
}

pub(crate) fn get_at(address: SocketAddr) -> Request {
    get(format!("http://{address}/{SECRET}?key={SECRET}"))
}

/// Returns the class of an error and checks that the error does not contain the secret.
pub(crate) fn class(outcome: Result<Response, Error>) -> &'static str {
    let error = outcome.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    error.class()
}

/// A resolver that returns the next result of its script for each lookup, and an error at its end.
#[derive(Clone, Default)]
pub(crate) struct Script(Arc<Mutex<VecDeque<Vec<IpAddr>>>>);

impl Script {
    pub(crate) fn new(results: &[&[&str]]) -> Self {
        let addresses = |result: &&[&str]| result.iter().map(|address| address.parse().unwrap()).collect();
        Self(Arc::new(Mutex::new(results.iter().map(addresses).collect())))
    }

    pub(crate) fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Resolve for Script {
    fn resolve(&self, _host: &str) -> Resolving {
        let next = self.0.lock().unwrap().pop_front();
        Box::pin(async move { next.ok_or_else(|| io::Error::other("no such host")) })
    }
}
