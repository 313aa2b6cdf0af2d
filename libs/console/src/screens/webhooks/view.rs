//! A webhook and a delivery in words. A status is an icon and a word; its colour comes third.

use serde_json::{Value, json};

/// Adds to a webhook what its tag says, and its host.
pub(super) fn with_state(mut webhook: Value) -> Value {
    let url = webhook["url"].as_str().unwrap_or_default();
    let host =
        url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.to_owned();
    let (tone, icon, state) = if webhook["isActive"] == false {
        ("bad", "failed", "Off")
    } else if webhook["failingSince"].is_string() {
        ("warn", "retry", "Fails")
    } else {
        ("good", "done", "Active")
    };
    webhook["state"] = json!({ "tone": tone, "icon": icon, "text": state });
    webhook["host"] = json!(host);
    webhook
}

/// Adds to a delivery what its tag says.
pub(super) fn with_status(mut delivery: Value) -> Value {
    let attempts = delivery["attempts"].as_i64().unwrap_or_default();
    let (tone, icon, state) = match delivery["status"].as_str().unwrap_or_default() {
        "delivered" => ("good", "done", "Delivered"),
        "failed" => ("bad", "failed", "Failed"),
        "canceled" => ("", "close", "Canceled"),
        _ if attempts > 0 => ("warn", "retry", "Tries again"),
        _ => ("", "retry", "Waiting"),
    };
    delivery["state"] = json!({ "tone": tone, "icon": icon, "text": state });
    delivery
}

/// Returns what went wrong with an attempt.
pub(super) fn error_in_words(class: &str) -> &str {
    match class {
        "http_status" => "The receiver answered with a status that is no success.",
        "timeout" => "The receiver did not answer in time.",
        "dns" => "The host name has no address.",
        "connect" => "No connection could be made.",
        "tls" => "The certificate or the encryption of the receiver was not accepted.",
        "protocol" => "The answer was no valid HTTP.",
        "refused_target" => {
            "The address is in a private network, so nothing was sent: use one that the internet reaches."
        }
        "own_address" => {
            "The address is one of this service, so nothing was sent: deliveries could cause each other."
        }
        "interrupted" => "The attempt was interrupted here; it may have arrived.",
        "unwritable" => "The event can't be written in this format.",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_a_word_and_an_icon() {
        let state = |webhook: Value| with_state(webhook)["state"]["text"].clone();
        assert_eq!(state(json!({ "isActive": true, "failingSince": null })), "Active");
        assert_eq!(state(json!({ "isActive": true, "failingSince": "2026-11-22T13:02:11Z" })), "Fails");
        assert_eq!(state(json!({ "isActive": false, "failingSince": "2026-11-22T13:02:11Z" })), "Off");
        assert_eq!(with_state(json!({ "url": "https://crm.example/hook?token=x" }))["host"], "crm.example");
        let status = |delivery: Value| with_status(delivery)["state"]["text"].clone();
        assert_eq!(status(json!({ "status": "pending", "attempts": 3 })), "Tries again");
        assert_eq!(status(json!({ "status": "pending", "attempts": 0 })), "Waiting");
    }
}
