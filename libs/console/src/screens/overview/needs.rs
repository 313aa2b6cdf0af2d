//! What needs the viewer's attention, each with the page that resolves it.

use serde::Serialize;
use serde_json::Value;

use crate::screens::usage::UsageRow;

/// The part of a limit from which on it is reported, in percent.
const NEARLY_USED: f64 = 80.0;

/// Something to look at.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Need {
    /// The class of its tag: `warn` or `bad`.
    tone: &'static str,
    state: &'static str,
    text: String,
    link: Option<String>,
    action: &'static str,
}

/// Returns what needs attention, the worst first.
pub(super) fn needs(status: &Value, webhooks: &Value, usage: &[UsageRow]) -> Vec<Need> {
    let mut needs = Vec::new();
    for webhook in webhooks["webhooks"].as_array().into_iter().flatten() {
        let link = webhook["id"].as_str().map(|id| format!("/console/webhooks/{id}"));
        let name = webhook["description"].as_str().or(webhook["url"].as_str()).unwrap_or("A webhook");
        if let Some(reason) = webhook["deactivatedReason"].as_str() {
            let text = format!("{name}: deactivated, {reason}");
            needs.push(Need { tone: "bad", state: "Webhook off", text, link, action: "Open" });
        } else if webhook["failingSince"].is_string() {
            let text = format!("{name}: deliveries fail and are tried again");
            needs.push(Need { tone: "warn", state: "Webhook fails", text, link, action: "Open" });
        }
    }
    let count = |noun: &str, state: &str| status[noun][state].as_i64().unwrap_or_default();
    for (state, tone, words) in
        [("disabled", "bad", "Automation off"), ("failing", "warn", "Automation fails")]
    {
        let number = count("automations", state);
        if number > 0 {
            let text = if number == 1 { "1 automation".to_owned() } else { format!("{number} automations") };
            let link = Some("/console/automations".to_owned());
            needs.push(Need { tone, state: words, text, link, action: "Open" });
        }
    }
    for row in usage.iter().filter(|row| row.stops_something && row.percent >= NEARLY_USED) {
        let (tone, state) =
            if row.percent >= 100.0 { ("bad", "Limit reached") } else { ("warn", "Nearly used") };
        let text = format!("{}: {} of {}", row.label, row.used, row.limit);
        needs.push(Need { tone, state, text, link: Some("/account".to_owned()), action: "Your plan" });
    }
    needs
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::screens::usage::usage;

    #[test]
    fn an_account_in_good_order_needs_nothing() {
        let status =
            json!({ "usage": { "projects": { "used": 1, "limit": 10 } }, "automations": { "failing": 0 } });
        let webhooks = json!({ "webhooks": [{ "url": "https://a.test", "failingSince": null }] });
        assert_eq!(needs(&status, &webhooks, &usage(&status)), []);
    }

    #[test]
    fn failures_and_limits_are_named() {
        let status = json!({ "usage": { "projects": { "used": 10, "limit": 10 }, "subdomains": { "used": 1, "limit": 1 } },
            "automations": { "failing": 2, "disabled": 0 } });
        let webhooks = json!({ "webhooks": [
            { "url": "https://crm.test", "failingSince": "2026-11-22T13:02:11Z" },
            { "description": "Desk", "deactivatedReason": "gone", "failingSince": "2026-11-22T13:02:11Z" }] });
        let states: Vec<_> = needs(&status, &webhooks, &usage(&status))
            .into_iter()
            .map(|need| (need.state, need.text))
            .collect();
        let expected = [
            ("Webhook fails", "https://crm.test: deliveries fail and are tried again"),
            ("Webhook off", "Desk: deactivated, gone"),
            ("Automation fails", "2 automations"),
            ("Limit reached", "Projects: 10 of 10"),
        ];
        assert_eq!(states, expected.map(|(state, text)| (state, text.to_owned())));
    }
}
