//! Submits a form and receives its webhooks in one process, so that one clock measures both. Needs nothing but std:
//! `webhooks.py` and `../soak/webhooks.py` build it with `rustc -O`.
//!
//!     load KEY=VALUE...
//!       sink=PORT           receives webhooks there, at any path; each path is a webhook
//!       hooks=1             webhooks that receive every submission
//!       to=HOST:PORT path=PATH   the form's address; without it nothing is submitted
//!       connections=32      keep-alive connections; each sends its next request after the last response
//!       rate=0              submissions per second, evenly spaced; 0 for saturation
//!       count=5000          submissions, or `seconds=N`; without `to`, deliveries to wait for
//!       bytes=1000          of each submission
//!       ids=FILE            file for the ids of acknowledged submissions, one per line
//!       timeout=60          seconds without a delivery until the rest counts as missing
//!
//! Prints one line of JSON. Broken connections are reopened; requests without a response are counted separately.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Deliveries by submission id (by webhook-id without submissions): how often each webhook received it, and when the last
/// webhook first received it.
type Delivered = Arc<Mutex<HashMap<String, (HashMap<String, u64>, Instant)>>>;

struct Taken {
    id: String,
    sent: Instant,
    answered: Instant,
}

fn main() {
    let options: HashMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|word| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect();
    let number = |key: &str, default: u64| options.get(key).map_or(default, |value| value.parse().expect(key));
    let hooks = number("hooks", 1) as usize;
    let delivered = Delivered::default();
    let listener = TcpListener::bind(("127.0.0.1", number("sink", 0) as u16)).expect("the sink's port");
    let by_submission = options.contains_key("to");
    let ear = Arc::clone(&delivered);
    thread::spawn(move || receive(&listener, &ear, by_submission));

    let began = Instant::now();
    let count = number("count", if options.contains_key("seconds") { u64::MAX } else { 5000 });
    let until = began + Duration::from_secs(number("seconds", 1_000_000));
    let (mut taken, mut unanswered) = (Vec::new(), 0);
    if let Some(to) = options.get("to") {
        let next = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..number("connections", 32))
            .map(|_| {
                let sender = Sender {
                    to: to.clone(),
                    path: options["path"].clone(),
                    padding: "x".repeat((number("bytes", 1000) as usize).saturating_sub(80)),
                    rate: number("rate", 0),
                    next: Arc::clone(&next),
                    count,
                    began,
                    until,
                };
                thread::spawn(move || sender.run())
            })
            .collect();
        for thread in threads {
            let (of_one, lost) = thread.join().expect("a sender");
            taken.extend(of_one);
            unanswered += lost;
        }
    }
    let sent_for = began.elapsed();
    if let Some(file) = options.get("ids") {
        let ids: Vec<_> = taken.iter().map(|one| one.id.as_str()).collect();
        std::fs::write(file, ids.join("\n")).expect("the file of ids");
    }

    let expected = if by_submission { taken.len() as u64 } else { count };
    let whole = |delivered: &Delivered| {
        let delivered = delivered.lock().unwrap();
        if by_submission {
            taken.iter().filter(|one| delivered.get(&one.id).is_some_and(|(by, _)| by.len() >= hooks)).count() as u64
        } else {
            delivered.len() as u64
        }
    };
    let (mut had, mut progress) = (whole(&delivered), Instant::now());
    while had < expected && progress.elapsed().as_secs() < number("timeout", 60) {
        thread::sleep(Duration::from_millis(if by_submission { 100 } else { 20 }));
        let has = whole(&delivered);
        if has > had {
            (had, progress) = (has, Instant::now());
        }
    }
    report(&taken, unanswered, sent_for, began, hooks, &delivered.lock().unwrap());
}

struct Sender {
    to: String,
    path: String,
    padding: String,
    rate: u64,
    next: Arc<AtomicU64>,
    count: u64,
    began: Instant,
    until: Instant,
}

