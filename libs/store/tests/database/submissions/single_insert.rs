//! Submissions are stored with all their effects, within their form's limits, and unique where the form requires it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{ACCOUNT, database, new_id, now};
use contract::{Change, Job, Signal};
use domain::forms::ClosedReason;
use domain::pages::{Content, Publication, PublicationChange};
use domain::submissions::{SPAM_MAX, Status};
use serde_json::{Value, json};
use service::Rng;
use store::forms::{Form, find_form, insert_form, lock_form, lock_form_shared, update_form};
use store::pages::{NewPage, insert_page};
use store::submissions::{
    NewSubmission, Submission, SubmissionFilter, SubmissionOutcome, WriteContext, insert_submission,
    list_submissions,
};
use store::webhooks::{NewWebhook, insert_webhook};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use uuid::Uuid;

/// A form with an e-mail field, modified by `shape`.
async fn form(db: &store::Db, shape: impl FnOnce(&mut Form)) -> Form {
    let fields = json!([
        {"name": "email", "label": "E-mail", "type": "email"},
        {"name": "note", "label": "Note", "type": "textarea"},
    ]);
    let mut form = Form::new(new_id(), "F".to_owned(), serde_json::from_value(fields).unwrap(), now());
    shape(&mut form);
    let mut conn = store::acquire(db).await.unwrap();
    insert_form(&mut conn, ACCOUNT, &form).await.unwrap();
    form
}

fn by_email(form: &mut Form) {
    form.unique_by = Some(vec!["email".to_owned()]);
}

async fn page(db: &store::Db, template: Option<&str>) -> Uuid {
    let mut conn = store::acquire(db).await.unwrap();
    let (subdomain_id, id) = (new_id(), new_id());
    let subdomain = format!(
        "insert into subdomains (id, account_id, name, created_at)
                             values ('{subdomain_id}', '{ACCOUNT}', '{subdomain_id}', now())"
    );
    store::execute_raw(db, &subdomain).await.unwrap();
    let content = Content {
        title: "P".to_owned(),
        html: "<!-- service:entries -->".to_owned(),
        css: None,
        entry_template: template.map(str::to_owned),
        metadata: json!({}),
    };
    let publication =
        Publication::NEW.apply(PublicationChange { is_published: None, publish_at: None }, now());
    let page = NewPage {
        id,
        folder_id: None,
        subdomain_id,
        slug: "guests".to_owned(),
        content,
        publication,
        deploy_id: None,
        created_at: now(),
    };
    assert!(insert_page(&mut conn, ACCOUNT, &page).await.unwrap());
    id
}

/// Inserts a submission, and commits if it is stored.
async fn insert(db: &store::Db, form: &Form, payload: Value, spam_reasons: &[&str]) -> SubmissionOutcome {
    let new = NewSubmission {
        id: new_id(),
        external_id: None,
        payload: payload.as_object().unwrap().clone(),
        extra: serde_json::Map::new(),
        spam_reasons: spam_reasons.iter().map(ToString::to_string).collect(),
    };
    let writer = WriteContext { now: now(), traceparent: None, depth: 0, new_id: &new_id };
    let mut tx = store::begin(db).await.unwrap();
    lock_form_shared(&mut tx, form.id).await.unwrap();
    let taken = insert_submission(&mut tx, ACCOUNT, form, &new, -1, &writer).await.unwrap();
    if matches!(taken, SubmissionOutcome::Stored(_)) {
        store::commit(tx).await.unwrap();
    }
    taken
}

async fn submissions(db: &store::Db, form: &Form) -> Vec<Submission> {
    let mut conn = store::acquire(db).await.unwrap();
    list_submissions(
        &mut conn,
        ACCOUNT,
        form.id,
        &SubmissionFilter { limit: 1_000, ..SubmissionFilter::default() },
    )
    .await
    .unwrap()
    .rows
}

async fn submissions_in(db: &store::Db, form: &Form) -> usize {
    let mut conn = store::acquire(db).await.unwrap();
    list_submissions(
        &mut conn,
        ACCOUNT,
        form.id,
        &SubmissionFilter { limit: 1_000_000, ..SubmissionFilter::default() },
    )
    .await
    .unwrap()
    .rows
    .len()
}

async fn count(db: &store::Db, form: &Form) -> i64 {
    let mut conn = store::acquire(db).await.unwrap();
    find_form(&mut conn, ACCOUNT, form.id).await.unwrap().unwrap().submission_count
}

