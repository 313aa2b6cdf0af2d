//! Many deliveries at once: none is lost, none stands in the way of another, and none is begun for ever.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use sandbox::test::{eventually, until};
use store::deliveries::{Places, Room, claim_due, claim_parked, list_crowded};
use uuid::Uuid;

use crate::harness::{Account, claim, now};
use crate::receiver::Receiver;

/// `count` retries for each webhook of the account, which came due while nobody ran.
async fn overdue(account: &Account, count: usize) {
    let statement = format!(
        "insert into deliveries (id, account_id, webhook_id, event, payload, attempts, next_attempt_at, created_at)
         select gen_random_uuid(), account_id, id, 'submission.created', '{{\"data\": {{\"fields\": {{}}}}}}', 3,
                now() - interval '1 hour' * random(), now() - interval '2 hours'
         from webhooks, generate_series(1, {count}) where account_id = '{}'",
        account.id
    );
    account.change(&statement).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_retries_that_came_due_in_an_hours_stop_all_go_out() {
    const COUNT: usize = 20_000;
    let account = Account::new().await;
    let receiver = Receiver::answering([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    overdue(&account, COUNT).await;
    let _running = account.run(&[]).await;
    let mut had = 0;
    while had < COUNT {
        // As long as it goes on, however slow the machine.
        had = eventually(async || Some(receiver.count()).filter(|count| *count > had)).await;
    }
    let ids: BTreeSet<_> = receiver.taken().iter().map(|one| one.header("webhook-id").to_owned()).collect();
    assert_eq!((ids.len(), receiver.count()), (COUNT, COUNT), "each of them, and once");
    until(async || account.claim(&claim(now())).await.is_empty() && account.pending().await == 0).await;
    assert!(
        account
            .deliveries(webhook)
            .await
            .iter()
            .all(|one| (one.attempts, one.state.as_str()) == (4, "delivered"))
    );
    // Nothing is wedged: the next one goes out at once.
    account.submission().await;
    until(async || receiver.count() == COUNT + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_dead_endpoints_take_no_place_from_a_healthy_one() {
    let account = Account::new().await;
    let dead = Receiver::silent().await;
    for number in 0..100 {
        account.webhook(&format!("{}&dead={number}", dead.url), None).await;
    }
    overdue(&account, 10).await;
    let running = account.run(&["webhooks.timeout=60s"]).await;
    // A few each, until it is known that they hang.
    until(async || dead.count() >= 400).await;
    let healthy = Receiver::answering([]).await;
    let webhook = account.webhook(&healthy.url, None).await;
    for count in 1..=30 {
        account.submission().await;
        until(async || healthy.count() == count).await;
    }
    until(async || account.deliveries(webhook).await.iter().all(|one| one.state == "delivered")).await;
    assert!(account.attempts_ended().await >= 30);
    dead.release();
    running.stop().await;
}

#[tokio::test]
async fn with_redis_away_everything_is_delivered_all_the_same() {
    let account = Account::new().await;
    let receiver = Receiver::answering([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    account.submission().await;
    let running = account.run(&[&format!("redis.url=redis://{nobody}")]).await;
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    account.submission().await;
    until(async || receiver.count() == 2).await;
    running.ask_to_stop();
}

#[tokio::test]
async fn a_delivery_whose_workers_all_die_is_given_up_when_the_schedule_is_used_up() {
    let account = Account::new().await;
    let webhook = account.webhook("https://example.com", None).await;
    account.submission().await;
    for attempt in 1..=2 {
        let claimed = account.claim(&claim(now())).await;
        assert_eq!(claimed.iter().map(|one| one.attempt).collect::<Vec<_>>(), [attempt]);
    }
    let _running = account.run(&["webhooks.schedule=[\"0s\",\"1ms\"]"]).await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "failed").await;
    assert_eq!(delivery.error_class.as_deref(), Some("interrupted"));
}

#[tokio::test]
async fn what_stands_before_others_without_a_place_is_parked_and_taken_up_later() {
    let account = Account::new().await;
    let (busy, nobody) = (account.webhook("https://a.example", None).await, Uuid::nil());
    overdue(&account, 1_000).await;
    let quiet = account.webhook("https://b.example", None).await;
    account.submission().await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let claim = claim(now() + TimeDelta::minutes(1));
    let room = |webhook_id, places| Room { webhook_id, places, is_slow: false, is_quick: true };
    let rooms = [room(busy, 2), room(nobody, 9)];
    let places = Places { all: 5, of_slow: 5, rooms: &rooms, of_others: 4 };
    let claimed = claim_due(&mut conn, &claim, &places).await.unwrap();
    assert_eq!((claimed.attempts.len(), claimed.crowded), (2, vec![busy]));
    let rooms = [room(busy, 0)];
    let rest = claim_due(&mut conn, &claim, &Places { rooms: &rooms, ..places }).await.unwrap();
    let told: Vec<_> = rest.attempts.iter().map(|one| one.webhook_id).collect();
    assert_eq!((told, rest.crowded), (vec![quiet], vec![]), "nobody stands before it, nor is more parked");
    account.submission().await;
    let later = crate::harness::claim(now() + TimeDelta::minutes(1));
    let full = [room(busy, 0), Room { is_quick: false, ..room(quiet, 0) }];
    let claimed = claim_due(&mut conn, &later, &Places { rooms: &full, ..places }).await.unwrap();
    assert_eq!(
        (claimed.attempts.len(), claimed.crowded),
        (0, vec![quiet]),
        "whoever is quick is let stand for a while"
    );

    let mut crowded = list_crowded(&mut conn, later.now).await.unwrap();
    crowded.sort();
    assert_eq!(crowded, [busy, quiet]);
    let one = [room(busy, 1)];
    let parked = claim_parked(&mut conn, &claim, &one).await.unwrap();
    assert_eq!((parked.len(), parked[0].webhook_id), (1, busy));
    account.change(&format!("update webhooks set is_active = false where id = '{busy}'")).await;
    assert!(claim_parked(&mut conn, &claim, &one).await.unwrap().is_empty());
    assert_eq!(list_crowded(&mut conn, later.now).await.unwrap(), [quiet]);
}

#[tokio::test]
async fn a_claim_takes_no_more_than_all_places_nor_those_that_hang_more_than_theirs() {
    let account = Account::new().await;
    let slow: Vec<_> =
        [account.webhook("https://a.example", None).await, account.webhook("https://b.example", None).await]
            .into();
    overdue(&account, 3).await;
    let quick = account.webhook("https://c.example", None).await;
    account.submission().await;
    account.submission().await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let rooms: Vec<_> =
        slow.iter().map(|id| Room { webhook_id: *id, places: 2, is_slow: true, is_quick: false }).collect();
    let places = Places { all: 4, of_slow: 3, rooms: &rooms, of_others: 4 };
    let claim = claim(now() + TimeDelta::minutes(1));
    let claimed = claim_due(&mut conn, &claim, &places).await.unwrap();
    let of_quick = claimed.attempts.iter().filter(|one| one.webhook_id == quick).count();
    assert_eq!((claimed.attempts.len(), of_quick), (4, 1));
    assert!(
        claimed.crowded.iter().all(|id| slow.contains(id)),
        "what is left of those that hang is out of the way"
    );
    let places = Places { of_slow: 0, ..places };
    let rest = claim_due(&mut conn, &claim, &places).await.unwrap();
    assert_eq!(rest.attempts.iter().map(|one| one.webhook_id).collect::<Vec<_>>(), [quick]);
}
