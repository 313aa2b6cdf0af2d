//! Keep-alive connections with one request at a time.
//!
//! Once the first responses of a connection were decrypted and checked, later ones are counted in encrypted bytes, which the
//! kernel throws away: all have the same length. A response of another length ends the run.

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token, net::TcpStream};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustls::ClientConnection;

use crate::{Options, tls};

/// Responses that are checked. The first has the session tickets with it.
const CHECKED: usize = 3;

struct Connection {
    stream: TcpStream,
    tls: ClientConnection,
    response_bytes: usize,
    missing: usize,
}

/// Returns the number of responses and the time they took.
pub fn run(options: &Options) -> (u64, Duration) {
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", options.host);
    let config = tls::config(b"http/1.1", false);
    let mut poll = Poll::new().expect("epoll");
    let mut connections: Vec<_> =
        (0..options.connections).map(|_| open(options, &config, &request)).collect();
    for (at, connection) in connections.iter_mut().enumerate() {
        poll.registry().register(&mut connection.stream, Token(at), Interest::READABLE).expect("epoll");
        connection.send(&request);
    }
    let (mut events, mut discarded) = (Events::with_capacity(options.connections), vec![0; 64 * 1024]);
    let (mut requests, began) = (0, Instant::now());
    while began.elapsed() < options.duration {
        poll.poll(&mut events, Some(Duration::from_secs(5))).expect("epoll");
        assert!(!events.is_empty(), "no response for five seconds");
        for event in &events {
            let connection = &mut connections[event.token().0];
            if connection.discard(&mut discarded) {
                requests += 1;
                connection.send(&request);
            }
        }
    }
    (requests, began.elapsed())
}

fn open(options: &Options, config: &std::sync::Arc<rustls::ClientConfig>, request: &str) -> Connection {
    let (mut stream, mut client) = tls::connect(options.to, &options.host, config);
    let (mut lengths, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    for _ in 0..CHECKED {
        client.writer().write_all(request.as_bytes()).expect("a buffered request");
        tls::send(&mut client, &mut stream);
        let (mut response, mut encrypted) = (Vec::new(), 0);
        while !is_complete(&response) {
            let received = stream.read(&mut buffer).expect("the server answers");
            tls::decrypt(&mut client, &buffer[..received], &mut response);
            encrypted += received;
        }
        lengths.push(encrypted);
    }
    assert_eq!(lengths[CHECKED - 2], lengths[CHECKED - 1], "responses differ in their length");
    stream.set_nonblocking(true).expect("a TCP socket");
    Connection {
        stream: TcpStream::from_std(stream),
        tls: client,
        response_bytes: lengths[CHECKED - 1],
        missing: 0,
    }
}

/// Returns whether all bytes of a 200 response with a `Content-Length` are there.
fn is_complete(response: &[u8]) -> bool {
    let Some(head) = response.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&response[..head]).to_ascii_lowercase();
    assert!(text.starts_with("http/1.1 200"), "{text}");
    let length =
        text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()).expect("content-length");
    let length: usize = length.trim().parse().expect("content-length");
    response.len() == head + 4 + length
}

impl Connection {
    fn send(&mut self, request: &str) {
        self.tls.writer().write_all(request.as_bytes()).expect("a buffered request");
        tls::send(&mut self.tls, &mut self.stream);
        self.missing = self.response_bytes;
    }

    /// Throws away what has arrived. Returns whether that ends the response.
    fn discard(&mut self, buffer: &mut [u8]) -> bool {
        loop {
            // On TCP, TRUNC drops the bytes in the kernel instead of copying them.
            match recv(self.stream.as_fd(), &mut *buffer, RecvFlags::TRUNC) {
                Ok((_, 0)) => panic!("the server closed a connection"),
                Ok((_, length)) => {
                    self.missing = self.missing.checked_sub(length).expect("a response of the same length");
                    if self.missing == 0 {
                        return true;
                    }
                }
                Err(Errno::AGAIN) => return false,
                Err(error) => panic!("{error}"),
            }
        }
    }
}
