//! Form owners are notified of submissions by email: complete, to the owner only, and retried until sent or given up.

use chrono::{DateTime, TimeDelta, Utc};
use domain::answers::Answers;
use domain::recipients::LINK_PURPOSE;
use mail_parser::{Message, MessageParser};
use sandbox::test::{eventually, until};
use serde_json::{Value, json};
use service::Rng;
use store::forms::Form;
use store::mails::{self, Kind};
use store::notifications::{MailQuota, QuotaPosition, reserve_mail};
use store::recipients::{self, NewRecipient};
use store::submissions::{NewSubmission, SubmissionOutcome, WriteContext, insert_submission};
use uuid::Uuid;

use crate::fixture::account::{Account, new_id, now, seal};
use crate::fixture::metrics::metric;
use crate::fixture::smtp_server::SmtpServer;

impl Account {
    /// Creates a form that notifies a recipient, who has agreed.
    async fn notified_form(&self, name: &str) -> Form {
        self.insert_recipient("owner@example.com", now()).await;
        self.change("update mail_recipients set has_agreed = true").await;
        self.form_with_recipient(name, "owner@example.com").await
    }

    /// Inserts a recipient who must be asked for agreement.
    async fn insert_recipient(&self, address: &str, asked_at: DateTime<Utc>) -> Uuid {
        let link = seal(LINK_PURPOSE, &format!("https://runtime.example/account/mails/{address}"));
        let new = NewRecipient {
            id: new_id(),
            address,
            token_hash: Rng::system().bytes(),
            sealed_link: &link,
            asked_at,
        };
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        recipients::insert_recipient(&mut conn, self.id, &new).await.unwrap();
        new.id
    }

    async fn form_with_recipient(&self, name: &str, address: &str) -> Form {
        let fields = json!([
            {"name": "name", "label": "Your name", "type": "text"},
            {"name": "mail", "label": "Your e-mail", "type": "email"},
            {"name": "days", "label": "Days", "type": "multiselect", "options": ["Mon", "Tue"]},
            {"name": "news", "label": "News?", "type": "checkbox"},
        ]);
        let mut form = Form::new(new_id(), name.to_owned(), serde_json::from_value(fields).unwrap(), now());
        form.notify_email = Some(address.to_owned());
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::forms::insert_form(&mut conn, self.id, &form).await.unwrap();
        store::forms::find_form(&mut conn, self.id, form.id).await.unwrap().unwrap()
    }

    async fn submit_answers(&self, form: &Form, payload: Value) -> Uuid {
        let payload: Answers = serde_json::from_value(payload).unwrap();
        let extra = serde_json::Map::new();
        let new = NewSubmission { id: new_id(), external_id: None, payload, extra, spam_reasons: Vec::new() };
        let writer = WriteContext { now: now(), traceparent: None, depth: 0, new_id: &new_id };
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let outcome = insert_submission(&mut tx, self.id, form, &new, -1, &writer).await.unwrap();
        assert!(matches!(outcome, SubmissionOutcome::Stored(_)), "{outcome:?}");
        store::commit(tx).await.unwrap();
        new.id
    }

    /// The result and the number of attempts of a submission's mail, as its owner sees them.
    async fn mail_of(&self, submission: Uuid) -> Option<(String, i32)> {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let mail = store::submissions::find_mail(&mut conn, self.id, submission).await.unwrap();
        mail.map(|mail| (mail.status, mail.attempts))
    }

    async fn until_no_notification_is_due(&self) {
        until(async || {
            let remaining = sqlx::query("select from mails where kind = 'submission'");
            remaining.fetch_all(&self.database.db).await.unwrap().is_empty()
        })
        .await;
    }
}

fn address(addresses: Option<&mail_parser::Address>) -> Option<String> {
    Some(addresses?.first()?.address()?.to_owned())
}

