//! Chat platforms: each is told in its own form and heard by its own answers.

use axum::body::Body;
use axum::response::Response;
use chrono::TimeDelta;
use domain::webhooks::Template;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use store::deliveries::Delivery;
use uuid::Uuid;

use crate::harness::{Account, SECRET, now};
use crate::receiver::Receiver;

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

fn answer(status: u16, body: &Value) -> Response {
    Response::builder().status(status).body(Body::from(body.to_string())).unwrap()
}

fn was_tried(delivery: &Delivery) -> bool {
    delivery.status_code.is_some()
}

#[tokio::test]
async fn each_platform_is_told_in_its_own_form_and_signed_all_the_same() {
    let account = Account::new().await;
    let _running = account.run(&[]).await;
    for template in Template::ALL {
        let receiver = Receiver::answering([]).await;
        let webhook = account.chat(template, &receiver.url).await;
        account.submission().await;
        account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
        let taken = receiver.taken().pop().unwrap();
        let body = taken.json();
        let place = match template {
            Template::Default => "/data/fields/email",
            Template::Slack => "/blocks/1/fields/1/text",
            Template::Discord => "/embeds/0/fields/1/value",
            Template::Telegram => "/text",
            Template::Teams => "/attachments/0/content/body/1/facts/1/value",
            Template::GoogleChat => "/cardsV2/0/card/sections/0/widgets/1/decoratedText/text",
        };
        let text =
            body.pointer(place).and_then(Value::as_str).unwrap_or_else(|| panic!("{template:?}: {body}"));
        assert!(text.contains("a@b.co"), "{template:?}: {text}");
        Webhook::new(SECRET).unwrap().verify(&taken.body, &taken.headers).unwrap();
        account.change("delete from webhooks").await;
    }
}

#[tokio::test]
async fn what_a_platform_will_never_take_is_not_sent_again() {
    let account = Account::new().await;
    let receiver = Receiver::answering([answer(400, &json!("invalid_blocks"))]).await;
    let webhook = account.chat(Template::Slack, &receiver.url).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "failed").await;
    assert_eq!((delivery.attempts, delivery.status_code), (1, Some(400)));
    assert!(account.read_webhook(webhook).await.is_active);
}

#[tokio::test]
async fn a_platform_that_asks_for_time_in_its_body_gets_it() {
    let account = Account::new().await;
    let discord = json!({"message": "slow down", "retry_after": 1800.5, "global": false});
    let telegram = json!({"ok": false, "error_code": 429, "parameters": {"retry_after": 1800}});
    for (template, said) in [(Template::Discord, discord), (Template::Telegram, telegram)] {
        let receiver = Receiver::answering([answer(429, &said)]).await;
        let webhook = account.chat(template, &receiver.url).await;
        account.submission().await;
        let running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1s\"]"]).await;
        let delivery = account.delivery_when(webhook, was_tried).await;
        let wait = delivery.next_attempt_at - now();
        assert!(wait > TimeDelta::minutes(29) && wait < TimeDelta::minutes(31), "{template:?}: {wait}");
        running.stop().await;
        account.change("delete from webhooks").await;
    }
}

#[tokio::test]
async fn a_telegram_group_that_has_moved_is_followed() {
    let account = Account::new().await;
    let moved =
        json!({"ok": false, "error_code": 400, "parameters": {"migrate_to_chat_id": -1_001_234_567_890_i64}});
    let receiver = Receiver::answering([answer(400, &moved)]).await;
    let webhook = account.chat(Template::Telegram, &receiver.url).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1h\"]"]).await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert_eq!(delivery.attempts, 2, "at once, not by the schedule");
    let chats: Vec<Value> = receiver.taken().iter().map(|taken| taken.json()["chat_id"].clone()).collect();
    assert_eq!(chats, [CHAT, "-1001234567890"]);
    let kept = account.read_webhook(webhook).await.telegram_chat_id;
    assert_eq!(kept.as_deref(), Some("-1001234567890"));
}
