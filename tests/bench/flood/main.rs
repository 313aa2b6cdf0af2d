//! Opens connections at a steady rate, each with a client's hello for another unknown name or with nothing. Needs nothing but
//! std: `tls.py` builds it with `rustc -O`. It computes no handshake, so that it leaves the processor to the server.
//!
//!     flood KEY=VALUE...
//!       to=HOST:PORT        the server
//!       rate=1000           connections per second, evenly spaced
//!       seconds=8           duration
//!       hello=HEX           a hello for the name `000000.unknown.example`, whose digits are counted up; without it, every
//!                           connection is closed as soon as it is open
//!
//! Prints one line of JSON: connections, and how many of the answers are anything but the alert `unrecognized_name`.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: u64 = 8;
const NAME: &[u8] = b"000000.unknown.example";
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

fn main() {
    let options: HashMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|word| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect();
    let number = |key: &str, default: u64| options.get(key).map_or(default, |value| value.parse().expect(key));
    let (rate, seconds) = (number("rate", 1000), number("seconds", 8));
    let hello = options.get("hello").map(|text| bytes(text));
    let name_at = hello.as_ref().map(|hello| position(hello, NAME));
    let (next, failed, began) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Instant::now());
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (next, failed, mut hello) = (Arc::clone(&next), Arc::clone(&failed), hello.clone());
            let to = options["to"].clone();
            thread::spawn(move || loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= rate * seconds {
                    return;
                }
                let at = began + Duration::from_secs_f64(number as f64 / rate as f64);
                thread::sleep(at.saturating_duration_since(Instant::now()));
                if let (Some(hello), Some(at)) = (&mut hello, name_at) {
                    hello[at..at + 6].copy_from_slice(format!("{:06}", number % 1_000_000).as_bytes());
                }
                if !connect(&to, hello.as_deref()) {
                    failed.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("a thread");
    }
    let (connections, failed) = (rate * seconds, failed.load(Ordering::Relaxed));
    let took = began.elapsed().as_secs_f64();
    println!("{{\"connections\": {connections}, \"failed\": {failed}, \"seconds\": {took:.3}}}");
}

/// Returns whether the server answered as it should.
fn connect(to: &str, hello: Option<&[u8]>) -> bool {
    let Ok(mut stream) = TcpStream::connect(to) else { return false };
    let Some(hello) = hello else { return true };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let mut answer = [0; ALERT.len()];
    stream.write_all(hello).is_ok() && stream.read_exact(&mut answer).is_ok() && answer == ALERT
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).expect("hex digits")).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn position(of: &[u8], part: &[u8]) -> usize {
    of.windows(part.len()).position(|window| window == part).expect("the name in the hello")
}
