//! Requests for help reach the operator's mailbox: whole, whatever stands in them, and whatever fails on the way.

use chrono::{DateTime, TimeDelta, Utc};
use mail_parser::{Message, MessageParser};
use sandbox::test::{eventually, until};
use sqlx::Row;
use store::help::NewHelpRequest;
use store::mails::{self, Kind};
use uuid::Uuid;

use crate::harness::{Account, Running, new_id, now};
use crate::postbox::{Mail, Postbox, url_at};

impl Mail {
    fn read(&self) -> Message<'_> {
        MessageParser::default().parse(&self.data).unwrap()
    }
}

impl Account {
    async fn asks(&self, subject: &str, message: &str, email: Option<&str>) -> Uuid {
        let help = NewHelpRequest {
            id: new_id(),
            category: "Bug report",
            subject: subject.to_owned(),
            message: message.to_owned(),
            email: email.map(str::to_owned),
            url: Some("https://site.example/about".to_owned()),
            severity: Some("High"),
            created_at: now(),
        };
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::help::insert_help_request(&mut conn, self.id, &help).await.unwrap();
        help.id
    }

    /// A job-runner that mails through there.
    async fn mails(&self, url: &str, set: &[&str]) -> Running {
        let url = format!("mail.smtp_url={url}");
        let usual = ["mail.from=Web Runtime <us@runtime.example>", "mail.to=operator@runtime.example"];
        let usual = usual.into_iter().chain(["mail.poll_interval=20ms", &url]);
        self.run(&usual.chain(set.iter().copied()).collect::<Vec<_>>()).await
    }

    /// Attempts to mail a request so far, and when the next is due; none once it is done.
    async fn attempts(&self, help: Uuid) -> Option<(i32, DateTime<Utc>)> {
        let row = sqlx::query("select attempts, due_at from mails where kind = 'help' and about = $1");
        let row = row.bind(help).fetch_optional(&self.database.db).await.unwrap()?;
        Some((row.get(0), row.get(1)))
    }

    async fn until_done(&self, help: Uuid) {
        until(async || self.attempts(help).await.is_none()).await;
    }
}

#[tokio::test]
async fn what_somebody_writes_is_mailed_and_an_answer_goes_to_them() {
    let account = Account::new().await;
    let postbox = Postbox::answering([]).await;
    let message = "Größe: 5\u{a0}µm — 日本語 🙂\nالعربية\n";
    let help = account.asks("Schöne Grüße 🙂", message, Some("o'hara@example.com")).await;
    let _running = account.mails(&postbox.url(), &[]).await;
    account.until_done(help).await;

    let taken = postbox.taken();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].from, "us@runtime.example");
    assert_eq!(taken[0].to, ["operator@runtime.example"]);
    assert!(taken[0].data.is_ascii(), "any server takes it");
    let mail = taken[0].read();
    let address = |addresses: Option<&mail_parser::Address>| {
        addresses.unwrap().first().unwrap().address().unwrap().to_owned()
    };
    assert_eq!(mail.subject(), Some("[Bug report] Schöne Grüße 🙂"));
    assert_eq!(mail.message_id(), Some(format!("{help}@runtime.example").as_str()));
    assert_eq!((address(mail.reply_to()).as_str(), mail.date().is_some()), ("o'hara@example.com", true));
    assert_eq!(mail.from().unwrap().first().unwrap().name(), Some("Web Runtime"));
    let text = format!(
        "Category: Bug report\nSeverity: High\nAccount:  {}\nPage:     https://site.example/about\n\
         Reply to: o'hara@example.com\nRequest:  {help}\n\n{message}",
        account.id
    );
    assert_eq!(mail.body_text(0).unwrap().replace("\r\n", "\n").trim_end(), text.trim_end());
}

#[tokio::test]
async fn no_text_of_a_request_becomes_a_header_a_recipient_or_a_command() {
    let account = Account::new().await;
    let postbox = Postbox::answering([]).await;
    let subject = "a\r\nBcc: eve@evil.test\r\n\r\nfor you: \u{1b}]0;";
    let message = "one\n.\nMAIL FROM:<eve@evil.test>\r\n.\r\nRCPT TO:<eve@evil.test>\r\n..two";
    let help = account.asks(subject, message, Some("eve@evil.test>\r\nBcc: <eve@evil.test")).await;
    let _running = account.mails(&postbox.url(), &[]).await;
    account.until_done(help).await;

    let taken = postbox.taken();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].to, ["operator@runtime.example"]);
    let mail = taken[0].read();
    let mut headers: Vec<_> = mail.headers().iter().map(|header| header.name().to_lowercase()).collect();
    headers.sort();
    let expected = ["content-transfer-encoding", "content-type", "date", "from", "message-id"];
    let expected = expected.into_iter().chain(["mime-version", "subject", "to"]).collect::<Vec<_>>();
    assert_eq!(headers, expected, "what is no address is not answered to");
    let text = mail.body_text(0).unwrap().replace("\r\n", "\n");
    assert!(text.contains(&message.replace("\r\n", "\n")), "{text}");
}

#[tokio::test]
async fn a_server_that_refuses_is_asked_again() {
    let account = Account::new().await;
    let postbox = Postbox::answering([550, 451]).await;
    let help = account.asks("s", "m", None).await;
    let _running = account.mails(&postbox.url(), &["mail.retry_schedule=[\"0s\",\"1ms\",\"1ms\"]"]).await;
    account.until_done(help).await;
    assert_eq!(postbox.taken().len(), 1);
}

