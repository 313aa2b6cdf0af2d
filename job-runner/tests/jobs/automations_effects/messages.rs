//! A message of `send_webhook` is signed, templated and logged as any other delivery.

use domain::webhooks::{AUTOMATION_MESSAGE, Template};
use serde_json::json;
use standardwebhooks::Webhook;
use store::deliveries::{Message, MessageOutcome, insert_message};

use crate::fixture::account::{Account, SECRET, new_id, now};
use crate::fixture::receiver::Receiver;

#[tokio::test]
async fn a_message_is_signed_and_formatted_for_each_platform() {
    let account = Account::new().await;
    let _running = account.run(&[]).await;
    for template in Template::ALL {
        let receiver = Receiver::responding([]).await;
        let webhook = account
            .webhook_with(&receiver.url, |webhook| {
                // It subscribes to nothing that is called like the message.
                webhook.events = vec!["form.closed".to_owned()];
                webhook.template = template.as_str();
                webhook.telegram_chat_id = (template == Template::Telegram).then(|| "-100123".to_owned());
                webhook.field_mapping = Some(json!({"email": "E-mail"}));
            })
            .await;
        let payload = json!({
            "type": AUTOMATION_MESSAGE,
            "timestamp": now(),
            "data": {"automationId": new_id(), "runId": new_id(),
                     "payload": {"title": "New lead", "text": "Call them.", "email": "a@b.co"}},
        });
        let message = Message {
            id: new_id(),
            webhook_id: webhook,
            payload: &payload,
            traceparent: None,
            depth: 2,
            at: now(),
        };
        let mut conn = store::acquire(&account.database.db).await.unwrap();
        assert_eq!(insert_message(&mut conn, account.id, &message).await.unwrap(), MessageOutcome::Stored);
        let delivery = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
        assert_eq!((delivery.id, delivery.event.as_str()), (message.id, AUTOMATION_MESSAGE));
        let received = receiver.received().pop().unwrap();
        Webhook::new(SECRET).unwrap().verify(&received.body, &received.headers).unwrap();
        assert_eq!(received.header("webhook-id"), message.id.to_string());
        assert_eq!(received.header("webruntime-depth"), "3");
        let body = received.json();
        for text in ["New lead", "Call them.", "E-mail", "a@b.co"] {
            assert!(body.to_string().contains(text), "{template:?}: {body}");
        }
        if template == Template::Default {
            let sent = json!({"title": "New lead", "text": "Call them.", "E-mail": "a@b.co"});
            assert_eq!((&body["type"], &body["data"]["payload"]), (&json!(AUTOMATION_MESSAGE), &sent));
        }
        account.change("delete from webhooks").await;
    }
}
