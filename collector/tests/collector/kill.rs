//! Repeated `kill -9` under load.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::plans::Plan;
use sandbox::test::until;
use service::Rng;
use tokio::time::{Instant, interval_at};

use crate::browser::{Browser, is_no_content, page_view};
use crate::fixture::Fixture;

const ROUNDS: u32 = 20;
const CONNECTIONS: usize = 8;

/// Concurrent visitors and the paths of their answered events.
#[derive(Default)]
struct Visitors {
    next: AtomicU32,
    answered: Mutex<BTreeSet<String>>,
}

impl Visitors {
    /// Sends page views, each with its own path and address, until the connection breaks.
    async fn visit(self: Arc<Self>, collector: SocketAddr, site_token: String) {
        let Ok(mut browser) = Browser::connect(collector).await else { return };
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let path = format!("/{number}");
            let ip = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number));
            match browser.send(&page_view(&site_token, &path, ip)).await {
                Ok(response) if is_no_content(&response) => self.answered.lock().unwrap().insert(path),
                _ => return,
            };
        }
    }

    fn answered(&self) -> usize {
        self.answered.lock().unwrap().len()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answered_events_are_counted_exactly_once_over_twenty_kills_under_load() {
    let fixture = Fixture::new().await;
    // The smaller plans allow too few events.
    fixture.set_plan(Plan::Scale).await;
    let rng = Rng::seeded(20);
    let visitors = Arc::new(Visitors::default());
    for _ in 0..ROUNDS {
        let before = visitors.answered();
        let collector = fixture.start_process().await;
        let visits: tokio::task::JoinSet<_> = (0..CONNECTIONS)
            .map(|_| Arc::clone(&visitors).visit(collector.address, fixture.site_token.clone()))
            .collect();
        until(async || visitors.answered() > before).await;
        // Between a moment before the first segment is sealed and one after a few were sent.
        let load = Duration::from_secs_f64(rng.fraction());
        interval_at(Instant::now() + load, load.max(Duration::from_millis(1))).tick().await;
        collector.kill().await;
        visits.join_all().await;
    }

    let collector = fixture.start().await;
    let expected = visitors.answered() as u64;
    until(async || fixture.page_views().await >= expected).await;
    collector.stop().await;

    let stored = fixture.count_by_path().await;
    let answered = std::mem::take(&mut *visitors.answered.lock().unwrap());
    let missing: Vec<_> = answered.iter().filter(|path| !stored.contains_key(*path)).collect();
    let duplicated: Vec<_> = stored.iter().filter(|(_, count)| **count != 1).collect();
    assert!(
        missing.is_empty(),
        "{} of {} answered events are missing: {missing:?}",
        missing.len(),
        answered.len()
    );
    assert!(duplicated.is_empty(), "{} events are stored more than once: {duplicated:?}", duplicated.len());
    let (events, visits) = fixture.sums_of_events_and_visits().await;
    assert_eq!(events, visits, "the visits consist of exactly these events");
    let sent = visitors.next.load(Ordering::Relaxed);
    println!("{sent} sent, {} answered, {} stored, each once", answered.len(), stored.len());
}
