//! Asks a domain's server whether it is the proxy of another service.

use std::time::Duration;

use domain::domains::has_proxy_headers;
use http::{HeaderMap, Method};
use outbound::{Client, Request};

/// Timeout of the request.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Returns whether a proxy of another service answers at this URL. Nothing of its response is stored or shown, and redirects
/// are not followed.
pub(super) async fn is_proxied(client: &Client, url: String) -> bool {
    let request = Request {
        method: Method::HEAD,
        timeout: Some(TIMEOUT),
        ..Request::post(url, HeaderMap::new(), Vec::new().into())
    };
    let response = client.send(request).await;
    response.is_ok_and(|response| has_proxy_headers(|name| response.headers.contains_key(name)))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that answers every request with these bytes, and never closes a connection.
    struct Server {
        url: String,
        requests: Arc<Mutex<String>>,
    }

    impl Server {
        async fn start(response: &'static str) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let requests = Arc::new(Mutex::new(String::new()));
            let received = Arc::clone(&requests);
            tokio::spawn(async move {
                while let Ok((mut connection, _)) = listener.accept().await {
                    let received = Arc::clone(&received);
                    tokio::spawn(async move {
                        let mut bytes = [0; 1_024];
                        let read = connection.read(&mut bytes).await.unwrap();
                        received.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
                        connection.write_all(response.as_bytes()).await.unwrap();
                        std::future::pending::<()>().await;
                    });
                }
            });
            Self { url, requests }
        }

        async fn is_proxied(&self) -> bool {
            let allow = vec!["127.0.0.0/8".parse().unwrap()];
            let client = Client::new(outbound::Config { allow, ..outbound::Config::default() }).unwrap();
            is_proxied(&client, self.url.clone()).await
        }
    }

    #[tokio::test]
    async fn a_proxy_in_front_of_a_domain_is_told_by_its_headers() {
        for (response, expected) in [
            (
                "HTTP/1.1 200 OK\r\nServer: cloudflare\r\nCF-RAY: 8f2c-FRA\r\nContent-Length: 999\r\n\r\n",
                true,
            ),
            ("HTTP/1.1 522 Timed Out\r\ncf-ray: 8f2c-FRA\r\ncontent-length: 0\r\n\r\n", true),
            ("HTTP/1.1 301 Moved\r\nx-amz-cf-id: a\r\nlocation: http://127.0.0.1:1/\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nServer: nginx\r\nVia: 1.1 own-proxy\r\nContent-Length: 2\r\n\r\n", false),
            ("SSH-2.0-OpenSSH_9.2\r\n", false),
        ] {
            let server = Server::start(response).await;
            assert_eq!(server.is_proxied().await, expected, "{response}");
            let requests = server.requests.lock().unwrap().clone();
            assert!(
                requests.starts_with("HEAD / HTTP/1.1\r\n") && requests.ends_with("\r\n\r\n"),
                "{requests}"
            );
            assert_eq!(requests.matches("HTTP/1.1").count(), 1, "asked once, without following: {requests}");
        }
    }

    #[tokio::test]
    async fn a_server_that_hangs_delays_a_check_for_three_seconds_and_is_no_proxy() {
        for response in ["", "HTTP/1.1 200 OK\r\nCF-RAY: a\r\n", "HTTP/1.1 200 OK\r\n"] {
            let server = Server::start(response).await;
            let began = Instant::now();
            assert!(!server.is_proxied().await);
            // The client's own timeout is 15 s.
            let waited = began.elapsed();
            assert!(waited >= TIMEOUT && waited < 3 * TIMEOUT, "{waited:?}");
        }
    }

    #[tokio::test]
    async fn addresses_of_this_network_are_not_asked() {
        let server = Server::start("HTTP/1.1 200 OK\r\nCF-RAY: a\r\nContent-Length: 0\r\n\r\n").await;
        let client = Client::new(outbound::Config::default()).unwrap();
        assert!(!is_proxied(&client, server.url.clone()).await);
        assert_eq!(*server.requests.lock().unwrap(), "");
    }
}
