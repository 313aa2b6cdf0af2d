//! Postgres hangs, or its `submissions` are locked, while visitors keep submitting. Each gets a response by the deadline,
//! and a visitor who gives up earlier and submits again is stored once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use http::StatusCode;
use sandbox::test::until;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

use crate::client::Visitor;
use crate::fixtures::{Account, one_text_field, submit_path};
use crate::harness::Edge;

/// The deadline of a submission, and one second to respond.
const SETTINGS: &[&str] = &["forms.lock_timeout=2s"];
const IN_TIME: Duration = Duration::from_secs(3);
/// Time after which an impatient visitor submits again.
const PATIENCE: Duration = Duration::from_millis(700);
/// Fifteen visitors arrive per second.
const ARRIVAL_INTERVAL: Duration = Duration::from_millis(66);
/// Visitors who arrive during the outage: ten seconds of them.
const VISITORS: usize = 150;

/// What a visitor went through until the submission was accepted.
#[derive(Default)]
struct Visit {
    slowest_response: Duration,
    gave_up: usize,
    unavailable: usize,
    /// Whether the last response says that the submission may have been stored.
    is_unknown: bool,
}

/// The outage as visitors see it: once it ends, all are patient.
#[derive(Default)]
struct Outage {
    has_ended: AtomicBool,
    /// Requests of visitors that will hang up.
    impatient: AtomicUsize,
}

impl Outage {
    /// Lets all visitors be patient, and waits until the last impatient one has hung up: a visitor who hangs up between a
    /// commit and its response can't know that the submission is stored.
    async fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        until(async || self.impatient.load(Ordering::SeqCst) == 0).await;
    }
}

/// Submits until it is accepted. During the outage, an impatient visitor hangs up and submits again.
async fn visit(visitor: Visitor, form: Uuid, name: String, is_impatient: bool, outage: Arc<Outage>) -> Visit {
    let mut visit = Visit::default();
    loop {
        let started = Instant::now();
        let path = submit_path(form);
        let answers = json!({"a": name});
        let sent = visitor.post(&path, &answers);
        let response = if is_impatient && !outage.has_ended.load(Ordering::SeqCst) {
            outage.impatient.fetch_add(1, Ordering::SeqCst);
            let response = timeout(PATIENCE, sent).await.ok();
            outage.impatient.fetch_sub(1, Ordering::SeqCst);
            response
        } else {
            Some(sent.await)
        };
        let Some(response) = response else {
            visit.gave_up += 1;
            continue;
        };
        visit.slowest_response = visit.slowest_response.max(started.elapsed());
        if response.status == StatusCode::CREATED {
            return visit;
        }
        response.problem(503, "unavailable");
        visit.unavailable += 1;
        if response.header("retry-after").is_empty() {
            // No commit is sent before its statements are answered.
            assert!(
                outage.has_ended.load(Ordering::SeqCst),
                "only a commit without a reply has an unknown outcome"
            );
            visit.is_unknown = true;
            return visit;
        }
        crate::harness::short_pause().await;
    }
}

/// Lets visitors arrive at both forms while Postgres is unavailable. Every second one is impatient.
async fn arrive(edge: &Edge, forms: [Uuid; 2], outage: &Arc<Outage>) -> Vec<JoinHandle<Visit>> {
    let mut ticks = service::ticks(ARRIVAL_INTERVAL);
    let mut visits = Vec::new();
    for number in 0..VISITORS {
        ticks.tick().await;
        let (form, is_impatient) = (forms[number % 2], number % 4 < 2);
        let visit = visit(edge.visitor.clone(), form, number.to_string(), is_impatient, Arc::clone(outage));
        visits.push(tokio::spawn(visit));
    }
    visits
}

/// One form with submissions that share transactions, and one with a limit, so that each has its own. Both are cached.
async fn forms(edge: &Edge, account: &Account<'_>) -> [Uuid; 2] {
    edge.run(&format!("update accounts set plan = 'scale' where id = '{}'", account.id)).await;
    let plain = account.form(one_text_field()).await;
    let limited = account.form_with(one_text_field(), |form| form.max_submissions = Some(10_000)).await;
    // Or what is cached now is invalidated as the subscription begins.
    edge.wait_until_subscribed().await;
    for form in [plain, limited] {
        let first = edge.visitor.post(&submit_path(form), &json!({"a": "first"})).await;
        assert_eq!(first.status, StatusCode::CREATED);
    }
    [plain, limited]
}

