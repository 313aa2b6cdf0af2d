//! What a hit takes from the allocator, counted, so that the figure in the README can be made again:
//! `cargo test -p edge-server --test allocations -- --nocapture`.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use edge_server::{Config, DEFAULTS};
use service::config::{Sources, load};
use service::{Listeners, Shutdown};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

/// Of these the request's headers, which hyper reads, take some, the answer's headers two, and its id one.
const MOST_PER_HIT: f64 = 12.0;
const HITS: u32 = 2_000;

const PLAIN: &str = "GET / HTTP/1.1\r\nHost: quiet-otter.localhost\r\n\r\n";
const BROWSER: &str = "GET / HTTP/1.1\r\nHost: quiet-otter.localhost\r\nConnection: keep-alive\r\n\
    Cache-Control: max-age=0\r\nUpgrade-Insecure-Requests: 1\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n\
    Accept: text/html,*/*;q=0.8\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\n\
    Sec-Fetch-Dest: document\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-US,en;q=0.9\r\n\
    Cookie: a=1; b=2\r\n\r\n";

/// A site whose one page is a megabyte's hundredth.
async fn fill(db: &store::Db) {
    let statements = [
        "insert into accounts (id, claim_token_hash, claim_deadline, created_at)
         values ('00000000-0000-0000-0000-000000000001', '\\x01', now(), now())",
        "insert into subdomains (id, account_id, name, created_at) values
         ('00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000001', 'quiet-otter', now())",
        "insert into pages (id, account_id, subdomain_id, slug, title, html, created_at, updated_at) values
         ('00000000-0000-0000-0000-000000000003', '00000000-0000-0000-0000-000000000001',
          '00000000-0000-0000-0000-000000000002', 'index', 'T', repeat('<p>ten bytes', 900), now(), now())",
    ];
    for statement in statements {
        store::execute_raw(db, statement).await.unwrap();
    }
}

/// A visitor who allocates nothing itself.
struct Visitor {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Visitor {
    /// Asks so many times, one after the other; gives how many allocations that took.
    fn ask(&mut self, request: &str, times: u32) -> u64 {
        let before = dhat::HeapStats::get().total_blocks;
        for _ in 0..times {
            self.stream.write_all(request.as_bytes()).unwrap();
            self.read_answer();
        }
        dhat::HeapStats::get().total_blocks - before
    }

    fn read_answer(&mut self) {
        let mut read = 0;
        loop {
            read += self.stream.read(&mut self.buffer[read..]).unwrap();
            let text = &self.buffer[..read];
            let Some(head) = text.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let length = text.windows(16).position(|name| name == b"content-length: ").unwrap() + 16;
            let digits = text[length..].iter().take_while(|byte| byte.is_ascii_digit());
            let body = digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
            if read == head + 4 + body {
                assert!(text.starts_with(b"HTTP/1.1 200"));
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hit_allocates_little_more_than_its_headers() {
    let database = sandbox::test::database().await;
    fill(&database.db).await;
    let listeners = Listeners::on_free_ports().await.unwrap();
    let address: SocketAddr = listeners.main.local_addr().unwrap();
    let set = vec![
        format!("store.url={}", database.url),
        "redis.url=redis://127.0.0.1:1".to_owned(),
        format!("http.base_url=http://localhost:{}", address.port()),
        "http.sites_domain=localhost".to_owned(),
        "secrets.edge_token=a-token-for-tests-alone".to_owned(),
        // Nothing but the hits is to happen meanwhile.
        "views.flush_every=1h".to_owned(),
    ];
    let config: Config = load(DEFAULTS, &Sources { set, ..Sources::default() }).unwrap().config;
    let shutdown = Shutdown::new();
    let edge = tokio::spawn(edge_server::run(config, listeners, shutdown.clone()));
    tokio::task::spawn_blocking(move || {
        let stream = TcpStream::connect(address).unwrap();
        let mut visitor = Visitor { stream, buffer: vec![0; 1 << 16] };
        let _counting = dhat::Profiler::builder().testing().build();
        for (what, request) in [("plain", PLAIN), ("a browser's", BROWSER)] {
            visitor.ask(request, HITS / 4);
            let per_hit = visitor.ask(request, HITS) as f64 / f64::from(HITS);
            println!("{what} hit: {per_hit:.2} allocations");
            assert!(per_hit <= MOST_PER_HIT, "{what}: {per_hit:.2}");
        }
    })
    .await
    .unwrap();
    shutdown.request();
    edge.await.unwrap().unwrap();
}
