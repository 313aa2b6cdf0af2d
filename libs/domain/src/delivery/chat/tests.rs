//! Checks each platform's limits and escaping with hostile input.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::truncate::length;
use super::*;
use crate::webhooks::{FieldNames, Template};

const CHATS: [Template; 5] =
    [Template::Slack, Template::Discord, Template::Telegram, Template::Teams, Template::GoogleChat];

fn event(form: &str, fields: &[(String, Value)]) -> Value {
    let fields: Map<String, Value> = fields.iter().cloned().collect();
    json!({"type": "submission.created", "timestamp": "2026-11-21T00:00:00Z",
           "data": {"formName": form, "fields": fields}})
}

fn written(template: Template, event: &Value) -> Value {
    body(template, event, FieldNames::default(), Some("-100123")).unwrap()
}

/// Returns every violation of the platform's published limits.
fn faults(template: Template, body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut at_most = |what: &str, length: usize, max: usize| {
        if length == 0 || length > max {
            faults.push(format!("{what}: {length} of {max}"));
        }
    };
    let text = |value: &Value| length(value.as_str().unwrap());
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let bytes = body.to_string().len();
    match template {
        Template::Default => {}
        Template::Slack => {
            at_most("text", text(&body["text"]), 4_000);
            at_most("blocks", list(&body["blocks"]).len(), 50);
            let mut total = 0;
            for block in list(&body["blocks"]) {
                if block["type"] == "header" {
                    at_most("header", text(&block["text"]["text"]), 150);
                }
                if let Some(fields) = block["fields"].as_array() {
                    at_most("fields", fields.len(), 10);
                }
                for field in list(&block["fields"]) {
                    at_most("field", text(&field["text"]), 2_000);
                    total += text(&field["text"]);
                }
            }
            at_most("total", total + 1, 12_000);
        }
        Template::Discord => {
            let embed = &body["embeds"][0];
            at_most("title", text(&embed["title"]), 256);
            let mut total = text(&embed["title"]) + embed["footer"]["text"].as_str().map_or(0, length);
            for field in list(&embed["fields"]) {
                at_most("name", text(&field["name"]), 256);
                at_most("value", text(&field["value"]), 1_024);
                total += text(&field["name"]) + text(&field["value"]);
            }
            at_most("fields", list(&embed["fields"]).len() + 1, 26);
            at_most("total", total, 6_000);
        }
        Template::Telegram => {
            let html = body["text"].as_str().unwrap();
            let read = html.replace("<b>", "").replace("</b>", "");
            let read = html_escape::decode_html_entities(&read);
            at_most("text", length(&read), 4_096);
        }
        Template::Teams => at_most("body", bytes, 20_000),
        Template::GoogleChat => {
            at_most("body", bytes, 32_000);
            let widgets = list(&body["cardsV2"][0]["card"]["sections"][0]["widgets"]);
            at_most("widgets", widgets.len() + 1, 101);
        }
    }
    faults
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_answers_exceed_a_platforms_limits(
        form in "(\\PC{0,400}|[<&>*_\\[\\]\\\\]{0,300})",
        names in prop::collection::vec("\\PC{1,300}", 0..40),
        value in prop_oneof![
            "\\PC{0,200}", "[<&>]{0,3000}", "[\\\\*_]{1000,3000}",
            "\u{1f980}{0,4000}", "[\u{1}-\u{1f}]{0,4000}", "x{5000,9000}",
        ],
    ) {
        let fields: Vec<_> = names.into_iter().map(|name| (name, json!(value))).collect();
        let event = event(&form, &fields);
        for template in CHATS {
            let body = written(template, &event);
            prop_assert_eq!(faults(template, &body), Vec::<String>::new(), "{:?}", template);
        }
    }
}

#[test]
fn omitted_fields_are_counted() {
    let fields: Vec<_> = (0..100).map(|at| (format!("field {at}"), json!("x".repeat(5_000)))).collect();
    for template in CHATS {
        let body = written(template, &event("Contact", &fields)).to_string();
        assert!(body.contains("field 0") && body.contains(" more fields"), "{template:?}: {body}");
        assert!(body.contains('…'), "{template:?}");
    }
}

#[test]
fn short_answers_are_complete() {
    let fields = [("name".to_owned(), json!("Zoë")), ("email".to_owned(), json!("zoe@example.com"))];
    for template in CHATS {
        let body = written(template, &event("Contact", &fields)).to_string();
        for text in ["New submission: Contact", "Zoë", "zoe@example.com", "2026-11-21"] {
            assert!(body.contains(text), "{template:?}: {body}");
        }
        assert!(!body.contains('…'), "{template:?}");
    }
}

