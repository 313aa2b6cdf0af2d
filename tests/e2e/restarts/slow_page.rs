//! A request that takes longer than a drain: its body arrives in two parts.

use std::sync::PoisonError;

use anyhow::{Context as _, Result, ensure};
use harness::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::scene::Scene;

const SLUG: &str = "slow";
const BODY: &str = r#"{"slug": "slow", "title": "Slow", "html": "<h1>Slow</h1>"}"#;

/// A request for a page that has begun and is not sent in full.
pub(super) struct SlowPage<'a> {
    scene: &'a Scene,
    stream: TcpStream,
}

impl Scene {
    /// Begins to create a page.
    pub(super) async fn begin_slow_page(&self) -> Result<SlowPage<'_>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let (_, host) = self.base.split_once("://").context("no scheme")?;
        let key = self.client.key.as_deref().context("no key")?;
        let (length, begin) = (BODY.len(), &BODY[..10]);
        let head = format!(
            "POST /api/pages HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{begin}"
        );
        stream.write_all(head.as_bytes()).await?;
        Ok(SlowPage { scene: self, stream })
    }

    /// Waits until the load has created so many more pages.
    pub(super) async fn until_more_pages(&self, count: usize) -> Result<()> {
        let created = || self.created.lock().unwrap_or_else(PoisonError::into_inner).len();
        let enough = created() + count;
        until("more pages", async || (created() >= enough).then_some(())).await
    }
}

impl SlowPage<'_> {
    /// Sends the rest, and fails unless the page is created.
    pub(super) async fn finish(mut self) -> Result<()> {
        self.stream.write_all(&BODY.as_bytes()[10..]).await?;
        let mut response = String::new();
        self.stream.read_to_string(&mut response).await?;
        ensure!(response.starts_with("HTTP/1.1 201 "), "the slow request was answered {response:?}");
        self.scene.created.lock().unwrap_or_else(PoisonError::into_inner).insert(SLUG.to_owned());
        Ok(())
    }
}
