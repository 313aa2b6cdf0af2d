//! The results of a form as bars.

use serde_json::{Value, json};

/// Adds to each option and each part of a histogram its share of the largest one, in percent.
pub(super) fn with_shares(mut results: Value) -> Value {
    for field in results["fields"].as_array_mut().into_iter().flatten() {
        for list in ["options", "histogram"] {
            let counts = field[list].as_array().into_iter().flatten();
            let most = counts.filter_map(|one| one["count"].as_f64()).fold(0.0, f64::max);
            for one in field[list].as_array_mut().into_iter().flatten() {
                let count = one["count"].as_f64().unwrap_or_default();
                one["share"] = json!(if most > 0.0 { (count / most * 100.0).round() } else { 0.0 });
            }
        }
        // A checkbox has two options, which people call otherwise.
        if field["type"] == "checkbox" {
            for option in field["options"].as_array_mut().into_iter().flatten() {
                let word = if option["value"] == "true" { "Yes" } else { "No" };
                option["value"] = json!(word);
            }
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_is_the_most_frequent_answer() {
        let results = json!({ "fields": [
            { "type": "select", "options": [{ "value": "true", "count": 1 }, { "value": "b", "count": 4 }] },
            { "type": "checkbox", "options": [{ "value": "true", "count": 0 }, { "value": "false", "count": 0 }] },
            { "type": "number", "histogram": [{ "from": 0.0, "to": 5.0, "count": 3 }] }] });
        let shown = with_shares(results);
        let fields = &shown["fields"];
        assert_eq!(
            (&fields[0]["options"][0]["share"], &fields[0]["options"][1]["share"]),
            (&json!(25.0), &json!(100.0))
        );
        assert_eq!(fields[0]["options"][0]["value"], "true");
        assert_eq!(
            (&fields[1]["options"][0]["value"], &fields[1]["options"][1]["share"]),
            (&json!("Yes"), &json!(0.0))
        );
        assert_eq!(fields[2]["histogram"][0]["share"], 100.0);
    }
}
