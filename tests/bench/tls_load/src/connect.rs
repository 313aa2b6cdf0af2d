//! A new connection for each request, from several threads.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, HandshakeKind};

use crate::{Options, tls};

/// Returns the number of responses and the time they took.
pub fn run(options: &Options) -> (u64, Duration) {
    let began = Instant::now();
    let requests = thread::scope(|scope| {
        let threads: Vec<_> = (0..options.connections)
            .map(|first| scope.spawn(move || repeat(options, first as u64, began)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).sum()
    });
    (requests, began.elapsed())
}

fn repeat(options: &Options, first: u64, began: Instant) -> u64 {
    let config = tls::config(b"http/1.1", options.resume);
    let mut requests = 0;
    while began.elapsed() < options.duration {
        let number = first + requests * options.connections as u64;
        let name = options.name.replace("{}", &(number % options.names + 1).to_string());
        let resumed = request(options, &name, &config);
        assert_eq!(resumed, options.resume && requests > 0, "whether the session was resumed");
        requests += 1;
    }
    requests
}

/// Makes one request. Returns whether the session was resumed.
fn request(options: &Options, name: &str, config: &Arc<ClientConfig>) -> bool {
    let (mut stream, mut client) = tls::connect(options.to, name, config);
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", options.host);
    client.writer().write_all(request.as_bytes()).expect("a buffered request");
    tls::send(&mut client, &mut stream);
    let (mut response, mut encrypted) = (Vec::new(), Vec::new());
    stream.read_to_end(&mut encrypted).expect("the server answers");
    tls::decrypt(&mut client, &encrypted, &mut response);
    assert!(response.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&response));
    let _closed_already = stream.shutdown(Shutdown::Both);
    client.handshake_kind() == Some(HandshakeKind::Resumed)
}