/// Checks the responses, and that each visitor is stored once.
async fn check(account: &Account<'_>, forms: [Uuid; 2], visits: Vec<JoinHandle<Visit>>) {
    let visits: Vec<Visit> = join_all(visits).await.into_iter().map(Result::unwrap).collect();
    let slowest = visits.iter().map(|visit| visit.slowest_response).max().unwrap();
    let sum = |part: fn(&Visit) -> usize| visits.iter().map(part).sum::<usize>();
    let (gave_up, unavailable) = (sum(|visit| visit.gave_up), sum(|visit| visit.unavailable));
    assert!(slowest < IN_TIME, "{slowest:?}");
    assert!(gave_up > 100 && unavailable > 50, "there was no outage: {gave_up}, {unavailable}");
    let mut copies = BTreeMap::<String, usize>::new();
    for name in stored_names(account, forms).await {
        *copies.entry(name).or_default() += 1;
    }
    let stored_twice: Vec<_> =
        copies.iter().filter(|(name, count)| *name != "first" && **count > 1).collect();
    assert!(stored_twice.is_empty(), "{stored_twice:?}");
    let unknown = visits.iter().filter(|visit| visit.is_unknown).count();
    assert!(unknown <= 2, "only a commit without a reply has an unknown outcome: {unknown}");
    assert!((VISITORS + 1 - unknown..=VISITORS + 1).contains(&copies.len()), "{} stored", copies.len());
}

async fn stored_names(account: &Account<'_>, forms: [Uuid; 2]) -> Vec<String> {
    let mut names = Vec::new();
    for form in forms {
        let stored = account.submissions(form).await;
        names.extend(stored.iter().map(|one| one["a"].as_str().unwrap().to_owned()));
    }
    names
}

/// Whether so many statements wait for the lock.
async fn are_waiting(edge: &Edge, statements: usize) -> bool {
    let waiting = "select count(*) from pg_locks where not granted and relation = 'submissions'::regclass";
    let check = format!("do $$ begin assert ({waiting}) = {statements}; end $$");
    store::execute_raw(&edge.database.db, &check).await.is_ok()
}

/// A lock on the table `submissions`, held while the form of this transaction is locked.
async fn lock_submissions(edge: &Edge, account: &Account<'_>) -> store::Tx {
    let form = account.form(one_text_field()).await;
    let mut tx = store::begin(&edge.database.db).await.unwrap();
    store::forms::lock_form(&mut tx, account.id, form).await.unwrap().unwrap();
    let key = form.as_u64_pair().1.cast_signed();
    let lock = format!(
        "lock table submissions in access exclusive mode; select pg_advisory_xact_lock_shared({key})"
    );
    let db = edge.database.db.clone();
    tokio::spawn(async move { store::execute_raw(&db, &lock).await });
    let held = "select from pg_locks where granted and relation = 'submissions'::regclass
                and mode = 'AccessExclusiveLock'";
    let check = format!("do $$ begin assert exists ({held}); end $$");
    until(async || store::execute_raw(&edge.database.db, &check).await.is_ok()).await;
    tx
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_who_give_up_while_postgres_hangs_are_answered_in_time_and_stored_once() {
    let edge = Edge::with(SETTINGS).await;
    let account = edge.account("quiet-otter").await;
    let forms = forms(&edge, &account).await;
    let outage = Arc::default();
    edge.postgres.stall();
    let visits = arrive(&edge, forms, &outage).await;
    outage.end().await;
    edge.postgres.resume();
    check(&account, forms, visits).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_who_give_up_while_submissions_are_locked_are_answered_in_time_and_stored_once() {
    let edge = Edge::with(SETTINGS).await;
    let account = edge.account("quiet-otter").await;
    let forms = forms(&edge, &account).await;
    let outage = Arc::default();
    let lock = lock_submissions(&edge, &account).await;
    let visits = arrive(&edge, forms, &outage).await;
    outage.end().await;
    store::rollback(lock).await.unwrap();
    check(&account, forms, visits).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_who_hangs_up_while_the_statement_waits_for_a_lock_is_not_stored() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let forms = forms(&edge, &account).await;
    let form = forms[0];
    let lock = lock_submissions(&edge, &account).await;
    let submit = async |name: &str| {
        let body = json!({"a": name}).to_string();
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            submit_path(form),
            body.len()
        );
        let mut stream = edge.visitor.connect().await;
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        stream
    };
    let mut first = submit("gone-1").await;
    until(async || are_waiting(&edge, 1).await).await;
    let mut second = submit("gone-2").await;
    until(async || are_waiting(&edge, 2).await).await;
    // Both writers are busy, so this one stays in the queue.
    let (visitor, path) = (edge.visitor.clone(), submit_path(form));
    let stays = tokio::spawn(async move { visitor.post(&path, &json!({"a": "stays"})).await.status });
    for stream in [&mut first, &mut second] {
        stream.shutdown().await.unwrap();
        // The edge closes its end once it has dropped the request.
        assert_eq!(stream.read_to_end(&mut Vec::new()).await.unwrap(), 0);
    }
    store::rollback(lock).await.unwrap();
    assert_eq!(stays.await.unwrap(), StatusCode::CREATED);
    let mut names = stored_names(&account, forms).await;
    names.sort();
    assert_eq!(names, ["first", "first", "stays"]);
}
