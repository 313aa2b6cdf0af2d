//! HTTP/2 connections with a fixed number of concurrent requests each.
//!
//! Only frames are read: each response must begin with the index of `:status: 200` (RFC 7541, appendix A) and end.

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token, net::TcpStream};
use rustls::ClientConnection;

use crate::{Options, tls};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES: usize = 9;
const WINDOW_MAX: u32 = (1 << 31) - 1;
/// Window that is left when the connection's window is opened again.
const WINDOW_LEAST: u32 = 1 << 30;
const WINDOW_DEFAULT: u32 = 65_535;
/// `:status: 200` as one byte.
const STATUS_200: u8 = 0x88;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind(u8);

impl Kind {
    const DATA: Self = Self(0);
    const HEADERS: Self = Self(1);
    const SETTINGS: Self = Self(4);
    const PING: Self = Self(6);
    const GOAWAY: Self = Self(7);
    const WINDOW_UPDATE: Self = Self(8);
}

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

struct Connection {
    stream: TcpStream,
    tls: ClientConnection,
    unread: Vec<u8>,
    next_stream: u32,
    /// Bytes that the server may still send.
    window: u32,
}

/// Returns the number of responses and the time they took.
pub fn run(options: &Options) -> (u64, Duration) {
    let config = tls::config(b"h2", false);
    let headers = header_block(&options.host);
    let mut poll = Poll::new().expect("epoll");
    let mut connections: Vec<_> = (0..options.connections)
        .map(|at| {
            let (stream, client) = tls::connect(options.to, &options.host, &config);
            assert_eq!(client.alpn_protocol(), Some(b"h2".as_slice()));
            stream.set_nonblocking(true).expect("a TCP socket");
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(at), Interest::READABLE).expect("epoll");
            let mut connection =
                Connection { stream, tls: client, unread: Vec::new(), next_stream: 1, window: WINDOW_MAX };
            connection.open(options.streams, &headers);
            connection
        })
        .collect();
    let (mut events, mut buffer) = (Events::with_capacity(options.connections), vec![0; 256 * 1024]);
    let (mut requests, began) = (0, Instant::now());
    while began.elapsed() < options.duration {
        poll.poll(&mut events, Some(Duration::from_secs(5))).expect("epoll");
        assert!(!events.is_empty(), "no response for five seconds");
        for event in &events {
            requests += connections[event.token().0].exchange(&headers, &mut buffer);
        }
    }
    (requests, began.elapsed())
}

/// A request's headers, without entries in the dynamic table: each request has the same bytes.
fn header_block(host: &str) -> Vec<u8> {
    let length = u8::try_from(host.len()).ok().filter(|length| *length < 127).expect("a short host");
    // `:method: GET`, `:scheme: https` and `:path: /` by index; `:authority` as a literal that is not indexed.
    [&[0x82, 0x87, 0x84, 0x01, length], host.as_bytes()].concat()
}

fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind.0, flags], &stream.to_be_bytes(), payload].concat()
}

impl Connection {
    fn open(&mut self, streams: usize, headers: &[u8]) {
        // SETTINGS_ENABLE_PUSH 0, SETTINGS_INITIAL_WINDOW_SIZE of the maximum.
        let settings = [&[0, 2, 0, 0, 0, 0, 0, 4], WINDOW_MAX.to_be_bytes().as_slice()].concat();
        let window = (WINDOW_MAX - WINDOW_DEFAULT).to_be_bytes();
        let mut bytes = PREFACE.to_vec();
        bytes.extend(frame(Kind::SETTINGS, 0, 0, &settings));
        bytes.extend(frame(Kind::WINDOW_UPDATE, 0, 0, &window));
        for _ in 0..streams {
            bytes.extend(self.request(headers));
        }
        self.send(&bytes);
    }

    fn request(&mut self, headers: &[u8]) -> Vec<u8> {
        let stream = self.next_stream;
        self.next_stream += 2;
        frame(Kind::HEADERS, END_HEADERS | END_STREAM, stream, headers)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.tls.writer().write_all(bytes).expect("buffered frames");
        tls::send(&mut self.tls, &mut self.stream);
    }

    /// Reads what has arrived, and replaces each response by a request. Returns the number of responses.
    fn exchange(&mut self, headers: &[u8], buffer: &mut [u8]) -> u64 {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => panic!("the server closed a connection"),
                Ok(received) => tls::decrypt(&mut self.tls, &buffer[..received], &mut self.unread),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let (mut at, mut responses, mut answer) = (0, 0, Vec::new());
        while let Some(head) = self.unread.get(at..at + HEAD_BYTES) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let (kind, flags) = (Kind(head[3]), head[4]);
            let Some(payload) = self.unread.get(at + HEAD_BYTES..at + HEAD_BYTES + length as usize) else {
                break;
            };
            at += HEAD_BYTES + length as usize;
            let mut ended = false;
            match kind {
                Kind::HEADERS => {
                    // A change of the dynamic table's size may precede the status.
                    let status = payload.iter().find(|byte| **byte & 0xe0 != 0x20);
                    assert_eq!(status, Some(&STATUS_200), "a status other than 200");
                    ended = flags & END_STREAM != 0;
                }
                Kind::DATA => {
                    self.window -= length;
                    ended = flags & END_STREAM != 0;
                }
                Kind::SETTINGS if flags & ACK == 0 => answer.extend(frame(Kind::SETTINGS, ACK, 0, &[])),
                Kind::PING if flags & ACK == 0 => answer.extend(frame(Kind::PING, ACK, 0, payload)),
                Kind::SETTINGS | Kind::PING | Kind::WINDOW_UPDATE => {}
                Kind::GOAWAY => panic!("the server ends a connection"),
                Kind(other) => panic!("a frame of type {other}"),
            }
            if ended {
                responses += 1;
                let request = self.request(headers);
                answer.extend(request);
            }
        }
        self.unread.drain(..at);
        if self.window < WINDOW_LEAST {
            answer.extend(frame(Kind::WINDOW_UPDATE, 0, 0, &(WINDOW_MAX - self.window).to_be_bytes()));
            self.window = WINDOW_MAX;
        }
        if !answer.is_empty() {
            self.send(&answer);
        }
        responses
    }
}
