//! Owners are mailed of submissions: whole, to nobody else, and again until it succeeds or is given up.

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
use store::recipients::{NewRecipient, insert_recipient};
use store::submissions::{NewSubmission, SubmissionOutcome, WriteContext, insert_submission};
use uuid::Uuid;

use crate::harness::{Account, Running, new_id, now, seal};
use crate::postbox::Postbox;

impl Account {
    /// A form of which somebody is told who has agreed to it.
    async fn told_form(&self, name: &str) -> Form {
        self.ask("owner@example.com", now()).await;
        self.change("update mail_recipients set has_agreed = true").await;
        self.form_that_tells(name, "owner@example.com").await
    }

    /// Somebody is to be asked whether they want mails.
    async fn ask(&self, address: &str, asked_at: DateTime<Utc>) -> Uuid {
        let link = seal(LINK_PURPOSE, &format!("https://runtime.example/account/mails/{address}"));
        let new = NewRecipient {
            id: new_id(),
            address,
            token_hash: Rng::system().bytes(),
            sealed_link: &link,
            asked_at,
        };
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        insert_recipient(&mut conn, self.id, &new).await.unwrap();
        new.id
    }

    async fn form_that_tells(&self, name: &str, address: &str) -> Form {
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

    async fn submits(&self, form: &Form, payload: Value) -> Uuid {
        let payload: Answers = serde_json::from_value(payload).unwrap();
        let new = NewSubmission { id: new_id(), external_id: None, payload, spam_reasons: Vec::new() };
        let writer = WriteContext { now: now(), traceparent: None, new_id: &new_id };
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let taken = insert_submission(&mut tx, self.id, form, &new, -1, &writer).await.unwrap();
        assert!(matches!(taken, SubmissionOutcome::Stored(_)), "{taken:?}");
        store::commit(tx).await.unwrap();
        new.id
    }

    /// A job-runner that mails through there.
    async fn tells(&self, url: &str, set: &[&str]) -> Running {
        let url = format!("mail.smtp_url={url}");
        let usual = ["mail.from=Web Runtime <us@runtime.example>", "mail.to=operator@runtime.example"];
        let usual = usual.into_iter().chain(["mail.poll_interval=20ms", "outbox.poll_interval=20ms", &url]);
        self.run(&usual.chain(set.iter().copied()).collect::<Vec<_>>()).await
    }

    async fn until_nobody_is_to_be_told(&self) {
        until(async || {
            let left = sqlx::query("select from mails where kind = 'submission'");
            left.fetch_all(&self.database.db).await.unwrap().is_empty()
        })
        .await;
    }
}

fn address(addresses: Option<&mail_parser::Address>) -> Option<String> {
    Some(addresses?.first()?.address()?.to_owned())
}

#[tokio::test]
async fn an_owner_reads_each_answer_and_writes_back_to_whoever_gave_them() {
    let account = Account::new().await;
    let postbox = Postbox::answering([]).await;
    let form = account.told_form("Größe 🙂\r\nBcc: eve@evil.test").await;
    let name = "Ana\r\nBcc: eve@evil.test\r\n.\r\nRCPT TO:<eve@evil.test>";
    let payload = json!({"name": name, "mail": "ana@example.com", "days": ["Mon", "Tue"], "news": true});
    let id = account.submits(&form, payload).await;
    let _running = account.tells(&postbox.url(), &[]).await;
    account.until_nobody_is_to_be_told().await;

    let taken = postbox.taken();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].to, ["owner@example.com"], "and nobody else");
    let mail: Message<'_> = MessageParser::default().parse(&taken[0].data).unwrap();
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
async fn whoever_has_not_agreed_is_asked_once_and_told_nothing() {
    let account = Account::new().await;
    let postbox = Postbox::answering([]).await;
    let id = account.ask("stranger@example.com", now()).await;
    let form = account.form_that_tells("Buy at evil.test", "Stranger@example.com").await;
    account.submits(&form, json!({"name": "Ana"})).await;
    let _running = account.tells(&postbox.url(), &[]).await;
    account.until_nobody_is_to_be_told().await;
    until(async || postbox.taken().len() == 1).await;
    account.submits(&form, json!({"name": "Bea"})).await;
    account.until_nobody_is_to_be_told().await;

    let taken = postbox.taken();
    assert_eq!(taken.len(), 1, "nothing but the question");
    assert_eq!(taken[0].to, ["stranger@example.com"]);
    let mail: Message<'_> = MessageParser::default().parse(&taken[0].data).unwrap();
    assert_eq!(mail.message_id(), Some(format!("{id}@runtime.example").as_str()));
    let text = mail.body_text(0).unwrap();
    assert!(text.contains("https://runtime.example/account/mails/stranger@example.com"), "{text}");
    assert!(!text.contains("evil") && !mail.subject().unwrap().contains("evil"), "no word of the account's");
}

