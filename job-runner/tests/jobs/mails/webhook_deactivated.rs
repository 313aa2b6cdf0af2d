//! Owners get one email when a webhook of theirs is deactivated, without its URL; trials get none.

use mail_parser::MessageParser;
use sandbox::test::until;
use uuid::Uuid;

use crate::fixture::account::Account;
use crate::fixture::receiver::{Receiver, status};
use crate::fixture::smtp_server::SmtpServer;

impl Account {
    /// Inserts an owner with this address.
    pub(crate) async fn insert_owner(&self, email: &str, is_verified: bool) {
        let identity = crate::fixture::account::new_id();
        self.change(&format!(
            "insert into identities (id, issuer, subject, email, email_verified, created_at)
             values ('{identity}', 'https://login.example', '{identity}', '{email}', {is_verified}, now());
             insert into identity_accounts (account_id, identity_id, added_at)
             values ('{}', '{identity}', now())",
            self.id
        ))
        .await;
    }

    /// Creates a webhook and waits until it is deactivated because its receiver is gone.
    async fn deactivated_webhook(&self, receiver: &Receiver) -> Uuid {
        let url = receiver.url.clone();
        let with_description =
            |webhook: &mut store::webhooks::NewWebhook| webhook.description = Some("To the CRM".to_owned());
        let webhook = self.webhook_with(&url, with_description).await;
        self.submission().await;
        until(async || !self.read_webhook(webhook).await.is_active).await;
        webhook
    }

    async fn until_no_email_is_due(&self) {
        until(async || {
            let due = sqlx::query("select from mails where kind = 'webhook_off'");
            due.fetch_all(&self.database.db).await.unwrap().is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn the_owner_gets_one_email_without_the_webhooks_url() {
    let account = Account::new().await;
    account.insert_owner("owner@example.com", true).await;
    let (smtp, receiver) = (SmtpServer::responding([]).await, Receiver::responding([status(410)]).await);
    let running = account.run_with_smtp(&smtp.url(), &[]).await;
    let webhook = account.deactivated_webhook(&receiver).await;
    until(async || !smtp.received().is_empty()).await;
    account.until_no_email_is_due().await;
    running.stop().await;
    let received = smtp.received();
    assert_eq!((received.len(), &received[0].to), (1, &vec!["owner@example.com".to_owned()]));
    let mail = MessageParser::default().parse(&received[0].data).unwrap();
    assert_eq!(mail.subject(), Some("One of your webhooks was deactivated"));
    let text = mail.body_text(0).unwrap().replace("\r\n", "\n");
    assert!(text.contains(&format!("Webhook: {webhook}\nYour description: To the CRM\n")), "{text}");
    assert!(text.contains("the receiver is gone"), "{text}");
    assert!(!text.contains("127.0.0.1") && !text.contains("secret=1"), "{text}");
}

#[tokio::test]
async fn a_refused_email_is_retried() {
    let account = Account::new().await;
    account.insert_owner("owner@example.com", true).await;
    let (smtp, receiver) = (SmtpServer::responding([451]).await, Receiver::responding([status(410)]).await);
    let set = ["mail.retry_schedule=[\"0s\",\"1ms\"]"];
    let _running = account.run_with_smtp(&smtp.url(), &set).await;
    account.deactivated_webhook(&receiver).await;
    until(async || smtp.received().len() == 1).await;
    account.until_no_email_is_due().await;
}

#[tokio::test]
async fn an_unverified_address_and_a_trial_get_no_email() {
    for owner in [None, Some("unverified@example.com")] {
        let account = Account::new().await;
        if let Some(email) = owner {
            account.insert_owner(email, false).await;
        }
        let (smtp, receiver) = (SmtpServer::responding([]).await, Receiver::responding([status(410)]).await);
        let running = account.run_with_smtp(&smtp.url(), &[]).await;
        account.deactivated_webhook(&receiver).await;
        account.until_no_email_is_due().await;
        running.stop().await;
        assert_eq!(smtp.received().len(), 0, "{owner:?}");
    }
}
