//! Sends page views to a collector at an even rate from many addresses and reports response times. Needs only std: `../collect.py` and `../../soak/collector.py` build it with `rustc`.
//!
//!     visits KEY=VALUE...
//!       to=HOST:PORT        the collector
//!       token=SITE          the site's token
//!       edge=TOKEN          the edge's token, so that forwarded addresses are trusted
//!       connections=32      keep-alive connections, reopened when they break
//!       rate=1000           page views a second over all of them; 0 for saturation
//!       seconds=10
//!       visitors=200000     addresses they come from
//!
//! Prints one line of JSON: sent, answered, and the 50th, 99th and 99.9th percentile of response times in milliseconds.
//! An unanswered event may have been stored.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const AGENTS: [&str; 5] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
    "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
];
const REFERRERS: [&str; 5] =
    ["", "https://www.google.com/", "https://news.ycombinator.com/item?id=1", "https://t.co/a", "https://blog.example/x"];

/// Sender threads. Each serves its share of the connections, which keeps the sender cheap.
const THREADS: u64 = 4;
/// The interval between polls of all connections.
const LOOK_EVERY: Duration = Duration::from_micros(100);
/// How long to wait for responses after the last request.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

struct Sender {
    to: String,
    token: String,
    edge: String,
    rate: u64,
    visitors: u64,
    connections: u64,
    next: Arc<AtomicU64>,
    began: Instant,
    until: Instant,
}

/// A connection and its request in flight.
#[derive(Default)]
struct Line {
    stream: Option<TcpStream>,
    due: Option<Instant>,
    answer: Vec<u8>,
}

fn main() {
    let options: HashMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|word| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect();
    let number = |key: &str, default: u64| options.get(key).map_or(default, |value| value.parse().expect(key));
    let text = |key: &str| options.get(key).cloned().unwrap_or_default();
    let (next, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let connections = number("connections", 32);
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let sender = Sender {
                connections: (connections + thread) / THREADS,
                to: text("to"),
                token: text("token"),
                edge: text("edge"),
                rate: number("rate", 1000),
                visitors: number("visitors", 200_000),
                next: Arc::clone(&next),
                began,
                until: began + Duration::from_secs(number("seconds", 10)),
            };
            thread::spawn(move || sender.run())
        })
        .collect();
    let mut took: Vec<Duration> = threads.into_iter().flat_map(|one| one.join().expect("a sender")).collect();
    took.sort_unstable();
    let at = |part: f64| took.get(((took.len() as f64) * part) as usize).map_or(0.0, |time| time.as_secs_f64() * 1e3);
    println!(
        "{{\"sent\": {}, \"answered\": {}, \"seconds\": {:.3}, \"p50\": {:.3}, \"p99\": {:.3}, \"p999\": {:.3}}}",
        next.load(Ordering::Relaxed),
        took.len(),
        began.elapsed().as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999),
    );
}

impl Sender {
    /// Response times, counted from the scheduled send time.
    fn run(self) -> Vec<Duration> {
        let mut took = Vec::new();
        let mut lines: Vec<Line> = (0..self.connections).map(|_| Line::default()).collect();
        while Instant::now() < self.until {
            for line in &mut lines {
                took.extend(line.look());
                if line.due.is_none()
                    && let Some((number, due)) = self.turn()
                {
                    line.send(&self.to, &self.request(number), due);
                }
            }
            thread::sleep(LOOK_EVERY);
        }
        let last = Instant::now() + LAST_ANSWERS;
        while lines.iter().any(|line| line.due.is_some()) && Instant::now() < last {
            took.extend(lines.iter_mut().filter_map(Line::look));
            thread::sleep(LOOK_EVERY);
        }
        took
    }

    /// The next request and its scheduled time, if that has passed.
    fn turn(&self) -> Option<(u64, Instant)> {
        if self.rate == 0 {
            return Some((self.next.fetch_add(1, Ordering::Relaxed), Instant::now()));
        }
        let due = |number: u64| self.began + Duration::from_secs_f64(number as f64 / self.rate as f64);
        if due(self.next.load(Ordering::Relaxed)) > Instant::now() {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Some((number, due(number)))
    }

    fn request(&self, number: u64) -> String {
        let visitor = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.visitors;
        let body = format!(
            "{{\"siteToken\":\"{}\",\"name\":\"page_view\",\"url\":\"https://shop.example/page/{}?utm_source=news\",\
             \"referrer\":\"{}\",\"title\":\"A page of the shop\",\"screenWidth\":1440}}",
            self.token,
            number % 500,
            REFERRERS[(number % 5) as usize],
        );
        format!(
            "POST /api/collect HTTP/1.1\r\nhost: c\r\nuser-agent: {}\r\ncontent-type: text/plain\r\naccept: */*\r\n\
             accept-language: en-US,en;q=0.9\r\norigin: https://shop.example\r\nx-edge-token: {}\r\n\
             x-client-ip: 10.{}.{}.{}\r\ncontent-length: {}\r\n\r\n{body}",
            AGENTS[(visitor % 5) as usize],
            self.edge,
            visitor >> 16 & 255,
            visitor >> 8 & 255,
            visitor & 255,
            body.len(),
        )
    }
}

impl Line {
    /// A failed write counts as unanswered, and the connection is reopened.
    fn send(&mut self, to: &str, request: &str, due: Instant) {
        if self.stream.is_none() {
            self.stream = TcpStream::connect(to).ok();
            let Some(made) = &self.stream else {
                thread::sleep(Duration::from_millis(50));
                return;
            };
            made.set_nodelay(true).expect("nodelay");
            made.set_nonblocking(true).expect("nonblocking");
        }
        self.answer.clear();
        match self.stream.as_mut().map(|stream| stream.write_all(request.as_bytes())) {
            Some(Ok(())) => self.due = Some(due),
            _ => self.stream = None,
        }
    }

    /// The response time, if the response has arrived.
    fn look(&mut self) -> Option<Duration> {
        let due = self.due?;
        let mut more = [0; 2048];
        match self.stream.as_mut()?.read(&mut more) {
            Ok(length) if length > 0 => self.answer.extend_from_slice(&more[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            _broken_off => {
                *self = Self::default();
                return None;
            }
        }
        if !self.answer.ends_with(b"\r\n\r\n") {
            return None;
        }
        self.due = None;
        if !self.answer.starts_with(b"HTTP/1.1 204") {
            self.stream = None;
            return None;
        }
        Some(due.elapsed())
    }
}
