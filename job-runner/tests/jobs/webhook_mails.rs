//! Owners are mailed when a webhook of theirs is switched off: once, without its address, and nobody of a trial.

use mail_parser::MessageParser;
use sandbox::test::until;
use uuid::Uuid;

use crate::harness::{Account, Running};
use crate::postbox::Postbox;
use crate::receiver::{Receiver, status};

impl Account {
    /// Its owner signs in under this address.
    async fn is_owned(&self, email: &str, is_verified: bool) {
        let identity = crate::harness::new_id();
        self.change(&format!(
            "insert into identities (id, issuer, subject, email, email_verified, created_at)
             values ('{identity}', 'https://login.example', '{identity}', '{email}', {is_verified}, now());
             insert into identity_accounts (account_id, identity_id, added_at)
             values ('{}', '{identity}', now())",
            self.id
        ))
        .await;
    }

    async fn mails_through(&self, postbox: &Postbox) -> Running {
        let url = format!("mail.smtp_url={}", postbox.url());
        let from = "mail.from=Web Runtime <us@runtime.example>";
        self.run(&["mail.poll_interval=20ms", from, "mail.to=operator@runtime.example", &url]).await
    }

    /// A webhook that is switched off because nobody is there.
    async fn webhook_that_is_gone(&self, receiver: &Receiver) -> Uuid {
        let url = receiver.url.clone();
        let note =
            |webhook: &mut store::webhooks::NewWebhook| webhook.description = Some("To the CRM".to_owned());
        let webhook = self.webhook_with(&url, note).await;
        self.submission().await;
        until(async || !self.read_webhook(webhook).await.is_active).await;
        webhook
    }

    async fn until_nobody_is_to_be_mailed(&self) {
        until(async || {
            let due = sqlx::query("select from mails where kind = 'webhook_off'");
            due.fetch_all(&self.database.db).await.unwrap().is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn an_owner_is_told_once_that_a_webhook_was_switched_off_and_not_where_it_led() {
    let account = Account::new().await;
    account.is_owned("owner@example.com", true).await;
    let (postbox, receiver) = (Postbox::answering([]).await, Receiver::answering([status(410)]).await);
    let running = account.mails_through(&postbox).await;
    let webhook = account.webhook_that_is_gone(&receiver).await;
    until(async || !postbox.taken().is_empty()).await;
    account.until_nobody_is_to_be_mailed().await;
    running.stop().await;
    let taken = postbox.taken();
    assert_eq!((taken.len(), &taken[0].to), (1, &vec!["owner@example.com".to_owned()]));
    let mail = MessageParser::default().parse(&taken[0].data).unwrap();
    assert_eq!(mail.subject(), Some("One of your webhooks was deactivated"));
    let text = mail.body_text(0).unwrap().replace("\r\n", "\n");
    assert!(text.contains(&format!("Webhook: {webhook}\nYour description: To the CRM\n")), "{text}");
    assert!(text.contains("the receiver is gone"), "{text}");
    assert!(!text.contains("127.0.0.1") && !text.contains("secret=1"), "{text}");
}

#[tokio::test]
async fn a_server_that_refuses_is_asked_again() {
    let account = Account::new().await;
    account.is_owned("owner@example.com", true).await;
    let (postbox, receiver) = (Postbox::answering([451]).await, Receiver::answering([status(410)]).await);
    let url = format!("mail.smtp_url={}", postbox.url());
    let usual =
        ["mail.poll_interval=20ms", "mail.from=us@runtime.example", "mail.to=operator@runtime.example"];
    let set = [usual[0], usual[1], usual[2], &url, "mail.retry_schedule=[\"0s\",\"1ms\"]"];
    let _running = account.run(&set).await;
    account.webhook_that_is_gone(&receiver).await;
    until(async || postbox.taken().len() == 1).await;
    account.until_nobody_is_to_be_mailed().await;
}

#[tokio::test]
async fn nobody_is_mailed_at_an_address_that_may_be_somebody_elses_nor_of_a_trial() {
    for owner in [None, Some("unverified@example.com")] {
        let account = Account::new().await;
        if let Some(email) = owner {
            account.is_owned(email, false).await;
        }
        let (postbox, receiver) = (Postbox::answering([]).await, Receiver::answering([status(410)]).await);
        let running = account.mails_through(&postbox).await;
        account.webhook_that_is_gone(&receiver).await;
        account.until_nobody_is_to_be_mailed().await;
        running.stop().await;
        assert_eq!(postbox.taken().len(), 0, "{owner:?}");
    }
}
