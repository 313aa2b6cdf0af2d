//! A visitor's browser, as far as a tracker needs one: HTTP/1.1 on one connection, so that a test knows exactly
//! which events were answered before a connection broke.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpStream;

/// What [`crate::fixture::Fixture`] configures, and the edge would send.
pub(crate) const EDGE_TOKEN: &str = "the-edges-token";

pub(crate) struct Browser {
    connection: BufStream<TcpStream>,
}

/// A request's headers, line by line, and body.
pub(crate) struct Request {
    pub(crate) line: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// A page view of `path` on the site, from `ip` as the edge reports it.
pub(crate) fn page_view(site_token: &str, path: &str, ip: IpAddr) -> Request {
    let body =
        json!({"siteToken": site_token, "name": "page_view", "url": format!("https://shop.example{path}")});
    event(&body, ip)
}

pub(crate) fn event(body: &Value, ip: IpAddr) -> Request {
    let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0";
    let headers = vec![
        ("user-agent", firefox.to_owned()),
        ("content-type", "text/plain".to_owned()),
        ("x-edge-token", EDGE_TOKEN.to_owned()),
        ("x-client-ip", ip.to_string()),
    ];
    Request { line: "POST /api/collect", headers, body: body.to_string().into_bytes() }
}

impl Request {
    /// The same with another value of a header.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.to_owned()));
        self
    }
}

impl Browser {
    pub(crate) async fn connect(to: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Self { connection: BufStream::new(stream) })
    }

    /// Sends a request. Gives the answer, head and body, once it is there in full.
    pub(crate) async fn send(&mut self, request: &Request) -> std::io::Result<String> {
        let mut head = format!(
            "{} HTTP/1.1\r\nhost: collector\r\ncontent-length: {}\r\n",
            request.line,
            request.body.len()
        );
        for (name, value) in &request.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.connection.write_all(head.as_bytes()).await?;
        self.connection.write_all(b"\r\n").await?;
        self.connection.write_all(&request.body).await?;
        self.connection.flush().await?;
        self.read_answer().await
    }

    async fn read_answer(&mut self) -> std::io::Result<String> {
        let mut answer = String::new();
        while !answer.ends_with("\r\n\r\n") {
            if self.connection.read_line(&mut answer).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let length = answer.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.connection.read_exact(&mut body).await?;
        Ok(answer + &String::from_utf8_lossy(&body))
    }
}

/// Whether the answer is the one every event gets.
pub(crate) fn answered(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 204 ")
}