async fn jobs(db: &store::Db) -> Vec<Job> {
    let mut conn = store::acquire(db).await.unwrap();
    let due = store::outbox::lock_jobs(&mut conn, now(), 1_000).await.unwrap();
    due.into_iter().map(|row| row.message.unwrap()).collect()
}

fn stored(taken: &SubmissionOutcome) -> bool {
    matches!(taken, SubmissionOutcome::Stored(_))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_hundred_concurrent_duplicates_is_stored() {
    let database = database().await;
    for limit in [None, Some(1_000)] {
        let form = form(&database.db, |form| {
            by_email(form);
            form.max_submissions = limit;
        })
        .await;
        // No task times out waiting for a connection, even on a slow machine.
        let turns = Arc::new(Semaphore::new(50));
        let taken: JoinSet<SubmissionOutcome> = (0..200)
            .map(|number| {
                let (db, form, turns) = (database.db.clone(), form.clone(), Arc::clone(&turns));
                let email = if number % 2 == 0 { "a@b.co" } else { "A@B.co" };
                async move {
                    let _turn = turns.acquire().await.unwrap();
                    insert(&db, &form, json!({"email": email, "note": number.to_string()}), &[]).await
                }
            })
            .collect();
        let taken = taken.join_all().await;
        let of =
            |expected: fn(&SubmissionOutcome) -> bool| taken.iter().filter(|taken| expected(taken)).count();
        assert_eq!((of(stored), of(|taken| *taken == SubmissionOutcome::Duplicate)), (1, 199));
        assert_eq!((count(&database.db, &form).await, submissions(&database.db, &form).await.len()), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unlimited_counting_is_exact_and_a_later_limit_applies() {
    let database = database().await;
    let form = form(&database.db, |_| {}).await;
    let at_once = async |form: &Form, times: usize| {
        let taken: JoinSet<SubmissionOutcome> = (0..times)
            .map(|_| {
                let (db, form) = (database.db.clone(), form.clone());
                async move { insert(&db, &form, json!({"note": "x"}), &[]).await }
            })
            .collect();
        taken.join_all().await.iter().filter(|taken| stored(taken)).count()
    };
    assert_eq!((at_once(&form, 100).await, count(&database.db, &form).await), (100, 100));
    let edit = async |max: Option<i64>| {
        let mut tx = store::begin(&database.db).await.unwrap();
        let mut edited = lock_form(&mut tx, ACCOUNT, form.id).await.unwrap().unwrap();
        edited.max_submissions = max;
        update_form(&mut tx, ACCOUNT, &edited, now()).await.unwrap();
        let edited = find_form(&mut tx, ACCOUNT, form.id).await.unwrap().unwrap();
        store::commit(tx).await.unwrap();
        edited
    };
    let limited = edit(Some(110)).await;
    assert_eq!((at_once(&limited, 50).await, count(&database.db, &form).await), (10, 110));
    let unlimited = edit(None).await;
    assert_eq!((at_once(&unlimited, 20).await, count(&database.db, &form).await), (20, 130));
    let mut tx = store::begin(&database.db).await.unwrap();
    let downgraded = NewSubmission {
        id: new_id(),
        external_id: None,
        payload: json!({"note": "x"}).as_object().unwrap().clone(),
        extra: serde_json::Map::new(),
        spam_reasons: Vec::new(),
    };
    let writer = WriteContext { now: now(), traceparent: None, depth: 0, new_id: &new_id };
    for (plan_limit, place) in [(130, false), (131, true)] {
        let taken =
            insert_submission(&mut tx, ACCOUNT, &unlimited, &downgraded, plan_limit, &writer).await.unwrap();
        assert_eq!(stored(&taken), place, "{plan_limit} {taken:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_not_starved_by_submissions() {
    let database = database().await;
    let form = form(&database.db, |_| {}).await;
    let edited = Arc::new(AtomicBool::new(false));
    let submitting: JoinSet<()> = (0..8)
        .map(|_| {
            let (db, form, edited) = (database.db.clone(), form.clone(), Arc::clone(&edited));
            async move {
                while !edited.load(Ordering::Relaxed) {
                    insert(&db, &form, json!({"note": "x"}), &[]).await;
                }
            }
        })
        .collect();
    while count(&database.db, &form).await < 50 {
        tokio::task::yield_now().await;
    }
    let edit = async {
        let mut tx = store::begin(&database.db).await.unwrap();
        let locked = lock_form(&mut tx, ACCOUNT, form.id).await.unwrap().unwrap();
        store::commit(tx).await.unwrap();
        locked.submission_count
    };
    let counted = tokio::time::timeout(Duration::from_secs(20), edit).await;
    edited.store(true, Ordering::Relaxed);
    submitting.join_all().await;
    assert!(counted.unwrap() >= 50);
    assert_eq!(
        count(&database.db, &form).await,
        i64::try_from(submissions_in(&database.db, &form).await).unwrap()
    );
}

#[tokio::test]
async fn a_submission_without_the_unique_field_is_no_duplicate() {
    let database = database().await;
    let form = form(&database.db, by_email).await;
    for _ in 0..3 {
        assert!(stored(&insert(&database.db, &form, json!({"note": "x"}), &[]).await));
    }
    assert_eq!(count(&database.db, &form).await, 3);
}

#[tokio::test]
async fn spam_is_stored_without_effects() {
    let database = database().await;
    let form = form(&database.db, |form| {
        by_email(form);
        form.max_submissions = Some(1);
        form.notify_email = Some("owner@example.com".to_owned());
    })
    .await;
    for _ in 0..2 {
        let taken = insert(&database.db, &form, json!({"email": "a@b.co"}), &["honeypot"]).await;
        assert_eq!(taken, SubmissionOutcome::Stored(Vec::new()));
    }
    assert_eq!((count(&database.db, &form).await, jobs(&database.db).await), (0, Vec::new()));
    let kept = submissions(&database.db, &form).await;
    assert_eq!(
        (kept.len(), kept[0].status.as_str(), kept[0].spam_reasons.as_slice()),
        (2, "spam", ["honeypot".to_owned()].as_slice())
    );
    assert!(
        stored(&insert(&database.db, &form, json!({"email": "a@b.co"}), &[]).await),
        "it takes no place of another"
    );
    let late = insert(&database.db, &form, json!({"email": "c@b.co"}), &["honeypot"]).await;
    assert_eq!(
        late,
        SubmissionOutcome::Refused(ClosedReason::Full),
        "spam is rejected like any other submission"
    );
}

#[tokio::test]
async fn spam_that_waits_for_its_visitor_is_deleted_last() {
    let database = database().await;
    let form = form(&database.db, |_| {}).await;
    assert!(stored(&insert(&database.db, &form, json!({"note": "waits"}), &["honeypot"]).await));
    let newer = format!(
        "update submissions set created_at = created_at - interval '5 minutes';
         insert into submissions (id, account_id, form_id, payload, status, spam_reasons, created_at, updated_at)
         select gen_random_uuid(), '{ACCOUNT}', '{}', '{{}}', 'spam', '{{proof_of_work}}', now() - interval '1 minute', now()
         from generate_series(1, {SPAM_MAX})",
        form.id
    );
    store::execute_raw(&database.db, &newer).await.unwrap();
    assert!(stored(&insert(&database.db, &form, json!({"note": "new"}), &["honeypot"]).await));
    let notes = sqlx::query_scalar::<_, String>(
        "select payload->>'note' from submissions where form_id = $1 and payload ? 'note' order by 1",
    );
    let notes = notes.bind(form.id).fetch_all(&database.db).await.unwrap();
    assert_eq!(notes, ["new", "waits"]);
}

#[tokio::test]
async fn a_form_keeps_only_its_newest_spam() {
    let database = database().await;
    let (form, other) = (form(&database.db, |_| {}).await, form(&database.db, |_| {}).await);
    let fill = |of: &Form, status: &str, number: i64, bytes: usize| {
        format!(
            "insert into submissions (id, account_id, form_id, payload, status, created_at, updated_at)
             select gen_random_uuid(), '{ACCOUNT}', '{}', jsonb_build_object('note', repeat(md5(n::text), {bytes} / 32)),
                    '{status}', now() - n * interval '1 day', now() from generate_series(1, {number}) n",
            of.id
        )
    };
    let fill =
        [fill(&form, "spam", SPAM_MAX + 5, 32), fill(&form, "received", 7, 32), fill(&other, "spam", 3, 32)];
    store::execute_raw(&database.db, &fill.join(";")).await.unwrap();
    let of = async |form: &Form, status: Status| {
        let mut conn = store::acquire(&database.db).await.unwrap();
        let sought =
            SubmissionFilter { status: Some(status), limit: 1_000_000, ..SubmissionFilter::default() };
        list_submissions(&mut conn, ACCOUNT, form.id, &sought).await.unwrap().rows
    };
    let eldest = of(&form, Status::Spam).await[usize::try_from(SPAM_MAX).unwrap() - 2].id;
    // Newer than all existing rows. In days, because years would bring the 28th and the 29th of February together.
    store::execute_raw(&database.db, "update submissions set created_at = created_at - interval '3650 days'")
        .await
        .unwrap();
    assert!(stored(&insert(&database.db, &form, json!({"note": "buy"}), &["honeypot"]).await));
    let kept = of(&form, Status::Spam).await;
    assert_eq!(kept.len(), usize::try_from(SPAM_MAX).unwrap());
    assert_eq!(
        (kept[0].payload["note"].as_str(), kept.last().map(|last| last.id)),
        (Some("buy"), Some(eldest))
    );
    assert_eq!((of(&form, Status::Received).await.len(), of(&other, Status::Spam).await.len()), (7, 3));

    let large: String = Rng::seeded(1).bytes::<120_000>().iter().map(|byte| format!("{byte:02x}")).collect();
    for _ in 0..120 {
        assert!(stored(&insert(&database.db, &other, json!({"note": large}), &["honeypot"]).await));
    }
    let count =
        sqlx::query_scalar::<_, i64>("select count(*) from submissions where form_id = $1").bind(other.id);
    let kept = count.fetch_one(&database.db).await.unwrap();
    assert!((50..120).contains(&kept), "{kept} of 240 kB each are more than a form keeps");
}

#[tokio::test]
async fn a_flood_of_large_submissions_over_the_rate_is_refused_and_does_not_replace_itself_for_ever() {
    let database = database().await;
    let form = form(&database.db, |_| {}).await;
    let large: String = Rng::seeded(1).bytes::<120_000>().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut outcomes = Vec::new();
    while outcomes.len() < 150 && !matches!(outcomes.last(), Some(SubmissionOutcome::RateLimited)) {
        outcomes.push(insert(&database.db, &form, json!({"note": large}), &["rate"]).await);
    }
    assert_eq!(outcomes.pop(), Some(SubmissionOutcome::RateLimited), "after {} of 240 kB", outcomes.len());
    assert!(outcomes.len() >= 50 && outcomes.iter().all(stored), "{}", outcomes.len());
    let count =
        sqlx::query_scalar::<_, i64>("select count(*) from submissions where form_id = $1").bind(form.id);
    let kept = count.fetch_one(&database.db).await.unwrap();
    assert_eq!(usize::try_from(kept).unwrap(), outcomes.len(), "none was replaced");
    assert!(stored(&insert(&database.db, &form, json!({"note": large}), &["honeypot"]).await), "other spam");
}

#[tokio::test]
async fn deliveries_and_the_mail_are_stored_in_the_same_transaction() {
    let database = database().await;
    let form = form(&database.db, |form| form.notify_email = Some("owner@example.com".to_owned())).await;
    let webhook = NewWebhook {
        id: new_id(),
        sealed_url: vec![1],
        events: Vec::new(),
        description: None,
        field_mapping: None,
        form_ids: None,
        sealed_secret: vec![2],
        created_at: now(),
        template: "default",
        telegram_chat_id: None,
    };
    let mut conn = store::acquire(&database.db).await.unwrap();
    insert_webhook(&mut conn, ACCOUNT, &webhook).await.unwrap();
    assert_eq!(
        insert(&database.db, &form, json!({"note": "x"}), &[]).await,
        SubmissionOutcome::Stored(vec![
            Signal::OutboxFilled,
            Signal::DeliveriesDue { webhook_ids: vec![webhook.id] }
        ])
    );
    let submission_id = submissions(&database.db, &form).await[0].id;
    let webhooks = [webhook.id];
    let filter =
        store::deliveries::DeliveryFilter { webhook_ids: Some(&webhooks), limit: 10, ..Default::default() };
    let deliveries = store::deliveries::list_deliveries(&mut conn, ACCOUNT, &filter).await.unwrap().rows;
    assert_eq!(
        (deliveries.len(), deliveries[0].state.as_str()),
        (1, "pending"),
        "the row is enough to send it"
    );
    assert_eq!(jobs(&database.db).await, [Job::NotifyOwnerV1 { submission_id }]);
}

#[tokio::test]
async fn the_page_gets_an_entry_and_its_change_is_published() {
    let database = database().await;
    let page = page(&database.db, Some("<p>{{note}}</p>")).await;
    let form = form(&database.db, |form| form.auto_entry_page_id = Some(page)).await;
    let SubmissionOutcome::Stored(signals) = insert(&database.db, &form, json!({"note": "x"}), &[]).await
    else {
        panic!("it is stored")
    };
    assert!(
        matches!(&signals[..], [Signal::Changed(Change::Page { slug, .. }), Signal::OutboxFilled] if slug == "guests")
    );
    let mut conn = store::acquire(&database.db).await.unwrap();
    let entries = store::entries::list_entries(&mut conn, ACCOUNT, page, None, 10).await.unwrap().rows;
    assert_eq!(entries.iter().map(|entry| &entry.data).collect::<Vec<_>>(), [&json!({"note": "x"})]);
    let published = store::outbox::lock_signals(&mut conn, now(), 10).await.unwrap();
    assert_eq!(published[0].message.as_ref(), Some(&signals[0]), "guaranteed by the outbox");
    assert_eq!(submissions(&database.db, &form).await[0].entry_note, None);
}

#[tokio::test]
async fn a_submission_without_an_entry_is_stored_with_the_reason() {
    let database = database().await;
    let (gone, bare, full) = (new_id(), page(&database.db, None).await, page(&database.db, Some("x")).await);
    store::execute_raw(&database.db, &format!("update pages set entry_count = 500 where id = '{full}'"))
        .await
        .unwrap();
    let roomy = page(&database.db, Some("x")).await;
    for (page, note, why) in [
        (gone, "x".to_owned(), "page_gone"),
        (bare, "x".to_owned(), "no_template"),
        (full, "x".to_owned(), "page_full"),
        (roomy, "x".repeat(17_000), "too_large"),
    ] {
        let form = form(&database.db, |form| form.auto_entry_page_id = Some(page)).await;
        assert_eq!(
            insert(&database.db, &form, json!({"note": note}), &[]).await,
            SubmissionOutcome::Stored(Vec::new()),
            "{why}"
        );
        assert_eq!(submissions(&database.db, &form).await[0].entry_note.as_deref(), Some(why));
        assert_eq!(count(&database.db, &form).await, 1);
    }
}

#[tokio::test]
async fn a_submission_validated_against_an_older_form_is_rejected() {
    let database = database().await;
    let form = form(&database.db, |_| {}).await;
    let mut tx = store::begin(&database.db).await.unwrap();
    let mut edited = lock_form(&mut tx, ACCOUNT, form.id).await.unwrap().unwrap();
    by_email(&mut edited);
    update_form(&mut tx, ACCOUNT, &edited, now()).await.unwrap();
    // It waits for the edit and then sees it.
    let waiting = tokio::spawn({
        let (db, form) = (database.db.clone(), form.clone());
        async move { insert(&db, &form, json!({"email": "a@b.co"}), &[]).await }
    });
    store::commit(tx).await.unwrap();
    assert_eq!(waiting.await.unwrap(), SubmissionOutcome::Changed);
    assert_eq!(
        insert(&database.db, &form, json!({"email": "a@b.co"}), &["too_fast"]).await,
        SubmissionOutcome::Changed
    );
    assert_eq!(count(&database.db, &form).await, 0);
    let mut conn = store::acquire(&database.db).await.unwrap();
    let edited = find_form(&mut conn, ACCOUNT, form.id).await.unwrap().unwrap();
    assert!(edited.updated_at > form.updated_at, "even if the clock does not advance");
    assert!(stored(&insert(&database.db, &edited, json!({"email": "a@b.co"}), &[]).await));
}

#[tokio::test]
async fn the_largest_valid_submission_can_be_stored_and_indexed() {
    let database = database().await;
    let form = form(&database.db, |_| {}).await;
    let words = (0..60_000).map(|number| format!("{number:x}-b")).collect::<Vec<_>>().join("/");
    let letters =
        (0..60_000).map(|number| char::from_u32(0x10000 + number).unwrap_or('x')).collect::<String>();
    for note in [
        words.clone(),
        words.replace('/', " "),
        "x".repeat(250_000),
        letters,
        "\u{1}\u{fffe}\"\\".repeat(30_000),
    ] {
        assert!(stored(&insert(&database.db, &form, json!({"note": note}), &[]).await));
    }
}
