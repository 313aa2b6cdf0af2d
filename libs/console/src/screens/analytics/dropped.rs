//! What was not counted, and why.

use serde::Serialize;
use serde_json::Value;

/// Reasons with their explanation.
const REASONS: [(&str, &str); 14] = [
    ("bot", "Bots, by their user agent"),
    ("do_not_track", "Visitors whose browser asks not to be tracked"),
    ("quota", "Beyond the events of your plan this month"),
    ("rate_limited", "More than 30 a minute from one address"),
    ("referrer_spam", "Referrers known for spam"),
    ("too_large", "Events that are too large"),
    ("unreadable", "Events that are no JSON of the expected form"),
    ("name", "Events without a valid name"),
    ("url", "Events without the address of a page"),
    ("props", "Events with too many or invalid properties"),
    ("loop", "Deliveries that call themselves"),
    ("unavailable", "Lost because this service was overloaded"),
    ("full", "Lost because this service was overloaded"),
    ("unwritable", "Lost because this service was overloaded"),
];

/// Events that were not counted for one reason.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Dropped {
    words: String,
    count: u64,
}

/// Returns the reasons of an overview, the most frequent first.
pub(super) fn dropped(overview: &Value) -> Vec<Dropped> {
    let reasons = overview["dropped"].as_object().into_iter().flatten();
    let words = |reason: &str| {
        let known = REASONS.iter().find(|(known, _)| *known == reason).map(|(_, words)| (*words).to_owned());
        known.unwrap_or_else(|| reason.replace('_', " "))
    };
    let mut dropped: Vec<Dropped> = Vec::new();
    for (reason, count) in reasons {
        let (words, count) = (words(reason), count.as_u64().unwrap_or_default());
        match dropped.iter_mut().find(|row| row.words == words) {
            Some(row) => row.count += count,
            None => dropped.push(Dropped { words, count }),
        }
    }
    dropped.retain(|row| row.count > 0);
    dropped.sort_by_key(|row| std::cmp::Reverse(row.count));
    dropped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reasons_are_explained_and_those_with_the_same_words_are_one() {
        let rows = dropped(
            &json!({ "dropped": { "bot": 3, "full": 1, "unavailable": 4, "quota": 0, "new_one": 2 } }),
        );
        let shown: Vec<_> = rows.iter().map(|row| (row.words.as_str(), row.count)).collect();
        let expected = [
            ("Lost because this service was overloaded", 5),
            ("Bots, by their user agent", 3),
            ("new one", 2),
        ];
        assert_eq!(shown, expected);
        assert_eq!(dropped(&json!({})), []);
    }
}
