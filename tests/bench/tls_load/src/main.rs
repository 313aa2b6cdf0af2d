//! Measures a TLS server with less processor time than the server takes: the client and the server share a machine, and a client
//! that is the slower one measures itself.
//!
//! ```text
//! tls-load MODE KEY=VALUE...
//!   to=127.0.0.1:PORT   the server
//!   host=NAME           `Host`, and the server name
//!   name=NAME           another server name for `connect`; `{}` stands for a number
//!   names=1             how many numbers take turns in it, from 1
//!   seconds=8           duration
//!   connections=64      keep-alive connections, or threads in `connect`
//!   streams=8           concurrent requests of a connection in `h2`
//!   resume=false        whether `connect` resumes its session
//! ```
//!
//! | mode | measures | what is checked |
//! | --- | --- | --- |
//! | `keep` | HTTP/1.1 with keep-alive | the first responses of each connection; then the number of encrypted bytes |
//! | `h2` | HTTP/2 | each response's status and end |
//! | `connect` | a new connection for each request | each response's status; whether the session was resumed |
//!
//! Prints one line of JSON: requests and seconds.

mod connect;
mod http2;
mod keep_alive;
mod tls;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The arguments.
pub struct Options {
    to: SocketAddr,
    host: String,
    /// The server name, with `{}` in place of a number.
    name: String,
    names: u64,
    duration: Duration,
    connections: usize,
    streams: usize,
    resume: bool,
}

fn main() {
    let mut words = std::env::args().skip(1);
    let mode = words.next().expect("a mode: keep, h2 or connect");
    let given: HashMap<String, String> = words
        .map(|word| {
            word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())).expect("KEY=VALUE")
        })
        .collect();
    let number = |key: &str, default: u64| given.get(key).map_or(default, |value| value.parse().expect(key));
    let options = Options {
        to: given["to"].parse().expect("to"),
        host: given["host"].clone(),
        name: given.get("name").unwrap_or(&given["host"]).clone(),
        names: number("names", 1),
        duration: Duration::from_secs(number("seconds", 8)),
        connections: number("connections", 64) as usize,
        streams: number("streams", 8) as usize,
        resume: given.get("resume").is_some_and(|value| value == "true"),
    };
    let (requests, elapsed) = match mode.as_str() {
        "keep" => keep_alive::run(&options),
        "h2" => http2::run(&options),
        "connect" => connect::run(&options),
        other => panic!("unknown mode {other}"),
    };
    println!("{{\"requests\": {requests}, \"seconds\": {:.3}}}", elapsed.as_secs_f64());
}
