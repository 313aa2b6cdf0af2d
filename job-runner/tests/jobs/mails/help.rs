//! Requests for help reach the operator's mailbox unchanged, whatever they contain and whatever fails.

use chrono::{DateTime, TimeDelta, Utc};
use mail_parser::{Message, MessageParser};
use sandbox::test::{eventually, until};
use sqlx::Row;
use store::help::NewHelpRequest;
use store::mails::{self, Kind, MailResult};
use uuid::Uuid;

use crate::fixture::account::{Account, new_id, now};
use crate::fixture::smtp_server::{Mail, SmtpServer, url_at};

impl Mail {
    fn read(&self) -> Message<'_> {
        MessageParser::default().parse(&self.data).unwrap()
    }
}

impl Account {
    async fn request_help(&self, subject: &str, message: &str, email: Option<&str>) -> Uuid {
        let help = NewHelpRequest {
            id: new_id(),
            category: "Bug report",
            subject: subject.to_owned(),
            message: message.to_owned(),
            email: email.map(str::to_owned),
            url: Some("https://site.example/about".to_owned()),
            severity: Some("High"),
            mailed: true,
            created_at: now(),
        };
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::help::insert_help_request(&mut conn, self.id, &help).await.unwrap();
        help.id
    }

    /// Returns the number of attempts and the time of the next one; `None` once the request is sent or given up.
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
async fn a_request_is_emailed_unchanged_with_a_reply_address() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([]).await;
    let message = "Größe: 5\u{a0}µm — 日本語 🙂\nالعربية\n";
    let help = account.request_help("Schöne Grüße 🙂", message, Some("o'hara@example.com")).await;
    let _running = account.run_with_smtp(&smtp.url(), &[]).await;
    account.until_done(help).await;

    let received = smtp.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].from, "us@runtime.example");
    assert_eq!(received[0].to, ["operator@runtime.example"]);
    assert!(received[0].data.is_ascii(), "every server accepts ASCII");
    let mail = received[0].read();
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
    let smtp = SmtpServer::responding([]).await;
    let subject = "a\r\nBcc: eve@evil.test\r\n\r\nfor you: \u{1b}]0;";
    let message = "one\n.\nMAIL FROM:<eve@evil.test>\r\n.\r\nRCPT TO:<eve@evil.test>\r\n..two";
    let help = account.request_help(subject, message, Some("eve@evil.test>\r\nBcc: <eve@evil.test")).await;
    let _running = account.run_with_smtp(&smtp.url(), &[]).await;
    account.until_done(help).await;

    let received = smtp.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].to, ["operator@runtime.example"]);
    let mail = received[0].read();
    let mut headers: Vec<_> = mail.headers().iter().map(|header| header.name().to_lowercase()).collect();
    headers.sort();
    let expected = ["content-transfer-encoding", "content-type", "date", "from", "message-id"];
    let expected = expected.into_iter().chain(["mime-version", "subject", "to"]).collect::<Vec<_>>();
    assert_eq!(headers, expected, "an invalid address causes no reply-to header");
    let text = mail.body_text(0).unwrap().replace("\r\n", "\n");
    assert!(text.contains(&message.replace("\r\n", "\n")), "{text}");
}

#[tokio::test]
async fn a_refused_email_is_retried() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([550, 451]).await;
    let help = account.request_help("s", "m", None).await;
    let _running =
        account.run_with_smtp(&smtp.url(), &["mail.retry_schedule=[\"0s\",\"1ms\",\"1ms\"]"]).await;
    account.until_done(help).await;
    assert_eq!(smtp.received().len(), 1);
}

#[tokio::test]
async fn a_refused_email_is_retried_after_the_configured_delay() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([550]).await;
    let help = account.request_help("s", "m", None).await;
    let started = now();
    // An attempt is leased for 16 seconds; the second delay of the default schedule is one minute.
    let _running = account.run_with_smtp(&smtp.url(), &["mail.timeout=1s"]).await;
    let due = eventually(async || {
        let (attempts, due) = account.attempts(help).await?;
        (attempts == 1 && due > started + TimeDelta::seconds(40)).then_some(due)
    })
    .await;
    assert!(due < now() + TimeDelta::seconds(75), "{due}");
    assert!(smtp.received().is_empty());
}