#[test]
fn input_mentions_no_user_and_adds_no_markup() {
    let hostile = "<!channel> <@U123> @everyone <users/all> [bank](https://evil.example) *bold* <b>x</b> & https://a_b.c/_d_";
    let fields = [("note".to_owned(), json!(hostile))];
    let event = event(hostile, &fields);
    let slack = written(Template::Slack, &event);
    assert!(
        slack["blocks"][1]["fields"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("*note*\n&lt;!channel&gt; &lt;@U123&gt;")
    );
    assert!(!slack["text"].as_str().unwrap().contains('<'));
    let discord = written(Template::Discord, &event);
    assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
    let value = discord["embeds"][0]["fields"][0]["value"].as_str().unwrap();
    assert!(value.contains(r"\[bank\](https://evil.example)") && value.contains(r"\*bold\*"), "{value}");
    assert!(value.ends_with("https://a_b.c/_d_"), "addresses stay usable: {value}");
    let telegram = written(Template::Telegram, &event);
    let text = telegram["text"].as_str().unwrap();
    assert!(text.contains("&lt;b&gt;x&lt;/b&gt; &amp; https") && text.matches("<b>").count() == 2, "{text}");
    let teams = written(Template::Teams, &event);
    let value = teams["attachments"][0]["content"]["body"][1]["facts"][0]["value"].as_str().unwrap();
    assert!(value.contains(r"\[bank\](https://evil.example)") && value.contains(r"\*bold\*"), "{value}");
    let google = written(Template::GoogleChat, &event);
    assert!(!google["text"].as_str().unwrap().contains("<users/all>"));
    let widgets = &google["cardsV2"][0]["card"]["sections"][0]["widgets"];
    assert!(widgets[0]["decoratedText"]["text"].as_str().unwrap().starts_with("&lt;!channel&gt;"));
}

#[test]
fn an_event_without_answers_has_its_sentence_on_every_platform() {
    let event = json!({"type": "webhook.ping", "timestamp": "2026-11-21T00:00:00Z", "data": {"message": "It works."}});
    for template in CHATS {
        let body = written(template, &event);
        assert!(body.to_string().contains("It works."), "{template:?}: {body}");
        assert_eq!(faults(template, &body), Vec::<String>::new());
    }
    assert_eq!(body(Template::Default, &event, FieldNames::default(), None), None);
}

#[test]
fn the_message_of_an_automation_is_complete_on_every_platform() {
    let event = json!({"type": "automation.message", "timestamp": "2026-11-21T00:00:00Z",
                       "data": {"payload": {"title": "New lead", "text": "Call them.", "phone": "123"}}});
    for template in CHATS {
        let body = written(template, &event);
        for text in ["New lead", "Call them.", "phone", "123"] {
            assert!(body.to_string().contains(text), "{template:?}: {body}");
        }
        assert_eq!(faults(template, &body), Vec::<String>::new());
    }
}

#[test]
fn a_platforms_url_is_completed_and_others_are_unchanged() {
    let given = |template, url: &str| request_url(template, url.to_owned());
    let hook = "https://discord.com/api/webhooks/1/t";
    assert_eq!(given(Template::Discord, hook), format!("{hook}?wait=true"));
    assert_eq!(
        given(Template::Discord, "https://d.test/?wait=false&thread_id=7"),
        "https://d.test/?wait=false&thread_id=7"
    );
    let bot = "https://api.telegram.org/bot123:AA-b";
    assert_eq!(given(Template::Telegram, bot), format!("{bot}/sendMessage"));
    assert_eq!(given(Template::Telegram, &format!("{bot}/sendMessage")), format!("{bot}/sendMessage"));
    assert_eq!(
        given(Template::Slack, "https://hooks.slack.com/services/T/B/x"),
        "https://hooks.slack.com/services/T/B/x"
    );
    assert_eq!(given(Template::Telegram, "no address"), "no address");
}

#[test]
fn retired_connectors_of_teams_are_recognized_by_their_host() {
    for host in
        ["acme.webhook.office.com", "webhook.office.com", "ACME.Webhook.Office.com.", "outlook.office.com"]
    {
        assert!(teams::is_retired(host), "{host}");
    }
    for host in ["prod-1.westeurope.logic.azure.com", "notwebhook.office.com", "webhook.office.com.evil.test"]
    {
        assert!(!teams::is_retired(host), "{host}");
    }
}
