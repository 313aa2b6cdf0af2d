//! The deliveries of the last 24 hours by status.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::api_client::Answer;
use crate::charts::status_strip;
use crate::formatting::times::parse;

/// Hours of the strip.
const HOURS: usize = 24;
/// Statuses from the bottom up, with their classes and words.
const STATUSES: [(&str, &str, &str); 4] = [
    ("delivered", "good", "delivered"),
    ("pending", "warn", "waiting"),
    ("failed", "bad", "failed"),
    ("canceled", "none", "canceled"),
];

/// Returns when the strip begins.
pub(super) fn begin(now: DateTime<Utc>) -> DateTime<Utc> {
    now - TimeDelta::hours(HOURS as i64)
}

/// Returns the strip with its words; null if nothing was sent, or the list was refused.
pub(super) fn day_strip(list: &Answer, now: DateTime<Utc>) -> Value {
    let Some(deliveries) = list.as_ref().ok().and_then(|list| list["deliveries"].as_array()) else {
        return Value::Null;
    };
    let mut columns = [[0_u32; STATUSES.len()]; HOURS];
    for delivery in deliveries {
        let age = delivery["createdAt"].as_str().and_then(parse).map(|at| now - at);
        let hours = age.and_then(|age| usize::try_from(age.num_hours().max(0)).ok());
        let column = hours.filter(|hours| *hours < HOURS).map(|hours| &mut columns[HOURS - 1 - hours]);
        let status = STATUSES.iter().position(|(status, ..)| delivery["status"] == *status);
        if let (Some(column), Some(status)) = (column, status) {
            column[status] += 1;
        }
    }
    let sum = |at: usize| columns.iter().map(|column| column[at]).sum::<u32>();
    let sums = STATUSES.iter().enumerate().map(|(at, (.., word))| (sum(at), *word));
    let words: Vec<_> = sums.filter(|(sum, _)| *sum > 0).map(|(sum, word)| format!("{sum} {word}")).collect();
    if words.is_empty() {
        return Value::Null;
    }
    let has_more = list.as_ref().is_ok_and(|list| list["hasMore"] == true);
    let svg = status_strip(&columns, STATUSES.map(|(_, class, _)| class));
    json!({ "svg": svg, "words": words.join(", "), "count": deliveries.len(), "has_more": has_more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_counted_in_their_hour() {
        let now = parse("2026-11-22T13:30:00Z").unwrap();
        let delivery = |at: &str, status: &str| json!({ "createdAt": at, "status": status });
        let list: Answer = Ok(json!({ "hasMore": true, "deliveries": [
            delivery("2026-11-22T13:30:00Z", "failed"), delivery("2026-11-21T13:30:01Z", "delivered"),
            delivery("2026-11-21T14:30:00Z", "delivered"), delivery("2026-11-20T10:00:00Z", "pending"),
            delivery("nonsense", "failed"), delivery("2026-11-22T13:00:00Z", "other")] }));
        let strip = day_strip(&list, now);
        assert_eq!(strip["words"], "2 delivered, 1 failed");
        let svg = strip["svg"].as_str().unwrap();
        assert!(
            svg.contains(r#"class="good" x="0.00%""#) && svg.contains(r#"class="bad" x="95.83%""#),
            "{svg}"
        );
        assert_eq!(day_strip(&Ok(json!({ "deliveries": [] })), now), Value::Null);
    }
}
