//! Orders that requests of one page can arrive in.

use std::task::Poll;

use futures::poll;

use super::*;

struct Page {
    order: OrderEvents,
    clock: Clock,
}

impl Page {
    fn open() -> Self {
        let clock = Clock::manual("2026-11-23T10:00:00Z".parse().unwrap());
        Self { order: OrderEvents::new(clock.clone()), clock }
    }

    /// Returns the time that an event gets, in milliseconds since the page was opened.
    async fn send(&self, sequence: u16) -> i64 {
        self.send_in(1, sequence).await
    }

    async fn send_in(&self, group: u32, sequence: u16) -> i64 {
        self.send_from("203.0.113.9", group, sequence).await
    }

    async fn send_from(&self, ip: &str, group: u32, sequence: u16) -> i64 {
        let now = self.clock.now();
        let ip = ip.parse().unwrap();
        let mut event = IncomingEvent { ip, occurred_at: now, arrived_at: now, ..IncomingEvent::default() };
        self.order.step(&mut event, "site_a", group, sequence).await;
        assert_eq!(event.occurred_at, event.arrived_at);
        (event.occurred_at - "2026-11-23T10:00:00Z".parse::<DateTime<Utc>>().unwrap()).num_milliseconds()
    }

    fn waiting(&self) -> (usize, usize) {
        let arrivals = self.order.lock();
        (arrivals.waiting_count, arrivals.waiting.len())
    }
}

#[tokio::test]
async fn events_of_one_millisecond_are_a_millisecond_apart() {
    let page = Page::open();
    assert_eq!([page.send(0).await, page.send(1).await, page.send(2).await], [0, 1, 2]);
    page.clock.advance(TimeDelta::milliseconds(30));
    assert_eq!(page.send(3).await, 30, "and keep their time otherwise");
}

#[tokio::test]
async fn an_event_waits_for_its_predecessor() {
    let page = Page::open();
    let (mut second, mut first) = (Box::pin(page.send(2)), Box::pin(page.send(1)));
    assert_eq!((poll!(&mut second), poll!(&mut first)), (Poll::Pending, Poll::Pending));
    assert_eq!(page.waiting(), (2, 1));
    page.clock.advance(TimeDelta::milliseconds(20));
    assert_eq!(poll!(&mut second), Poll::Pending, "another event of the page is not the predecessor");
    assert_eq!(page.send(0).await, 20);
    assert_eq!((first.await, second.await), (21, 22));
    assert_eq!(page.waiting(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends_without_a_predecessor() {
    let page = Page::open();
    let mut alone = Box::pin(page.send(1));
    assert_eq!(poll!(&mut alone), Poll::Pending);
    page.clock.advance(TimeDelta::from_std(MAX_WAIT).unwrap());
    assert_eq!(alone.await, 500, "it counts as later than one that another collector got meanwhile");
    assert_eq!(page.waiting(), (0, 0));
}

#[tokio::test]
async fn neither_other_visitors_nor_other_pages_have_the_predecessor() {
    let page = Page::open();
    assert_eq!([page.send(0).await, page.send(1).await, page.send(2).await], [0, 1, 2]);
    let mut other_visitor = Box::pin(page.send_from("203.0.113.8", 1, 1));
    // A fast navigation, and a second tab.
    let (mut next_page, mut tab) = (Box::pin(page.send_in(2, 1)), Box::pin(page.send_in(3, 1)));
    for waiting in [&mut next_page, &mut tab] {
        assert_eq!(poll!(waiting), Poll::Pending);
    }
    assert_eq!(poll!(&mut other_visitor), Poll::Pending);
    page.clock.advance(TimeDelta::milliseconds(20));
    assert_eq!([page.send_in(2, 0).await, page.send(3).await], [20, 20]);
    assert_eq!(next_page.await, 21);
    assert_eq!(poll!(&mut tab), Poll::Pending);
    assert_eq!(page.send_in(3, 0).await, 20);
    assert_eq!(tab.await, 21);
}

#[tokio::test]
async fn a_sender_without_groups_begins_another_one_after_seconds() {
    let page = Page::open();
    page.send_in(0, 0).await;
    page.send_in(0, 3).await;
    page.clock.advance(MEMORY + TimeDelta::milliseconds(2));
    let mut next_page = Box::pin(page.send_in(0, 1));
    assert_eq!(poll!(&mut next_page), Poll::Pending);
    page.send_in(0, 0).await;
    assert_eq!(next_page.await, 5_003);
}

#[tokio::test(start_paused = true)]
async fn a_late_event_does_not_make_later_ones_wait_again() {
    let page = Page::open();
    assert_eq!(page.send(0).await, 0);
    // The clock stands still while the wait of 2 ends without 1.
    assert_eq!(page.send(2).await, 1, "it counts as later than what came of its group");
    assert_eq!(page.send(0).await, 0, "late, or sent again");
    let mut next = Box::pin(page.send(3));
    assert_eq!(poll!(&mut next), Poll::Ready(2));
    assert_eq!(page.send(1).await, 3);
    let mut last = Box::pin(page.send(4));
    assert_eq!(poll!(&mut last), Poll::Ready(4));
}

#[tokio::test]
async fn an_event_of_the_past_keeps_its_time() {
    let page = Page::open();
    let now = page.clock.now();
    let past = now - TimeDelta::days(1);
    let mut event = IncomingEvent { occurred_at: past, arrived_at: now, ..IncomingEvent::default() };
    page.order.step(&mut event, "site_a", 0, 7).await;
    assert_eq!((event.occurred_at, event.arrived_at), (past, now));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut arrivals = Arrivals::default();
    let start: DateTime<Utc> = "2026-11-23T10:00:00Z".parse().unwrap();
    for group in 0..3 * MAX_GROUPS as u64 {
        arrivals.record(group, Arrival { sequence: 0, at: start });
    }
    assert!(arrivals.young.len() + arrivals.old.len() <= 2 * MAX_GROUPS);
    arrivals.record(0, Arrival { sequence: 0, at: start + MEMORY * 2 });
    arrivals.record(0, Arrival { sequence: 0, at: start + MEMORY * 4 });
    assert_eq!(arrivals.old.len() + arrivals.young.len(), 2);

    let waiting: Vec<_> =
        (0..MAX_WAITING as u64).map(|group| arrivals.find_or_wait(group, 9, start)).collect();
    assert!(waiting.iter().all(Result::is_err));
    assert!(matches!(arrivals.find_or_wait(7, 9, start), Ok(None)), "one more is taken as it arrives");
}