#[tokio::test]
async fn an_email_contains_each_answer_and_replies_go_to_the_submitter() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([]).await;
    let form = account.notified_form("Größe 🙂\r\nBcc: eve@evil.test").await;
    let name = "Ana\r\nBcc: eve@evil.test\r\n.\r\nRCPT TO:<eve@evil.test>";
    let payload = json!({"name": name, "mail": "ana@example.com", "days": ["Mon", "Tue"], "news": true});
    let id = account.submit_answers(&form, payload).await;
    let _running = account.run_with_smtp(&smtp.url(), &[]).await;
    account.until_no_notification_is_due().await;

    let received = smtp.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].to, ["owner@example.com"], "the owner only");
    let mail: Message<'_> = MessageParser::default().parse(&received[0].data).unwrap();
    assert_eq!(address(mail.reply_to()).as_deref(), Some("ana@example.com"));
    assert_eq!(mail.message_id(), Some(format!("{id}@runtime.example").as_str()));
    assert!(mail.subject().unwrap().starts_with("New submission: Größe 🙂"), "{:?}", mail.subject());
    assert!(mail.header("Bcc").is_none());
    let text = mail.body_text(0).unwrap().replace("\r\n", "\n");
    let name = name.replace("\r\n", "\n");
    let expected =
        format!("Your name\n{name}\n\nYour e-mail\nana@example.com\n\nDays\nMon; Tue\n\nNews?\nyes\n\n--\n");
    assert!(text.starts_with(&expected), "{text}");
    let unsubscribe = "Unsubscribe: https://runtime.example/account/mails/owner@example.com";
    assert!(text.contains(unsubscribe), "{text}");
}

#[tokio::test]
async fn a_recipient_who_has_not_agreed_is_asked_once_and_gets_no_notification() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([]).await;
    let id = account.insert_recipient("stranger@example.com", now()).await;
    let form = account.form_with_recipient("Buy at evil.test", "Stranger@example.com").await;
    account.submit_answers(&form, json!({"name": "Ana"})).await;
    let _running = account.run_with_smtp(&smtp.url(), &[]).await;
    account.until_no_notification_is_due().await;
    until(async || smtp.received().len() == 1).await;
    account.submit_answers(&form, json!({"name": "Bea"})).await;
    account.until_no_notification_is_due().await;

    let received = smtp.received();
    assert_eq!(received.len(), 1, "only the question");
    assert_eq!(received[0].to, ["stranger@example.com"]);
    let mail: Message<'_> = MessageParser::default().parse(&received[0].data).unwrap();
    assert_eq!(mail.message_id(), Some(format!("{id}@runtime.example").as_str()));
    let text = mail.body_text(0).unwrap();
    assert!(text.contains("https://runtime.example/account/mails/stranger@example.com"), "{text}");
    assert!(!text.contains("evil") && !mail.subject().unwrap().contains("evil"), "no text of the account");
}

#[tokio::test]
async fn a_submission_that_became_spam_causes_no_notification() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([]).await;
    let form = account.notified_form("F").await;
    let submission = account.submit_answers(&form, json!({"name": "Buy"})).await;
    assert_eq!(account.mail_of(submission).await, Some(("queued".to_owned(), 0)));
    account.change("update submissions set status = 'spam'").await;
    let _running = account.run_with_smtp(&smtp.url(), &[]).await;
    account.until_no_notification_is_due().await;
    assert_eq!(smtp.received().len(), 0);
    assert_eq!(account.mail_of(submission).await, Some(("skipped".to_owned(), 1)));
}

#[tokio::test]
async fn a_recipient_who_never_answers_is_deleted() {
    let account = Account::new().await;
    let old = now() - TimeDelta::days(8);
    for (address, asked_at) in
        [("old@example.com", old), ("agreed@example.com", old), ("new@example.com", now())]
    {
        account.insert_recipient(address, asked_at).await;
    }
    account.change("update mail_recipients set has_agreed = true where address like 'agreed%'").await;
    let _running = account.run(&["purge.poll_interval=20ms"]).await;
    until(async || {
        let remaining =
            sqlx::query_scalar::<_, String>("select address from mail_recipients order by address");
        remaining.fetch_all(&account.database.db).await.unwrap() == ["agreed@example.com", "new@example.com"]
    })
    .await;
}