impl Sender {
    /// Returns the acknowledged submissions and the number of others.
    fn run(self) -> (Vec<Taken>, u64) {
        let (mut taken, mut lost, mut connection) = (Vec::new(), 0, None);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count || Instant::now() >= self.until {
                return (taken, lost);
            }
            if self.rate > 0 {
                let at = self.began + Duration::from_secs_f64(number as f64 / self.rate as f64);
                thread::sleep(at.saturating_duration_since(Instant::now()));
            }
            let body = format!("{{\"email\":\"visitor{number}@example.com\",\"message\":\"{}\"}}", self.padding);
            let sent = Instant::now();
            match self.submit(&mut connection, &body) {
                Some(id) => taken.push(Taken { id, sent, answered: Instant::now() }),
                None => {
                    connection = None;
                    lost += 1;
                    // A killed service restarts within moments; retrying at once would only fail again.
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    fn submit(&self, connection: &mut Option<BufReader<TcpStream>>, body: &str) -> Option<String> {
        if connection.is_none() {
            let stream = TcpStream::connect(&self.to).ok()?;
            stream.set_nodelay(true).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
            *connection = Some(BufReader::new(stream));
        }
        let stream = connection.as_mut()?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.path,
            body.len()
        );
        stream.get_mut().write_all((head + body).as_bytes()).ok()?;
        let (first, _, body) = read(stream)?;
        first.contains(" 201 ").then(|| text_after(&body, "\"submissionId\":\"")).flatten()
    }
}

/// One HTTP message: first line, lower-case headers, body.
fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, String, Vec<u8>)> {
    let (mut first, mut headers) = (String::new(), String::new());
    stream.read_line(&mut first).ok().filter(|length| *length > 0)?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|length| *length > 0)?;
        if line == "\r\n" {
            break;
        }
        headers.push_str(&line.to_ascii_lowercase());
    }
    let length = headers.split("content-length:").nth(1)?.lines().next()?.trim().parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((first, headers, body))
}

fn text_after(body: &[u8], mark: &str) -> Option<String> {
    let at = body.windows(mark.len()).position(|part| part == mark.as_bytes())? + mark.len();
    Some(String::from_utf8_lossy(body.get(at..at + 36)?).into_owned())
}

fn receive(listener: &TcpListener, delivered: &Delivered, by_submission: bool) {
    for stream in listener.incoming().flatten() {
        let delivered = Arc::clone(delivered);
        thread::spawn(move || {
            let _ended = stream.set_nodelay(true);
            let mut stream = BufReader::new(stream);
            while let Some((first, headers, body)) = read(&mut stream) {
                let id = if by_submission {
                    text_after(&body, "\"submissionId\":\"")
                } else {
                    headers.split("webhook-id:").nth(1).and_then(|rest| rest.lines().next()).map(|id| id.trim().to_owned())
                };
                let hook = first.split(' ').nth(1).unwrap_or_default().to_owned();
                if let Some(id) = id {
                    let mut delivered = delivered.lock().unwrap();
                    let now = Instant::now();
                    let (by, last) = delivered.entry(id).or_insert_with(|| (HashMap::new(), now));
                    let times = by.entry(hook).or_default();
                    *times += 1;
                    if *times == 1 {
                        *last = now;
                    }
                }
                if stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
                    return;
                }
            }
        });
    }
}

fn report(
    taken: &[Taken],
    unanswered: u64,
    sent_for: Duration,
    began: Instant,
    hooks: usize,
    delivered: &HashMap<String, (HashMap<String, u64>, Instant)>,
) {
    let millis = |times: Vec<f64>, share: f64| {
        let mut times = times;
        times.sort_by(f64::total_cmp);
        let at = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
        times.get(at).copied().unwrap_or_default() * 1000.0
    };
    let whole = |one: &&Taken| delivered.get(&one.id).is_some_and(|(by, _)| by.len() >= hooks);
    let missing = taken.iter().filter(|one| !whole(one)).count();
    let told = |from: fn(&Taken) -> Instant| -> Vec<f64> {
        let last = |one: &Taken| delivered[&one.id].1.saturating_duration_since(from(one)).as_secs_f64();
        taken.iter().filter(whole).map(last).collect()
    };
    let accept: Vec<f64> = taken.iter().map(|one| (one.answered - one.sent).as_secs_f64()).collect();
    let firsts = delivered.values().map(|(_, last)| *last).min().unwrap_or(began);
    let lasts = delivered.values().map(|(_, last)| *last).max().unwrap_or(began);
    let start = if taken.is_empty() { firsts } else { began };
    let doubled: u64 = delivered.values().flat_map(|(by, _)| by.values()).map(|times| times - 1).sum();
    println!(
        "{{\"accepted\":{},\"unanswered\":{unanswered},\"sending_s\":{:.3},\"delivered\":{},\"delivering_s\":{:.3},\
         \"missing\":{missing},\"doubled\":{doubled},\"accept_p50\":{:.2},\"accept_p99\":{:.2},\
         \"delivery_p50\":{:.2},\"delivery_p99\":{:.2},\"delivery_max\":{:.2},\"send_p50\":{:.2},\"send_p99\":{:.2}}}",
        taken.len(),
        sent_for.as_secs_f64(),
        delivered.len(),
        (lasts - start).as_secs_f64(),
        millis(accept.clone(), 0.5),
        millis(accept, 0.99),
        millis(told(|one| one.answered), 0.5),
        millis(told(|one| one.answered), 0.99),
        millis(told(|one| one.answered), 1.0),
        millis(told(|one| one.sent), 0.5),
        millis(told(|one| one.sent), 0.99),
    );
}
