//! Every counter holds its limit under concurrency, and no release takes it below zero.

use chrono::{DateTime, Utc};
use domain::months::month_of;
use sandbox::test::trial;
use store::Db;
use store::monthly_usage::{
    MonthlyUsage, charge_events, find_monthly_usage, lease_events, reserve_automation_runs,
    return_unused_events,
};
use store::usage::{Counter, release, release_bytes, reserve, reserve_bytes};
use tokio::task::JoinSet;
use uuid::Uuid;

const ACCOUNT: Uuid = Uuid::from_u128(1);
const COUNTERS: [Counter; 4] = [Counter::Projects, Counter::Webhooks, Counter::Domains, Counter::Subdomains];

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn now() -> DateTime<Utc> {
    at("2026-11-30T23:59:59Z")
}

async fn database() -> sandbox::test::TestDatabase {
    let database = sandbox::test::database().await;
    trial(&database, ACCOUNT, now()).await;
    database
}

/// Returns a column of the account's counters.
async fn counted(db: &Db, column: &str) -> i64 {
    let mut conn = store::acquire(db).await.unwrap();
    let usage = store::usage::find_usage(&mut conn, ACCOUNT).await.unwrap().unwrap();
    match column {
        "Projects" => usage.projects,
        "Webhooks" => usage.webhooks,
        "Domains" => usage.domains,
        "Subdomains" => usage.subdomains,
        _ => usage.storage_bytes,
    }
}