#[tokio::test]
async fn of_a_submission_that_is_spam_by_now_nobody_is_told() {
    let account = Account::new().await;
    let postbox = Postbox::answering([]).await;
    let form = account.told_form("F").await;
    account.submits(&form, json!({"name": "Buy"})).await;
    account.change("update submissions set status = 'spam'").await;
    let _running = account.tells(&postbox.url(), &[]).await;
    account.until_nobody_is_to_be_told().await;
    assert_eq!(postbox.taken().len(), 0);
}

#[tokio::test]
async fn whoever_never_answers_is_forgotten() {
    let account = Account::new().await;
    let old = now() - TimeDelta::days(8);
    for (address, asked_at) in
        [("old@example.com", old), ("agreed@example.com", old), ("new@example.com", now())]
    {
        account.ask(address, asked_at).await;
    }
    account.change("update mail_recipients set has_agreed = true where address like 'agreed%'").await;
    let _running = account.run(&["purge.poll_interval=20ms"]).await;
    until(async || {
        let left = sqlx::query_scalar::<_, String>("select address from mail_recipients order by address");
        left.fetch_all(&account.database.db).await.unwrap() == ["agreed@example.com", "new@example.com"]
    })
    .await;
}

#[tokio::test]
async fn a_server_that_refuses_is_asked_again_and_given_up_in_the_end() {
    let account = Account::new().await;
    let postbox = Postbox::answering([550, 451]).await;
    let form = account.told_form("F").await;
    account.submits(&form, json!({"name": "Ana"})).await;
    let running = account.tells(&postbox.url(), &["mail.retry_schedule=[\"0s\",\"1ms\",\"1ms\"]"]).await;
    account.until_nobody_is_to_be_told().await;
    assert_eq!(postbox.taken().len(), 1);
    let mail = MessageParser::default().parse(&postbox.taken()[0].data).map(|mail| address(mail.reply_to()));
    assert_eq!(mail, Some(None), "who gave no address is not answered");
    running.stop().await;

    let postbox = Postbox::answering([550, 550, 550]).await;
    account.submits(&form, json!({"name": "Ana"})).await;
    let _running = account.tells(&postbox.url(), &["mail.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    account.until_nobody_is_to_be_told().await;
    assert_eq!(postbox.taken().len(), 0);
}

#[tokio::test]
async fn a_mail_waits_for_a_server_and_what_nobody_sends_is_forgotten() {
    let account = Account::new().await;
    let form = account.told_form("F").await;
    let id = account.submits(&form, json!({"name": "Ana"})).await;
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
    assert!(due().await, "it waits for a server");
    running.stop().await;
    let _running = account.run(&["purge.poll_interval=20ms", "mail.ttl=1ms"]).await;
    until(async || !due().await).await;
}

#[tokio::test]
async fn spam_goes_when_it_is_old_and_nothing_else() {
    let account = Account::new().await;
    let form = account.told_form("F").await;
    let old = account.submits(&form, json!({"name": "old spam"})).await;
    let young = account.submits(&form, json!({"name": "young spam"})).await;
    let kept = account.submits(&form, json!({"name": "old"})).await;
    account
        .change(&format!(
            "update submissions set status = 'spam' where id in ('{old}', '{young}');
             update submissions set created_at = now() - interval '31 days' where id in ('{old}', '{kept}')"
        ))
        .await;
    let _running = account.run(&["purge.poll_interval=20ms"]).await;
    let ids = async || {
        let rows = sqlx::query_scalar::<_, Uuid>("select id from submissions order by id");
        rows.fetch_all(&account.database.db).await.unwrap()
    };
    until(async || ids().await == [young, kept]).await;
}

#[tokio::test]
async fn a_job_queued_many_times_is_done_once() {
    let account = Account::new().await;
    let postbox = Postbox::answering([]).await;
    let form = account.told_form("F").await;
    account.submits(&form, json!({"name": "Ana"})).await;
    account
        .change(
            "insert into outbox (kind, body, due_at, created_at)
             select kind, body, due_at, created_at from outbox, generate_series(1, 20) where kind = 'job'",
        )
        .await;
    let (one, other) = (account.tells(&postbox.url(), &[]).await, account.tells(&postbox.url(), &[]).await);
    account.until_nobody_is_to_be_told().await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    until(async || store::outbox::lock_jobs(&mut conn, now(), 100).await.unwrap().is_empty()).await;
    one.stop().await;
    other.stop().await;
    assert_eq!(postbox.taken().len(), 1);
}

#[tokio::test]
async fn a_form_that_is_answered_very_often_fills_no_mailbox_and_says_where_the_rest_is() {
    let account = Account::new().await;
    let postbox = Postbox::answering([]).await;
    let (busy, quiet) =
        (account.told_form("Busy").await, account.form_that_tells("Quiet", "owner@example.com").await);
    for number in 0..5 {
        account.submits(&busy, json!({"name": format!("number {number}")})).await;
    }
    account.submits(&quiet, json!({"name": "Ana"})).await;
    let set = ["mail.max_per_form_and_hour=2", "mail.retry_schedule=[\"0s\",\"1ms\"]"];
    let running = account.tells(&postbox.url(), &set).await;
    account.until_nobody_is_to_be_told().await;
    let read_all = |taken: Vec<crate::postbox::Mail>| -> Vec<String> {
        let read = |mail: &crate::postbox::Mail| {
            let mail = MessageParser::default().parse(&mail.data).unwrap();
            format!("{} {}", mail.subject().unwrap(), mail.body_text(0).unwrap())
        };
        taken.iter().map(read).collect()
    };
    let more = format!("GET /api/forms/{}/submissions", busy.id);
    let sent = read_all(postbox.taken());
    let of_busy: Vec<_> = sent.iter().filter(|text| text.contains("Busy")).collect();
    assert_eq!((sent.len(), of_busy.len()), (3, 2), "{sent:#?}");
    assert_eq!(sent.iter().filter(|text| text.contains(&more)).count(), 1, "{sent:#?}");
    running.stop().await;

    // An hour later it is told again, and what was the last is known when it has to be sent twice.
    account.change("update form_mails set since = since - interval '61 minutes'").await;
    let postbox = Postbox::answering([451]).await;
    for _ in 0..3 {
        account.submits(&busy, json!({"name": "later"})).await;
    }
    let set = ["mail.max_per_form_and_hour=1", set[1]];
    let _running = account.tells(&postbox.url(), &set).await;
    account.until_nobody_is_to_be_told().await;
    let taken = postbox.taken();
    assert_eq!(taken.len(), 1);
    let mail = MessageParser::default().parse(&taken[0].data).unwrap();
    assert!(mail.body_text(0).unwrap().contains(&more));
}

#[tokio::test]
async fn killed_between_lease_count_and_end_a_form_causes_no_more_mails_and_none_that_had_its_place_is_lost()
{
    let account = Account::new().await;
    let form = account.told_form("Busy").await;
    let most = MailQuota { mails: 3, since: now() - TimeDelta::hours(1), now: now() };
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let mut placed = Vec::new();
    for number in 0..8 {
        let id = account.submits(&form, json!({"name": format!("number {number}")})).await;
        // What a runner has done that is killed here: leased it, or counted it as well.
        mails::lease(&mut conn, Kind::Submission, id, now(), now()).await.unwrap().unwrap();
        if number % 2 == 1 {
            let place = reserve_mail(&mut conn, account.id, form.id, id, &most).await.unwrap();
            assert_eq!(place == QuotaPosition::Exceeded, placed.len() == 3);
            assert_eq!(reserve_mail(&mut conn, account.id, form.id, id, &most).await.unwrap(), place);
            placed.extend((place != QuotaPosition::Exceeded).then(|| format!("{id}@runtime.example")));
        }
    }
    let postbox = Postbox::answering([]).await;
    let _running = account.tells(&postbox.url(), &["mail.max_per_form_and_hour=3"]).await;
    account.until_nobody_is_to_be_told().await;
    let taken = postbox.taken();
    let read = |mail: &crate::postbox::Mail| {
        let mail = MessageParser::default().parse(&mail.data).unwrap();
        (
            mail.message_id().unwrap().to_owned(),
            mail.body_text(0).unwrap().contains("receives many submissions"),
        )
    };
    let mut sent: Vec<_> = taken.iter().map(read).collect();
    sent.sort_unstable();
    let says_more = |id: &String| id == placed.last().unwrap();
    let mut wanted: Vec<_> = placed.iter().map(|id| (id.clone(), says_more(id))).collect();
    wanted.sort_unstable();
    assert_eq!(sent, wanted, "those that had a place, and the last of them says that more come");
}
