//! A minimal browser: HTTP/1.1 on one connection, so that a test knows exactly which events were answered before the
//! connection broke.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpStream;

/// The edge token in the configuration of [`crate::fixture::Fixture`].
pub(crate) const EDGE_TOKEN: &str = "the-token-of-the-edge";

pub(crate) struct Browser {
    connection: BufStream<TcpStream>,
}

/// The parts of a request.
pub(crate) struct Request {
    pub(crate) line: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// Builds a page view of `path` from the address `ip`, as the edge forwards it.
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
    /// Replaces a header.
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

    /// Sends a request. Returns the complete response, head and body.
    pub(crate) async fn send(&mut self, request: &Request) -> std::io::Result<String> {
        self.begin(request).await?;
        self.read_response().await
    }

    /// Sends a request without reading the response.
    pub(crate) async fn begin(&mut self, request: &Request) -> std::io::Result<()> {
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
        self.connection.flush().await
    }

    /// Reads the response to the last request.
    pub(crate) async fn read_response(&mut self) -> std::io::Result<String> {
        let mut response = String::new();
        while !response.ends_with("\r\n\r\n") {
            if self.connection.read_line(&mut response).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let length = response.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.connection.read_exact(&mut body).await?;
        Ok(response + &String::from_utf8_lossy(&body))
    }
}

/// Whether the response is 204, as for every event.
pub(crate) fn is_no_content(response: &str) -> bool {
    response.starts_with("HTTP/1.1 204 ")
}
