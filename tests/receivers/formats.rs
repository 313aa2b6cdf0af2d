//! Validates messages for chat platforms against the types and validators that the platforms and their ecosystems publish.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use domain::chat;
use domain::webhooks::{FieldNames, Template};
use harness::run_over;
use serde_json::{Map, Value, json};

use crate::PACKAGES;

const CHATS: [Template; 5] =
    [Template::Slack, Template::Discord, Template::Telegram, Template::Teams, Template::GoogleChat];

/// Validation errors of each message, by its platform's published types.
fn validation_errors(messages: &[(Template, Value)]) -> Result<Vec<Vec<String>>> {
    let message = |(template, body): &(Template, Value)| json!({"template": template.as_str(), "body": body});
    let input = serde_json::to_vec(&messages.iter().map(message).collect::<Vec<_>>())?;
    let output = run_over(Command::new("node").arg(PACKAGES.node()?.join("formats.mjs")), &input)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("the validation errors can't be parsed")
}

fn submission(fields: impl IntoIterator<Item = (String, String)>) -> Value {
    let fields: Map<String, Value> = fields.into_iter().map(|(name, value)| (name, json!(value))).collect();
    let data = json!({"formName": "Contact <us> & \"others\"", "fields": fields});
    json!({"type": "submission.created", "timestamp": "2026-11-21T00:00:00Z", "data": data})
}

#[test]
fn platform_validators_accept_every_message() -> Result<()> {
    let field = |at: usize, value: &str| (format!("field {at}"), value.to_owned());
    let values =
        ["Zoë", "", "  ", "<!channel> @everyone [a](https://b.c) *b* _c_ `d`", "line\nbreak\u{0}\u{1f980}"];
    let events = [
        submission([]),
        submission(values.iter().enumerate().map(|(at, value)| field(at, value))),
        submission((0..100).map(|at| field(at, "short"))),
        submission((0..100).map(|at| field(at, &"long \u{1f980}".repeat(700)))),
        submission([("n".repeat(5_000), "v".repeat(50_000))]),
        submission([(String::new(), "<".repeat(20_000))]),
        json!({"type": "webhook.ping", "timestamp": "2026-11-21T00:00:00Z", "data": {"message": "A test."}}),
        json!({"type": "form.closed", "data": {"formName": "x".repeat(9_000)}}),
    ];
    let mut messages = Vec::new();
    for event in &events {
        for template in CHATS {
            let body = chat::body(template, event, FieldNames::default(), Some("-1001234567890"))
                .context("no message")?;
            messages.push((template, body));
        }
    }
    for ((template, body), errors) in messages.iter().zip(validation_errors(&messages)?) {
        ensure!(errors.is_empty(), "{}: {errors:?} of {body}", template.as_str());
    }
    Ok(())
}

#[test]
fn platform_validators_reject_invalid_messages() -> Result<()> {
    let card = |element: Value| {
        let card = json!({"type": "AdaptiveCard", "version": "1.4", "body": [element]});
        let content = "application/vnd.microsoft.card.adaptive";
        json!({"type": "message", "attachments": [{"contentType": content, "content": card}]})
    };
    let embed = |value: &str| json!({"title": "t", "color": 1, "fields": [{"name": "n", "value": value}]});
    let messages = [
        (Template::Slack, json!({"text": "t", "blocks": [{"type": "sektion"}]})),
        (Template::Slack, json!({"text": 1, "blocks": []})),
        (Template::Discord, json!({"embeds": [embed(&"x".repeat(1_025))]})),
        (Template::Discord, json!({"embeds": [embed("x")], "allowed_mentions": {"parse": ["all"]}})),
        (Template::Telegram, json!({"chat_id": "1", "text": 1})),
        (Template::Telegram, json!({"chat_id": "1", "text": "t", "parse_mode": "html5"})),
        (Template::Teams, card(json!({"type": "TextBlok", "text": "t"}))),
        (Template::GoogleChat, json!({"text": "t", "cardsV3": []})),
    ];
    for ((template, body), errors) in messages.iter().zip(validation_errors(&messages)?) {
        ensure!(!errors.is_empty(), "{} accepts the invalid message {body}", template.as_str());
    }
    Ok(())
}