#[tokio::test]
async fn a_request_is_given_up_when_its_schedule_is_exhausted() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([550, 550]).await;
    let help = account.request_help("s", "m", None).await;
    let _running = account.run_with_smtp(&smtp.url(), &["mail.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    account.until_done(help).await;
    assert!(smtp.received().is_empty());
}

#[tokio::test]
async fn a_request_waits_for_an_unavailable_or_unresponsive_server() {
    let account = Account::new().await;
    let reserved = sandbox::port::reserve().unwrap();
    let help = account.request_help("s", "m", None).await;
    let schedule = format!("mail.retry_schedule=[{}\"1ms\"]", "\"1ms\",".repeat(100_000));
    let _running = account.run_with_smtp(&url_at(reserved.port), &["mail.timeout=2s", &schedule]).await;
    let until_attempts = async |min: i32| {
        until(async || account.attempts(help).await.unwrap().0 >= min).await;
    };
    until_attempts(2).await;
    let unresponsive = tokio::net::TcpListener::bind(("127.0.0.1", reserved.port)).await.unwrap();
    let (connection, _) = unresponsive.accept().await.unwrap();
    until_attempts(account.attempts(help).await.unwrap().0 + 1).await;
    drop((unresponsive, connection));
    let smtp = SmtpServer::at(reserved.port, []).await;
    account.until_done(help).await;
    assert_eq!(smtp.received().len(), 1);
}

#[tokio::test]
async fn the_attempt_of_a_killed_job_runner_is_repeated_after_its_lease() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([]).await;
    let help = account.request_help("s", "m", None).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let lease_ends = now() + TimeDelta::seconds(1);
    let killed = mails::lease(&mut conn, Kind::Help, help, now(), lease_ends).await.unwrap().unwrap();
    let _running = account.run_with_smtp(&smtp.url(), &[]).await;
    account.until_done(help).await;
    assert_eq!(killed.attempt, 1);
    assert!(now() >= lease_ends, "not before the lease expires");
    assert_eq!(smtp.received().len(), 1);
}

#[tokio::test]
async fn the_result_of_an_outdated_attempt_is_ignored() {
    let account = Account::new().await;
    let help = account.request_help("s", "m", None).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    for attempt in [1, 2] {
        let leased = mails::lease(&mut conn, Kind::Help, help, now(), now()).await.unwrap().unwrap();
        assert_eq!(leased.attempt, attempt);
    }
    mails::finish(&mut conn, Kind::Help, help, 1, MailResult::Sent, now()).await.unwrap();
    assert!(account.attempts(help).await.is_some());
    mails::finish(&mut conn, Kind::Help, help, 2, MailResult::Sent, now()).await.unwrap();
    assert_eq!(account.attempts(help).await, None);
    assert!(mails::lease(&mut conn, Kind::Help, help, now(), now()).await.unwrap().is_none());
}

#[tokio::test]
async fn several_job_runners_email_each_of_many_requests_once() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([]).await;
    let mut requests = Vec::new();
    for number in 0..30 {
        requests.push(account.request_help(&format!("number {number}"), "m", None).await);
    }
    let set = ["mail.batch_size=7"];
    let (one, other) =
        (account.run_with_smtp(&smtp.url(), &set).await, account.run_with_smtp(&smtp.url(), &set).await);
    for help in requests {
        account.until_done(help).await;
    }
    one.stop().await;
    other.stop().await;
    assert_eq!(smtp.received().len(), 30);
}

#[tokio::test]
async fn requests_wait_until_a_server_is_configured() {
    let account = Account::new().await;
    let help = account.request_help("s", "m", None).await;
    let running = account.run(&["mail.poll_interval=20ms"]).await;
    // Other work is done meanwhile.
    let receiver = crate::fixture::receiver::Receiver::responding([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    running.stop().await;
    assert_eq!(account.attempts(help).await.map(|(attempts, _)| attempts), Some(0));

    let smtp = SmtpServer::responding([]).await;
    let _running = account.run_with_smtp(&smtp.url(), &[]).await;
    account.until_done(help).await;
    assert_eq!(smtp.received().len(), 1);
}

#[tokio::test]
async fn an_email_is_not_sent_unencrypted_if_tls_is_required() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([]).await;
    let help = account.request_help("s", "m", None).await;
    let url = format!("{}?tls=required", smtp.url());
    let _running = account.run_with_smtp(&url, &["mail.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    account.until_done(help).await;
    assert!(smtp.received().is_empty() && smtp.logins() == 0);
}

#[tokio::test]
async fn invalid_settings_are_refused_by_name_without_repeating_passwords() {
    let account = Account::new().await;
    for (set, name) in [
        ("mail.smtp_url=http://us:hush@mail.example", "mail.smtp_url"),
        ("mail.from=", "mail.from"),
        ("mail.to=not an address", "mail.to"),
        ("mail.retry_schedule=[]", "mail.retry_schedule"),
        ("http.edges=2", "http.edges"),
    ] {
        let error =
            account.run_with_smtp("smtp://us:hush@mail.example", &[set]).await.end().await.unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(name) && !error.contains("hush"), "{set}: {error}");
    }
}