#[tokio::test]
async fn a_refusal_is_followed_by_the_pause_that_is_set() {
    let account = Account::new().await;
    let postbox = Postbox::answering([550]).await;
    let help = account.asks("s", "m", None).await;
    let began = now();
    // While an attempt is made it is leased for 16 seconds; the default's second pause is a minute.
    let _running = account.mails(&postbox.url(), &["mail.timeout=1s"]).await;
    let due = eventually(async || {
        let (attempts, due) = account.attempts(help).await?;
        (attempts == 1 && due > began + TimeDelta::seconds(40)).then_some(due)
    })
    .await;
    assert!(due < now() + TimeDelta::seconds(75), "{due}");
    assert!(postbox.taken().is_empty());
}

#[tokio::test]
async fn when_the_schedule_is_used_up_a_request_is_given_up() {
    let account = Account::new().await;
    let postbox = Postbox::answering([550, 550]).await;
    let help = account.asks("s", "m", None).await;
    let _running = account.mails(&postbox.url(), &["mail.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    account.until_done(help).await;
    assert!(postbox.taken().is_empty());
}

#[tokio::test]
async fn a_request_waits_for_a_server_that_is_away_or_silent() {
    let account = Account::new().await;
    let reserved = sandbox::port::reserve().unwrap();
    let help = account.asks("s", "m", None).await;
    let schedule = format!("mail.retry_schedule=[{}\"1ms\"]", "\"1ms\",".repeat(100_000));
    let _running = account.mails(&url_at(reserved.port), &["mail.timeout=200ms", &schedule]).await;
    let tried = async |least: i32| {
        until(async || account.attempts(help).await.unwrap().0 >= least).await;
    };
    tried(2).await;
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", reserved.port)).await.unwrap();
    let (held, _) = silent.accept().await.unwrap();
    tried(account.attempts(help).await.unwrap().0 + 1).await;
    drop((silent, held));
    let postbox = Postbox::at(reserved.port, []).await;
    account.until_done(help).await;
    assert_eq!(postbox.taken().len(), 1);
}

#[tokio::test]
async fn an_attempt_whose_runner_was_killed_is_made_again_after_its_lease() {
    let account = Account::new().await;
    let postbox = Postbox::answering([]).await;
    let help = account.asks("s", "m", None).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let lease_ends = now() + TimeDelta::seconds(1);
    let killed = mails::lease(&mut conn, Kind::Help, help, now(), lease_ends).await.unwrap().unwrap();
    let _running = account.mails(&postbox.url(), &[]).await;
    account.until_done(help).await;
    assert_eq!(killed.attempt, 1);
    assert!(now() >= lease_ends, "not before nobody else can be at it");
    assert_eq!(postbox.taken().len(), 1);
}

#[tokio::test]
async fn an_attempt_that_was_overtaken_decides_nothing() {
    let account = Account::new().await;
    let help = account.asks("s", "m", None).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    for attempt in [1, 2] {
        let leased = mails::lease(&mut conn, Kind::Help, help, now(), now()).await.unwrap().unwrap();
        assert_eq!(leased.attempt, attempt);
    }
    mails::finish(&mut conn, Kind::Help, help, 1, None).await.unwrap();
    assert!(account.attempts(help).await.is_some());
    mails::finish(&mut conn, Kind::Help, help, 2, None).await.unwrap();
    assert_eq!(account.attempts(help).await, None);
    assert!(mails::lease(&mut conn, Kind::Help, help, now(), now()).await.unwrap().is_none());
}

#[tokio::test]
async fn many_requests_are_mailed_once_each_by_several_runners() {
    let account = Account::new().await;
    let postbox = Postbox::answering([]).await;
    let mut asked = Vec::new();
    for number in 0..30 {
        asked.push(account.asks(&format!("number {number}"), "m", None).await);
    }
    let set = ["mail.batch_size=7"];
    let (one, other) = (account.mails(&postbox.url(), &set).await, account.mails(&postbox.url(), &set).await);
    for help in asked {
        account.until_done(help).await;
    }
    one.stop().await;
    other.stop().await;
    assert_eq!(postbox.taken().len(), 30);
}

#[tokio::test]
async fn without_a_server_requests_wait_until_there_is_one() {
    let account = Account::new().await;
    let help = account.asks("s", "m", None).await;
    let running = account.run(&["mail.poll_interval=20ms"]).await;
    // Other work is done meanwhile.
    let receiver = crate::receiver::Receiver::answering([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    running.stop().await;
    assert_eq!(account.attempts(help).await.map(|(attempts, _)| attempts), Some(0));

    let postbox = Postbox::answering([]).await;
    let _running = account.mails(&postbox.url(), &[]).await;
    account.until_done(help).await;
    assert_eq!(postbox.taken().len(), 1);
}

#[tokio::test]
async fn what_must_be_encrypted_is_not_sent_in_the_clear() {
    let account = Account::new().await;
    let postbox = Postbox::answering([]).await;
    let help = account.asks("s", "m", None).await;
    let url = format!("{}?tls=required", postbox.url());
    let _running = account.mails(&url, &["mail.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    account.until_done(help).await;
    assert!(postbox.taken().is_empty() && postbox.sign_ins() == 0);
}

#[tokio::test]
async fn settings_that_can_not_be_used_are_refused_by_name_and_passwords_not_repeated() {
    let account = Account::new().await;
    for (set, name) in [
        ("mail.smtp_url=http://us:hush@mail.example", "mail.smtp_url"),
        ("mail.from=", "mail.from"),
        ("mail.to=not an address", "mail.to"),
        ("mail.retry_schedule=[]", "mail.retry_schedule"),
    ] {
        let error = account.mails("smtp://us:hush@mail.example", &[set]).await.end().await.unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(name) && !error.contains("hush"), "{set}: {error}");
    }
}
