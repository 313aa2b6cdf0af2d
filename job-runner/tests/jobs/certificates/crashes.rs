//! A job-runner or the authority is killed at each step of an order: no order is lost, and no certificate issued twice.

use sandbox::pebble::Options;
use sandbox::test::until;
use tokio::runtime::{Builder, Runtime};

use super::authority::Authority;
use crate::fixture::account::Running;

/// Each step that is stored, as the trigger in front of it.
const STEPS: [(&str, &str); 5] = [
    (
        "claim",
        "update on certificates for each row when (new.lease_id is distinct from old.lease_id and new.lease_id is not null)",
    ),
    ("count", "insert on acme_orders for each row"),
    (
        "order",
        "update on certificates for each row when (new.order_url is distinct from old.order_url and new.order_url is not null)",
    ),
    ("challenge", "insert on acme_challenges for each row"),
    ("issue", "update on certificates for each row when (new.chain is distinct from old.chain)"),
];
/// The lock that pauses a job-runner in front of a step.
const PAUSE: i64 = 4_711;

/// Short, because another job-runner waits for it, but not lost while the machine is busy.
const LEASE: &str = "acme.lease_ttl=2s";

/// A pause in front of a step, held by the test.
struct Pause<'a> {
    authority: &'a Authority,
    holder: sqlx::pool::PoolConnection<sqlx::Postgres>,
}

impl<'a> Pause<'a> {
    /// Pauses every job-runner in front of this step.
    async fn before(authority: &'a Authority, event: &str) -> Self {
        let db = &authority.account.database.db;
        let mut holder = db.acquire().await.unwrap();
        sqlx::query("select pg_advisory_lock($1)").bind(PAUSE).execute(&mut *holder).await.unwrap();
        authority
            .account
            .change(&format!(
                "create or replace function pause() returns trigger language plpgsql as $$ begin
                     perform pg_advisory_xact_lock_shared({PAUSE}); return new; end $$;
                 create trigger pause before {event} execute function pause()"
            ))
            .await;
        Self { authority, holder }
    }

    /// Waits until a job-runner is there.
    async fn reached(&self) {
        let waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
        until(async || self.authority.account.number(waiting).await > 0).await;
    }

    /// Ends the connections that wait, so that the step has no effect.
    async fn discard(&self) {
        let statement =
            "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and not granted";
        self.authority.account.change(statement).await;
    }

    /// Removes the pause. A step that was reached takes effect, though its job-runner may be dead.
    async fn end(mut self) {
        sqlx::query("select pg_advisory_unlock($1)").bind(PAUSE).execute(&mut *self.holder).await.unwrap();
        for table in ["certificates", "acme_orders", "acme_challenges"] {
            self.authority.account.change(&format!("drop trigger if exists pause on {table}")).await;
        }
    }
}

/// A job-runner on a runtime of its own, which can be killed: all of its tasks are dropped where they are.
struct Killable {
    runtime: Runtime,
    running: Running,
}

impl Killable {
    async fn start(authority: &Authority) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let guard = runtime.enter();
        let running = authority.run(&[LEASE]).await;
        drop(guard);
        Self { runtime, running }
    }

    fn kill(self) {
        self.runtime.shutdown_background();
        drop(self.running);
    }
}

#[tokio::test]
async fn a_job_runner_killed_at_each_step_loses_no_order_and_doubles_none() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    for (step, event) in STEPS {
        for has_effect in [false, true] {
            let name = format!("{step}-{has_effect}.example");
            let before = authority.pebble.issued();
            let pause = Pause::before(&authority, event).await;
            authority.verified_domain(&name).await;
            let killed = Killable::start(&authority).await;
            pause.reached().await;
            killed.kill();
            if !has_effect {
                pause.discard().await;
            }
            pause.end().await;
            assert_eq!(authority.certificate(&name).await.unwrap().chain, None, "{name}");

            let other = authority.run(&[LEASE]).await;
            let issued = authority.issued(&name).await;
            other.stop().await;
            assert_eq!(issued.failed_attempts, 0, "{name}: {issued:?}");
            assert_eq!(authority.pebble.issued(), before + 1, "{name}: issued once");
            let orders = sqlx::query_scalar::<_, i64>("select count(*) from acme_orders where name = $1");
            let orders = orders.bind(name.clone()).fetch_one(&authority.account.database.db).await.unwrap();
            // An order is begun again while its URL is not stored, also when a busy machine loses the lease.
            let most = if matches!(step, "challenge" | "issue") { 1 } else { 2 };
            assert!((1..=most).contains(&orders), "{name}: {orders} orders");
        }
    }
}

#[tokio::test]
async fn an_authority_killed_at_each_step_of_an_order_loses_no_order() {
    let Some(mut authority) = Authority::start(&Options::default()).await else { return };
    for (step, event) in &STEPS[1..4] {
        let name = format!("authority-{step}.example");
        let pause = Pause::before(&authority, event).await;
        authority.verified_domain(&name).await;
        let running = authority.run(&[]).await;
        pause.reached().await;
        let Pause { holder, .. } = pause;
        authority.pebble.kill().await.unwrap();
        authority.pebble.restart().await.unwrap();
        Pause { authority: &authority, holder }.end().await;
        authority.issued(&name).await;
        running.stop().await;
    }
    assert_eq!(authority.pebble.issued(), 3);
}
