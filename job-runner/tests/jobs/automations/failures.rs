//! Failures in a row: mails at the first and the tenth, and the automation is disabled at the hundredth.

use mail_parser::MessageParser;
use sandbox::test::until;
use serde_json::{Value, json};

use crate::fixture::account::Account;
use crate::fixture::smtp_server::{Mail, SmtpServer};

/// Returns recipients, subject and text of each mail.
fn mails(smtp: &SmtpServer) -> Vec<(Vec<String>, String, String)> {
    let read = |one: Mail| {
        let mail = MessageParser::default().parse(&one.data).unwrap();
        let text = mail.body_text(0).unwrap().replace("\r\n", "\n");
        (one.to, mail.subject().unwrap().to_owned(), text)
    };
    smtp.received().into_iter().map(read).collect()
}

#[tokio::test]
async fn the_owner_gets_mails_and_an_automation_that_only_fails_is_disabled() {
    let account = Account::new().await;
    account.insert_owner("owner@example.com", true).await;
    let smtp = SmtpServer::responding([]).await;
    let steps =
        json!([{"id": "end", "type": "stop", "status": "error", "message": "no {{ trigger.payload }}"}]);
    let automation = account.automation(steps).await;
    let _running = account.run_with_smtp(&smtp.url(), &super::OTHER_WORK).await;
    let mut failed = 0;
    for (count, sent) in [(1, 1), (8, 1), (1, 2), (89, 2), (1, 3)] {
        let runs = (0..count).map(|_| automation.new_run(&json!("leads"))).collect();
        automation.start_all(runs).await;
        failed += count;
        until(async || automation.read().await.statistics.consecutive_failures == failed).await;
        let left = async || account.number("select count(*) from mails").await;
        until(async || mails(&smtp).len() == sent && left().await == 0).await;
        assert_eq!(automation.read().await.is_enabled, failed < 100);
    }
    let statistics = automation.read().await.statistics;
    assert_eq!((statistics.runs, statistics.failures), (100, 100));
    assert_eq!(statistics.last_error.as_deref(), Some("no leads"));
    let mails = mails(&smtp);
    assert!(mails.iter().all(|(to, ..)| to == &["owner@example.com"]), "{mails:?}");
    let (_, subject, text) = &mails[0];
    assert_eq!(subject, "Your automation Lead to Slack fails");
    assert!(text.contains("Last error: no leads\n") && text.contains("after 10 failures"), "{text}");
    let (_, _, text) = &mails[1];
    assert!(text.contains("The last 10 runs of your automation Lead to Slack failed"), "{text}");
    let (_, subject, text) = &mails[2];
    assert_eq!(subject, "Your automation Lead to Slack was disabled");
    assert!(text.contains("{\"enabled\": true}"), "{text}");
}

#[tokio::test]
async fn a_success_ends_the_row_of_failures_and_a_trial_gets_no_mail() {
    let account = Account::new().await;
    let smtp = SmtpServer::responding([]).await;
    let steps = json!([
        {"id": "end", "type": "stop", "status": "error", "message": "no", "if": "trigger.payload == 1"},
    ]);
    let automation = account.automation(steps).await;
    let running = account.run_with_smtp(&smtp.url(), &super::OTHER_WORK).await;
    for (payload, expected) in [(1, 1), (1, 2), (0, 0), (1, 1)] {
        let id = automation.start(json!(payload)).await;
        automation.run_when(id, if payload == 1 { "error" } else { "success" }).await;
        until(async || automation.read().await.statistics.consecutive_failures == expected).await;
    }
    let unfinished = automation.start(Value::Null).await;
    automation.run_when(unfinished, "success").await;
    until(async || account.number("select count(*) from mails").await == 0).await;
    running.stop().await;
    assert_eq!(smtp.received().len(), 0);
}
