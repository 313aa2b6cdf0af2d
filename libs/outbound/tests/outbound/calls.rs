//! What the server receives of a call, and the error classes of failed calls.

use std::time::Duration;

use axum::Router;
use axum::extract::Request as Received;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use outbound::{Client, Request};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use crate::support::{SECRET, Script, class, config, get, get_at, local, raw, serve};

#[tokio::test]
async fn a_request_and_its_response_arrive_unchanged() {
    let (seen, mut received) = mpsc::unbounded_channel();
    let app = Router::new().fallback(move |request: Received| async move {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 10_000).await.unwrap();
        seen.send((head, body)).unwrap();
        ([("x-answer", "yes"), ("set-cookie", "a=b")], "thanks")
    });
    let address = serve(app).await;
    let mut headers = HeaderMap::new();
    for (name, value) in
        [("webhook-id", "msg_1"), ("host", "evil"), ("content-length", "1"), ("te", "trailers")]
    {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let url = format!("http://{address}/hook?a=1");
    let client = local();
    let request = Request::post(&url, headers, Bytes::from_static(b"{\"n\":1}"));
    let response = client.send(request).await.unwrap();
    let (head, body) = received.recv().await.unwrap();
    assert_eq!((head.method, head.uri.to_string()), (Method::POST, "/hook?a=1".into()));
    assert_eq!(&body[..], b"{\"n\":1}", "byte for byte, because it is signed");
    assert_eq!(head.headers["webhook-id"], "msg_1");
    assert_eq!(head.headers["user-agent"], "tests");
    assert_eq!(head.headers["host"], address.to_string());
    assert_eq!(head.headers["content-length"], "7");
    assert!(!head.headers.contains_key("te") && !head.headers.contains_key("accept-encoding"));
    assert_eq!(response.status.as_u16(), 200);
    assert_eq!(response.headers["x-answer"], "yes");
    assert_eq!((&response.body[..], response.truncated), (&b"thanks"[..], false));

    client.send(get(&url)).await.unwrap();
    let (head, _) = received.recv().await.unwrap();
    assert!(
        !head.headers.contains_key("cookie") && !head.headers.contains_key("referer"),
        "nothing is stored between calls"
    );
}

#[tokio::test]
async fn errors_have_stable_classes_and_never_repeat_the_url() {
    let client = local();
    let closed_port = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    assert_eq!(class(client.send(get_at(closed_port)).await), "connect");

    let plain = serve(Router::new()).await;
    assert_eq!(class(client.send(get(format!("https://{plain}/{SECRET}"))).await), "tls");

    let garbage = raw(async |mut stream| stream.write_all(b"220 mail ready\r\n").await).await;
    assert_eq!(class(client.send(get_at(garbage)).await), "protocol");

    let hangs_up = raw(async |stream| {
        drop(stream);
        Ok(())
    })
    .await;
    assert_eq!(class(client.send(get_at(hangs_up)).await), "protocol");

    let without_dns = Client::with_resolver(config(&[]), Script::new(&[])).unwrap();
    assert_eq!(class(without_dns.send(get(format!("https://nowhere.example/{SECRET}"))).await), "dns");

    for url in
        [format!("http://example.com/{SECRET}"), format!("https://u:{SECRET}@example.com"), SECRET.into()]
    {
        assert_eq!(class(client.send(get(url)).await), "refused_target");
    }
}

#[tokio::test]
async fn a_host_that_accepts_no_connection_times_out() {
    // With a full accept queue, further connections hang as they do for an unreachable host.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let limits = outbound::Config { connect_timeout: Duration::from_millis(300), ..config(&["127.0.0.0/8"]) };
    let client = Client::new(limits).unwrap();
    let mut waiting = Vec::new();
    let class = loop {
        let attempt =
            tokio::time::timeout(Duration::from_millis(200), tokio::net::TcpStream::connect(address)).await;
        match attempt {
            Ok(stream) => waiting.push(stream.unwrap()),
            Err(_full) => break class(client.send(get_at(address)).await),
        }
    };
    assert_eq!(class, "timeout");
}
