//! What moved a figure: the value of a panel that explains most of the change of visitors.

use serde_json::Value;

use super::figures::{METRICS, figure_of};
use super::filters::label_of;
use super::panels::{PANELS, shown};
use crate::formatting::numbers;

/// The part of the change that a value must explain to be named.
const PART_MIN: f64 = 0.3;

/// Returns a sentence about the value that brought most of the visitors that are more, or took most of those that are
/// fewer: `Most of it: Referrer google.com, 120 more visitors.` An earlier panel wins.
pub(super) fn mover_in_words(overview: &Value) -> Option<String> {
    let visitors = figure_of(&METRICS[0], overview);
    let change = visitors["total"].as_f64()? - visitors["previous"].as_f64()?;
    if change == 0.0 {
        return None;
    }
    PANELS.iter().find_map(|kind| {
        let panel = &overview["panels"][kind.id];
        let dimension = panel["dimension"].as_str()?;
        let rows = panel["rows"].as_array()?.iter().filter_map(|row| {
            let moved = row["value"].as_f64()? - row["previous"].as_f64()?;
            Some((row["key"].as_str()?, moved))
        });
        // A value that moved against the change explains none of it.
        let (key, moved) = rows.max_by(|a, b| (a.1 / change).total_cmp(&(b.1 / change)))?;
        if moved / change < PART_MIN {
            return None;
        }
        let direction = if moved > 0.0 { "more" } else { "fewer" };
        let noun = if moved.abs() == 1.0 { "visitor" } else { "visitors" };
        let label = label_of(dimension).unwrap_or_default();
        let moved = numbers::count(moved.abs());
        Some(format!("Most of it: {label} {}, {moved} {direction} {noun}.", shown(dimension, key)))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn overview(total: u64, sources: Value, pages: Value) -> Value {
        json!({ "figures": [{ "metric": "unique_visitors", "total": total, "previous": 100 }],
            "panels": { "sources": { "dimension": "referrer", "rows": sources },
                "pages": { "dimension": "url", "rows": pages } } })
    }

    fn row(key: &str, value: u64, previous: u64) -> Value {
        json!({ "key": key, "value": value, "previous": previous })
    }

    #[test]
    fn the_value_with_most_of_the_change_is_named() {
        let sources = json!([row("(none)", 70, 60), row("google.com", 60, 40), row("t.co", 1, 9)]);
        let more = overview(130, sources, json!([]));
        assert_eq!(mover_in_words(&more).unwrap(), "Most of it: Referrer google.com, 20 more visitors.");
        let fewer = overview(99, json!([row("t.co", 1, 2), row("google.com", 60, 40)]), json!([]));
        assert_eq!(mover_in_words(&fewer).unwrap(), "Most of it: Referrer t.co, 1 fewer visitor.");
    }

    #[test]
    fn a_small_part_and_no_change_name_nothing() {
        let small = json!([row("google.com", 41, 40)]);
        let by_page = overview(130, small.clone(), json!([row("/pricing", 50, 30)]));
        assert_eq!(mover_in_words(&by_page).unwrap(), "Most of it: Page /pricing, 20 more visitors.");
        assert_eq!(mover_in_words(&overview(130, small.clone(), json!([]))), None);
        assert_eq!(mover_in_words(&overview(100, small, json!([]))), None);
        assert_eq!(mover_in_words(&json!({})), None);
    }
}
