//! Chat platforms: each gets its own message format, and its responses have their own meaning.

use axum::body::Body;
use axum::response::Response;
use chrono::TimeDelta;
use domain::webhooks::Template;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use store::deliveries::Delivery;
use uuid::Uuid;

use crate::fixture::account::{Account, SECRET, new_id, now};
use crate::fixture::receiver::Receiver;

const CHAT: &str = "-100123";

impl Account {
    async fn chat(&self, template: Template, url: &str) -> Uuid {
        self.webhook_with(url, |webhook| {
            webhook.template = template.as_str();
            webhook.telegram_chat_id = (template == Template::Telegram).then(|| CHAT.to_owned());
        })
        .await
    }
}

fn response(status: u16, body: &Value) -> Response {
    Response::builder().status(status).body(Body::from(body.to_string())).unwrap()
}

fn is_attempted(delivery: &Delivery) -> bool {
    delivery.status_code.is_some()
}

#[tokio::test]
async fn each_platform_gets_its_own_format_with_a_signature() {
    let account = Account::new().await;
    let _running = account.run(&[]).await;
    for template in Template::ALL {
        let receiver = Receiver::responding([]).await;
        let webhook = account.chat(template, &receiver.url).await;
        account.submission().await;
        account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
        let received = receiver.received().pop().unwrap();
        let body = received.json();
        let pointer = match template {
            Template::Default => "/data/fields/email",
            Template::Slack => "/blocks/1/fields/1/text",
            Template::Discord => "/embeds/0/fields/1/value",
            Template::Telegram => "/text",
            Template::Teams => "/attachments/0/content/body/1/facts/1/value",
            Template::GoogleChat => "/cardsV2/0/card/sections/0/widgets/1/decoratedText/text",
        };
        let text =
            body.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{template:?}: {body}"));
        assert!(text.contains("a@b.co"), "{template:?}: {text}");
        Webhook::new(SECRET).unwrap().verify(&received.body, &received.headers).unwrap();
        account.change("delete from webhooks").await;
    }
}

#[tokio::test]
async fn a_message_that_a_platform_rejects_for_good_is_not_retried() {
    let account = Account::new().await;
    let receiver = Receiver::responding([response(400, &json!("invalid_blocks"))]).await;
    let webhook = account.chat(Template::Slack, &receiver.url).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "failed").await;
    assert_eq!((delivery.attempts, delivery.status_code), (1, Some(400)));
    assert!(account.read_webhook(webhook).await.is_active);
}

#[tokio::test]
async fn retry_after_in_a_response_body_is_honored() {
    let account = Account::new().await;
    let discord = json!({"message": "slow down", "retry_after": 1800.5, "global": false});
    let telegram = json!({"ok": false, "error_code": 429, "parameters": {"retry_after": 1800}});
    for (template, body) in [(Template::Discord, discord), (Template::Telegram, telegram)] {
        let receiver = Receiver::responding([response(429, &body)]).await;
        let webhook = account.chat(template, &receiver.url).await;
        account.submission().await;
        let running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1s\"]"]).await;
        let delivery = account.delivery_when(webhook, is_attempted).await;
        let wait = delivery.next_attempt_at - now();
        assert!(wait > TimeDelta::minutes(29) && wait < TimeDelta::minutes(31), "{template:?}: {wait}");
        running.stop().await;
        account.change("delete from webhooks").await;
    }
}

#[tokio::test]
async fn a_moved_telegram_group_is_called_under_its_new_id() {
    let account = Account::new().await;
    let moved =
        json!({"ok": false, "error_code": 400, "parameters": {"migrate_to_chat_id": -1_001_234_567_890_i64}});
    let receiver = Receiver::responding([response(400, &moved)]).await;
    let webhook = account.chat(Template::Telegram, &receiver.url).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1h\"]"]).await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert_eq!(delivery.attempts, 2, "at once, independent of the schedule");
    let chats: Vec<Value> =
        receiver.received().iter().map(|received| received.json()["chat_id"].clone()).collect();
    assert_eq!(chats, [CHAT, "-1001234567890"]);
    let stored = account.read_webhook(webhook).await.telegram_chat_id;
    assert_eq!(stored.as_deref(), Some("-1001234567890"));
}

#[tokio::test]
async fn fields_have_the_order_of_the_form_and_chats_show_its_labels() {
    let account = Account::new().await;
    let form = new_id();
    // Postgres orders the members of a stored event by the length of their names.
    let fields = json!([
        {"name": "full_name", "label": "Your name", "type": "text"},
        {"name": "email", "label": "E-mail address", "type": "email"},
        {"name": "n", "label": "Guests", "type": "number"},
    ]);
    account
        .change(&format!(
            "insert into forms (id, account_id, name, fields, created_at, updated_at)
             values ('{form}', '{}', 'Party', '{fields}', now(), now())",
            account.id
        ))
        .await;
    let _running = account.run(&[]).await;
    for template in [Template::Default, Template::Slack] {
        let receiver = Receiver::responding([]).await;
        let webhook = account
            .webhook_with(&receiver.url, |webhook| {
                webhook.template = template.as_str();
                webhook.field_mapping = Some(json!({"email": "contact"}));
            })
            .await;
        account.submission_of(form, json!({"n": 2, "gone": 1, "email": "a@b.co", "full_name": "Ana"})).await;
        account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
        let received = receiver.received().pop().unwrap();
        let body = received.json();
        if template == Template::Default {
            let body = String::from_utf8(received.body.to_vec()).unwrap();
            let sent = r#""fields":{"full_name":"Ana","contact":"a@b.co","n":2,"gone":1}"#;
            assert!(body.starts_with(r#"{"type":"submission.created","#) && body.contains(sent), "{body}");
        } else {
            let shown = body["blocks"][1]["fields"].as_array().unwrap().iter();
            let shown: Vec<_> = shown.map(|field| field["text"].as_str().unwrap().to_owned()).collect();
            assert_eq!(shown, ["*Your name*\nAna", "*contact*\na@b.co", "*Guests*\n2", "*gone*\n1"]);
        }
        account.change("delete from webhooks").await;
    }
}
