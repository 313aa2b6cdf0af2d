//! What is stored of the request of an attempt.

use domain::webhooks::Request;

use crate::fixture::account::Account;
use crate::fixture::receiver::{Receiver, status};

#[tokio::test]
async fn each_attempt_stores_the_digest_of_the_request_that_its_receiver_got() {
    let account = Account::new().await;
    let receiver = Receiver::responding([status(503)]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"0s\"]"]).await;
    let delivered = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let mut attempts =
        store::deliveries::list_attempts(&mut conn, account.id, delivered.id, 10).await.unwrap();
    attempts.reverse();
    assert_eq!(
        attempts.iter().map(|attempt| attempt.status_code).collect::<Vec<_>>(),
        [Some(503), Some(200)]
    );
    for (attempt, received) in attempts.iter().zip(receiver.received()) {
        let names =
            ["content-type", "webhook-id", "webhook-timestamp", "webhook-signature", domain::depth::HEADER];
        let sent = Request {
            url: receiver.url.clone(),
            headers: names.map(|name| (name, received.header(name).to_owned())),
            body: received.body.to_vec(),
        };
        assert_eq!(attempt.request_digest.as_deref(), Some(sent.digest().as_slice()));
        let signed_at = attempt.signed_at.unwrap().timestamp().to_string();
        assert_eq!(signed_at, received.header("webhook-timestamp"));
    }
}

#[tokio::test]
async fn an_attempt_that_sends_nothing_stores_no_request() {
    let account = Account::new().await;
    let webhook = account.webhook("https://example.com", None).await;
    account.submission().await;
    let other_key = format!("secrets.master_key={}", "cd".repeat(32));
    let _running = account.run(&[&other_key, "webhooks.retry_schedule=[\"0s\",\"1h\"]"]).await;
    let tried = account.delivery_when(webhook, |delivery| delivery.error_class.is_some()).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let attempts = store::deliveries::list_attempts(&mut conn, account.id, tried.id, 10).await.unwrap();
    assert_eq!(attempts[0].error_class.as_deref(), Some("unwritable"));
    assert_eq!((attempts[0].signed_at, &attempts[0].request_digest), (None, &None));
}