#[tokio::test]
async fn a_refused_email_is_retried_and_finally_given_up() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([550, 451]).await;
    let form = account.notified_form("F").await;
    account.submit_answers(&form, json!({"name": "Ana"})).await;
    let running = account.run_with_smtp(&smtp.url(), &["mail.retry_schedule=[\"0s\",\"1ms\",\"1ms\"]"]).await;
    account.until_no_notification_is_due().await;
    assert_eq!(smtp.received().len(), 1);
    let mail = MessageParser::default().parse(&smtp.received()[0].data).map(|mail| address(mail.reply_to()));
    assert_eq!(mail, Some(None), "without a submitter's address there is no reply-to");
    running.stop().await;

    let smtp = SmtpServer::responding([550, 550, 550]).await;
    account.submit_answers(&form, json!({"name": "Ana"})).await;
    let _running = account.run_with_smtp(&smtp.url(), &["mail.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    account.until_no_notification_is_due().await;
    assert_eq!(smtp.received().len(), 0);
}

#[tokio::test]
async fn an_email_waits_for_a_server_and_expires_without_one() {
    let account = Account::new().await;
    let form = account.notified_form("F").await;
    let id = account.submit_answers(&form, json!({"name": "Ana"})).await;
    let due = async || {
        let row = sqlx::query("select from mails where about = $1").bind(id);
        row.fetch_optional(&account.database.db).await.unwrap().is_some()
    };
    let running = account.run(&["outbox.poll_interval=20ms", "purge.poll_interval=20ms"]).await;
    eventually(async || {
        let row = sqlx::query("select from outbox where kind = 'job'").fetch_optional(&account.database.db);
        row.await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(due().await, "the email waits for a server");
    running.stop().await;
    let _running = account.run(&["purge.poll_interval=20ms", "mail.ttl=1ms"]).await;
    until(async || !due().await).await;
}

#[tokio::test]
async fn only_old_spam_is_deleted() {
    let account = Account::new().await;
    let form = account.notified_form("F").await;
    let old = account.submit_answers(&form, json!({"name": "old spam"})).await;
    let young = account.submit_answers(&form, json!({"name": "young spam"})).await;
    let old_submission = account.submit_answers(&form, json!({"name": "old"})).await;
    account
        .change(&format!(
            "update submissions set status = 'spam' where id in ('{old}', '{young}');
             update submissions set created_at = now() - interval '31 days' where id in ('{old}', '{old_submission}')"
        ))
        .await;
    let _running = account.run(&["purge.poll_interval=20ms"]).await;
    let ids = async || {
        let rows = sqlx::query_scalar::<_, Uuid>("select id from submissions order by id");
        rows.fetch_all(&account.database.db).await.unwrap()
    };
    until(async || ids().await == [young, old_submission]).await;
}

#[tokio::test]
async fn a_job_queued_many_times_sends_one_email() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([]).await;
    let form = account.notified_form("F").await;
    account.submit_answers(&form, json!({"name": "Ana"})).await;
    account
        .change(
            "insert into outbox (kind, body, due_at, created_at)
             select kind, body, due_at, created_at from outbox, generate_series(1, 20) where kind = 'job'",
        )
        .await;
    let (one, other) =
        (account.run_with_smtp(&smtp.url(), &[]).await, account.run_with_smtp(&smtp.url(), &[]).await);
    account.until_no_notification_is_due().await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    until(async || store::outbox::lock_jobs(&mut conn, now(), 100).await.unwrap().is_empty()).await;
    one.stop().await;
    other.stop().await;
    assert_eq!(smtp.received().len(), 1);
    assert!(metric("job_runner_job_seconds_count{kind=\"notification\",result=\"ok\"}") >= 1.0);
}

#[tokio::test]
async fn notifications_of_a_busy_form_are_limited_and_link_to_its_submissions() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([]).await;
    let (busy, quiet) = (
        account.notified_form("Busy").await,
        account.form_with_recipient("Quiet", "owner@example.com").await,
    );
    for number in 0..5 {
        account.submit_answers(&busy, json!({"name": format!("number {number}")})).await;
    }
    account.submit_answers(&quiet, json!({"name": "Ana"})).await;
    let set = ["mail.max_per_form_and_hour=2", "mail.retry_schedule=[\"0s\",\"1ms\"]"];
    let running = account.run_with_smtp(&smtp.url(), &set).await;
    account.until_no_notification_is_due().await;
    let read_all = |received: Vec<crate::fixture::smtp_server::Mail>| -> Vec<String> {
        let read = |mail: &crate::fixture::smtp_server::Mail| {
            let mail = MessageParser::default().parse(&mail.data).unwrap();
            format!("{} {}", mail.subject().unwrap(), mail.body_text(0).unwrap())
        };
        received.iter().map(read).collect()
    };
    let more = format!("GET /api/forms/{}/submissions", busy.id);
    let sent = read_all(smtp.received());
    let of_busy: Vec<_> = sent.iter().filter(|text| text.contains("Busy")).collect();
    assert_eq!((sent.len(), of_busy.len()), (3, 2), "{sent:#?}");
    assert_eq!(sent.iter().filter(|text| text.contains(&more)).count(), 1, "{sent:#?}");
    running.stop().await;

    // An hour later emails are sent again, and a retried email is still the last one within the limit.
    account.change("update form_mails set since = since - interval '61 minutes'").await;
    let smtp = SmtpServer::responding([451]).await;
    for _ in 0..3 {
        account.submit_answers(&busy, json!({"name": "later"})).await;
    }
    let set = ["mail.max_per_form_and_hour=1", set[1]];
    let _running = account.run_with_smtp(&smtp.url(), &set).await;
    account.until_no_notification_is_due().await;
    let received = smtp.received();
    assert_eq!(received.len(), 1);
    let mail = MessageParser::default().parse(&received[0].data).unwrap();
    assert!(mail.body_text(0).unwrap().contains(&more));
}

#[tokio::test]
async fn kills_between_lease_count_and_result_neither_exceed_the_limit_nor_lose_an_email() {
    let account = Account::new().await;
    let form = account.notified_form("Busy").await;
    let quota = MailQuota { mails: 3, since: now() - TimeDelta::hours(1), now: now() };
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let mut counted = Vec::new();
    for number in 0..8 {
        let id = account.submit_answers(&form, json!({"name": format!("number {number}")})).await;
        // The state after a kill: the email is leased, or leased and counted.
        mails::lease(&mut conn, Kind::Submission, id, now(), now()).await.unwrap().unwrap();
        if number % 2 == 1 {
            let position = reserve_mail(&mut conn, account.id, form.id, id, &quota).await.unwrap();
            assert_eq!(position == QuotaPosition::Exceeded, counted.len() == 3);
            assert_eq!(reserve_mail(&mut conn, account.id, form.id, id, &quota).await.unwrap(), position);
            counted.extend((position != QuotaPosition::Exceeded).then(|| format!("{id}@runtime.example")));
        }
    }
    let smtp = SmtpServer::responding([]).await;
    let _running = account.run_with_smtp(&smtp.url(), &["mail.max_per_form_and_hour=3"]).await;
    account.until_no_notification_is_due().await;
    let received = smtp.received();
    let read = |mail: &crate::fixture::smtp_server::Mail| {
        let mail = MessageParser::default().parse(&mail.data).unwrap();
        (
            mail.message_id().unwrap().to_owned(),
            mail.body_text(0).unwrap().contains("receives many submissions"),
        )
    };
    let mut sent: Vec<_> = received.iter().map(read).collect();
    sent.sort_unstable();
    let is_last = |id: &String| id == counted.last().unwrap();
    let mut expected: Vec<_> = counted.iter().map(|id| (id.clone(), is_last(id))).collect();
    expected.sort_unstable();
    assert_eq!(sent, expected, "the counted emails, and the last one says that more follow");
}
