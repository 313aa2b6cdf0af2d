//! A job-runner or the authority is killed at each step of an order: no order is lost, and no certificate issued twice.

use std::process::Command;

use rustix::process::Signal;
use sandbox::child::Child;
use sandbox::pebble::Options;
use sandbox::test::until;

use super::authority::Authority;
use super::responders::VALIDATION_LOCK;

/// Each step that is stored, as the trigger in front of it, in the order of their time.
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
/// The step between a challenge that is ready and the order's end: the authority asks for the answer.
const VALIDATION: &str = "validation";
/// The lock that pauses a job-runner in front of a step.
const PAUSE: i64 = 4_711;

/// Counts what waits for a pause in this database; the server has others, whose tests run at the same time.
const WAITING: &str =
    "select count(*) from pg_locks where locktype = 'advisory' and not granted and objid in (4711, 4712)
    and database = (select oid from pg_database where datname = current_database())";

/// A pause in front of a step, held by the test.
struct Pause<'a> {
    authority: &'a Authority,
    holder: sqlx::pool::PoolConnection<sqlx::Postgres>,
}

impl<'a> Pause<'a> {
    async fn hold(authority: &'a Authority, lock: i64) -> Self {
        let db = &authority.account.database.db;
        let mut holder = db.acquire().await.unwrap();
        sqlx::query("select pg_advisory_lock($1)").bind(lock).execute(&mut *holder).await.unwrap();
        Self { authority, holder }
    }

    /// Pauses every answer to the authority, which waits for it.
    async fn before_validation(authority: &'a Authority) -> Self {
        Self::hold(authority, VALIDATION_LOCK).await
    }

    /// Pauses every job-runner in front of this step.
    async fn before(authority: &'a Authority, event: &str) -> Self {
        let pause = Self::hold(authority, PAUSE).await;
        authority
            .account
            .change(&format!(
                "create or replace function pause() returns trigger language plpgsql as $$ begin
                     perform pg_advisory_xact_lock_shared({PAUSE}); return new; end $$;
                 create trigger pause before {event} execute function pause()"
            ))
            .await;
        pause
    }

    /// Waits until a job-runner is there.
    async fn reached(&self) {
        until(async || self.authority.account.number(WAITING).await > 0).await;
    }

    /// Ends the connections that wait, so that the step has no effect.
    async fn discard(&self) {
        self.authority.account.change(&WAITING.replace("count(*)", "pg_terminate_backend(pid)")).await;
    }

    /// Removes the pause. A step that was reached takes effect, though its job-runner may be dead.
    async fn end(mut self) {
        sqlx::query("select pg_advisory_unlock_all()").execute(&mut *self.holder).await.unwrap();
        for table in ["certificates", "acme_orders", "acme_challenges"] {
            self.authority.account.change(&format!("drop trigger if exists pause on {table}")).await;
        }
    }
}

/// Starts the program in a process of its own, to be killed. Its log is in `folder`.
fn start_process(authority: &Authority, folder: &tempfile::TempDir) -> Child {
    let own = authority.settings();
    let free_ports = ["listen.main=127.0.0.1:0", "listen.ops=127.0.0.1:0"];
    let set: Vec<&str> = own.iter().map(String::as_str).chain(free_ports).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_job-runner"));
    for setting in authority.account.settings(&set) {
        command.args(["--set", &setting]);
    }
    Child::spawn("job-runner", command, Signal::TERM, &folder.path().join("log")).unwrap()
}

/// Kills the process of a job-runner with SIGKILL at a step, and lets another one finish the order of `name`.
async fn kill_at(authority: &Authority, name: &str, pause: Pause<'_>, has_effect: bool) {
    let folder = tempfile::tempdir().unwrap();
    authority.verified_domain(name).await;
    let process = start_process(authority, &folder);
    pause.reached().await;
    process.kill().await.unwrap();
    if !has_effect {
        pause.discard().await;
    }
    pause.end().await;
    assert_eq!(authority.certificate(name).await.unwrap().chain, None, "{name}");

    // The lease of the killed process ends.
    let expired = "update certificates set leased_until = now() where lease_id is not null and name = '{}'";
    authority.account.change(&expired.replace("{}", name)).await;
    let other = authority.run(&[]).await;
    let issued = authority.issued(name).await;
    other.stop().await;
    assert_eq!(issued.failed_attempts, 0, "{name}: {issued:?}");
}

#[tokio::test]
async fn a_job_runner_killed_with_minus_9_at_each_step_loses_no_order_and_doubles_none() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let effects = |step| if step == VALIDATION { vec![true] } else { vec![false, true] };
    for (step, event) in STEPS.into_iter().chain([(VALIDATION, "")]) {
        for has_effect in effects(step) {
            let name = format!("{step}-{has_effect}.example");
            let (issued, sent) = (authority.pebble.issued(), authority.pebble.orders());
            let pause = match step {
                VALIDATION => Pause::before_validation(&authority).await,
                _ => Pause::before(&authority, event).await,
            };
            kill_at(&authority, &name, pause, has_effect).await;
            assert_eq!(authority.pebble.issued(), issued + 1, "{name}: issued once");
            let counted = sqlx::query_scalar::<_, i64>("select count(*) from acme_orders where name = $1");
            let counted = counted.bind(name.clone()).fetch_one(&authority.account.database.db).await.unwrap();
            let sent = i64::try_from(authority.pebble.orders() - sent).unwrap();
            // One order, and one count of it. Only if the process dies after the authority accepted an order and before its
            // URL is stored, a second one is begun: the answer with the URL was lost with the process.
            let permitted = if (step, has_effect) == ("order", false) { 2 } else { 1 };
            assert_eq!(
                (sent, counted),
                (permitted, permitted),
                "{name}: orders at the authority, and counted"
            );
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