/// Runs a hundred attempts concurrently. Returns how many succeeded.
async fn a_hundred_at_once<F>(db: &Db, attempt: impl Fn(usize, store::Db) -> F) -> usize
where
    F: Future<Output = bool> + Send + 'static,
{
    let attempts: JoinSet<bool> = (0..100).map(|number| attempt(number, db.clone())).collect();
    attempts.join_all().await.into_iter().filter(|done| *done).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_hundred_concurrent_reservations_at_a_limit_of_ten_exactly_ten_succeed() {
    let database = database().await;
    for counter in COUNTERS {
        let taken = a_hundred_at_once(&database.db, |_, db| async move {
            let mut conn = store::acquire(&db).await.unwrap();
            reserve(&mut conn, ACCOUNT, counter, 10).await.unwrap()
        });
        assert_eq!(
            (taken.await, counted(&database.db, &format!("{counter:?}")).await),
            (10, 10),
            "{counter:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolled_back_reservation_frees_its_slot() {
    let database = database().await;
    let taken = a_hundred_at_once(&database.db, |number, db| async move {
        let mut tx = store::begin(&db).await.unwrap();
        let taken = reserve(&mut tx, ACCOUNT, Counter::Webhooks, 10).await.unwrap();
        // Every second one fails after it was counted.
        if taken && number % 2 == 0 {
            store::commit(tx).await.unwrap();
        }
        taken && number % 2 == 0
    });
    assert_eq!((taken.await, counted(&database.db, "Webhooks").await), (10, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_reserved_all_or_none_and_within_the_limit() {
    let database = database().await;
    let taken = a_hundred_at_once(&database.db, |_, db| async move {
        let mut conn = store::acquire(&db).await.unwrap();
        reserve_bytes(&mut conn, ACCOUNT, 7, 75).await.unwrap()
    });
    assert_eq!((taken.await, counted(&database.db, "bytes").await), (10, 70));
    let mut conn = store::acquire(&database.db).await.unwrap();
    for (bytes, limit, fits) in [(6, 75, false), (5, 75, true), (1, 75, false), (0, 75, true), (1, 0, false)]
    {
        assert_eq!(
            reserve_bytes(&mut conn, ACCOUNT, bytes, limit).await.unwrap(),
            fits,
            "{bytes} at {limit}"
        );
    }
    assert!(!reserve_bytes(&mut conn, ACCOUNT, i64::MAX, 75).await.unwrap(), "no overflow");
    assert!(!reserve_bytes(&mut conn, ACCOUNT, -1, -1).await.unwrap(), "a negative amount is rejected");
    assert_eq!(counted(&database.db, "bytes").await, 75);
}

#[tokio::test(flavor = "multi_thread")]
async fn automation_runs_hold_their_limit_from_the_first_of_the_month() {
    let database = database().await;
    let taken = a_hundred_at_once(&database.db, |_, db| async move {
        let mut conn = store::acquire(&db).await.unwrap();
        reserve_automation_runs(&mut conn, ACCOUNT, now(), 1, 10).await.unwrap() == 1
    });
    assert_eq!(taken.await, 10);
    let mut conn = store::acquire(&database.db).await.unwrap();
    assert_eq!(reserve_automation_runs(&mut conn, ACCOUNT, now(), 5, 12).await.unwrap(), 2, "as many as fit");
    assert_eq!(
        reserve_automation_runs(&mut conn, ACCOUNT, at("2026-12-01T00:00:00Z"), 1, 0).await.unwrap(),
        0
    );
    assert_eq!(
        find_monthly_usage(&mut conn, ACCOUNT, now()).await.unwrap(),
        MonthlyUsage { events: 0, automation_runs: 12 }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn event_leases_use_up_the_limit_and_never_exceed_it() {
    let database = database().await;
    for (want, limit) in [(1, 10), (3, 10), (100, 10), (7, 1_000)] {
        let month = now() - chrono::Days::new(u64::try_from(31 * want).unwrap());
        let leases: JoinSet<i64> = (0..100)
            .map(|_| {
                let db = database.db.clone();
                async move {
                    let mut conn = store::acquire(&db).await.unwrap();
                    lease_events(&mut conn, ACCOUNT, month_of(month), want, limit).await.unwrap()
                }
            })
            .collect();
        let leases = leases.join_all().await;
        assert!(leases.iter().all(|granted| (0..=want).contains(granted)), "{leases:?}");
        let sum: i64 = leases.iter().sum();
        let mut conn = store::acquire(&database.db).await.unwrap();
        let stored = find_monthly_usage(&mut conn, ACCOUNT, month).await.unwrap().events;
        assert_eq!((sum, stored), ((100 * want).min(limit), sum), "{want} requested at {limit}: {leases:?}");
    }
}

#[tokio::test]
async fn near_the_limit_a_lease_leaves_a_rest_for_others() {
    let database = database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let mut granted = Vec::new();
    for _ in 0..12 {
        granted.push(lease_events(&mut conn, ACCOUNT, month_of(now()), 100, 50).await.unwrap());
    }
    assert_eq!(granted, [12, 9, 7, 5, 4, 3, 2, 2, 1, 1, 1, 1]);
    // A smaller plan revokes nothing and grants nothing.
    assert_eq!(lease_events(&mut conn, ACCOUNT, month_of(now()), 100, 20).await.unwrap(), 0);
    assert_eq!(lease_events(&mut conn, ACCOUNT, month_of(now()), 100, -1).await.unwrap(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_reservations_and_releases_stay_within_bounds() {
    let database = database().await;
    let taken = a_hundred_at_once(&database.db, |number, db| async move {
        let mut conn = store::acquire(&db).await.unwrap();
        let counter = COUNTERS[number % COUNTERS.len()];
        let (month, bytes) = (month_of(now()), i64::try_from(number).unwrap());
        let one = reserve(&mut conn, ACCOUNT, counter, 3).await.unwrap();
        let many = reserve_bytes(&mut conn, ACCOUNT, bytes, 200).await.unwrap();
        let leased = lease_events(&mut conn, ACCOUNT, month_of(now()), 5, 20).await.unwrap();
        if one {
            release(&mut conn, ACCOUNT, counter).await.unwrap();
        }
        if many {
            release_bytes(&mut conn, ACCOUNT, bytes).await.unwrap();
        }
        return_unused_events(&mut conn, ACCOUNT, month, leased).await.unwrap();
        one || many || leased > 0
    });
    assert!(taken.await > 3);
    for column in ["Projects", "Webhooks", "Domains", "Subdomains", "bytes"] {
        assert_eq!(counted(&database.db, column).await, 0, "{column}");
    }
    let mut conn = store::acquire(&database.db).await.unwrap();
    assert_eq!(find_monthly_usage(&mut conn, ACCOUNT, now()).await.unwrap(), MonthlyUsage::default());
}

#[tokio::test]
async fn no_more_than_was_reserved_is_released() {
    let database = database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let month = month_of(now());
    for counter in COUNTERS {
        assert!(release(&mut conn, ACCOUNT, counter).await.is_err(), "{counter:?}");
    }
    assert!(reserve_bytes(&mut conn, ACCOUNT, 5, 10).await.unwrap());
    assert!(release_bytes(&mut conn, ACCOUNT, 6).await.is_err());
    assert_eq!(lease_events(&mut conn, ACCOUNT, month_of(now()), 5, 100).await.unwrap(), 5);
    assert!(return_unused_events(&mut conn, ACCOUNT, month, 6).await.is_err());
    assert_eq!(counted(&database.db, "bytes").await, 5);
    assert_eq!(find_monthly_usage(&mut conn, ACCOUNT, now()).await.unwrap().events, 5);
}

#[tokio::test]
async fn a_month_starts_at_zero_and_unused_events_return_to_their_month() {
    let database = database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let (november, december) = (now(), at("2026-12-01T00:00:00Z"));
    assert_eq!(lease_events(&mut conn, ACCOUNT, month_of(november), 8, -1).await.unwrap(), 8);
    assert_eq!(reserve_automation_runs(&mut conn, ACCOUNT, november, 1, 1).await.unwrap(), 1);
    assert_eq!(reserve_automation_runs(&mut conn, ACCOUNT, november, 1, 1).await.unwrap(), 0);
    assert_eq!(find_monthly_usage(&mut conn, ACCOUNT, december).await.unwrap(), MonthlyUsage::default());

    assert_eq!(reserve_automation_runs(&mut conn, ACCOUNT, december, 1, 1).await.unwrap(), 1);
    assert_eq!(lease_events(&mut conn, ACCOUNT, month_of(december), 3, -1).await.unwrap(), 3);
    return_unused_events(&mut conn, ACCOUNT, month_of(november), 6).await.unwrap();
    assert_eq!(
        find_monthly_usage(&mut conn, ACCOUNT, november).await.unwrap(),
        MonthlyUsage { events: 2, automation_runs: 1 }
    );
    assert_eq!(
        find_monthly_usage(&mut conn, ACCOUNT, december).await.unwrap(),
        MonthlyUsage { events: 3, automation_runs: 1 }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_limit_everything_is_counted_and_granted() {
    let database = database().await;
    let taken = a_hundred_at_once(&database.db, |_, db| async move {
        let mut conn = store::acquire(&db).await.unwrap();
        let run = reserve_automation_runs(&mut conn, ACCOUNT, now(), 1, -1).await.unwrap() == 1;
        let bytes = reserve_bytes(&mut conn, ACCOUNT, 1 << 40, -1).await.unwrap();
        let leased = lease_events(&mut conn, ACCOUNT, month_of(now()), 9, -1).await.unwrap();
        reserve(&mut conn, ACCOUNT, Counter::Domains, -1).await.unwrap() && run && bytes && leased == 9
    });
    assert_eq!(taken.await, 100);
    let mut conn = store::acquire(&database.db).await.unwrap();
    let months = find_monthly_usage(&mut conn, ACCOUNT, now()).await.unwrap();
    assert_eq!(months, MonthlyUsage { events: 900, automation_runs: 100 });
    assert_eq!(counted(&database.db, "bytes").await, 100 << 40);
    assert_eq!(counted(&database.db, "Domains").await, 100);
}

#[tokio::test]
async fn events_without_a_lease_are_charged_beyond_the_limit() {
    let database = database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let month = month_of(now());
    charge_events(&mut conn, ACCOUNT, month, 12).await.unwrap();
    assert_eq!(find_monthly_usage(&mut conn, ACCOUNT, now()).await.unwrap().events, 12);
    assert_eq!(lease_events(&mut conn, ACCOUNT, month_of(now()), 5, 10).await.unwrap(), 0);
}

#[tokio::test]
async fn counters_are_deleted_with_their_account() {
    let database = database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    lease_events(&mut conn, ACCOUNT, month_of(now()), 5, -1).await.unwrap();
    store::execute_raw(&database.db, "delete from accounts").await.unwrap();
    assert_eq!(lease_events(&mut conn, ACCOUNT, month_of(now()), 5, -1).await.unwrap(), 0);
    charge_events(&mut conn, ACCOUNT, month_of(now()), 5).await.unwrap();
    assert_eq!(find_monthly_usage(&mut conn, ACCOUNT, now()).await.unwrap(), MonthlyUsage::default());
    assert_eq!(reserve_automation_runs(&mut conn, ACCOUNT, now(), 1, -1).await.unwrap(), 0);
}
