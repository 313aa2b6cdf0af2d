//! Results of a form: public ones, if its owner publishes them, and the owner's own.
//!
//! In the public ones, choices are counted from the first one on, so that a poll works. Numbers are published as count and mean, once
//! there are too many to identify a single one. All other answers stay private: texts, addresses, dates, files and
//! hidden fields. The owner also sees statistics of the numbers.

mod numbers;

use schemars::JsonSchema;
use serde::Serialize;

use crate::fields::{Field, FieldType};

pub use numbers::{HistogramPart, NumberResults, NumberSummary, PartCount};

/// Minimum number of numeric answers before their count and mean are published.
pub const NUMBERS_MIN: i64 = 5;

/// The count of one answer to a field; of a numeric field, the count and the mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// Name of the field.
    pub field: String,
    /// The answer as text; `None` for a numeric field.
    pub answer: Option<String>,
    /// Number of answers.
    pub count: i64,
    /// Mean of a numeric field.
    pub mean: Option<f64>,
}

/// The fields and options to count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Countable {
    /// Fields with each of their options.
    pub choices: Vec<(String, String)>,
    /// Numeric fields.
    pub numbers: Vec<String>,
}

/// Selects the fields that may be counted.
pub fn countable(fields: &[Field]) -> Countable {
    let mut countable = Countable::default();
    for field in fields {
        match field.kind {
            FieldType::Number => countable.numbers.push(field.name.clone()),
            _ => countable
                .choices
                .extend(options_of(field).map(|option| (field.name.clone(), option.to_owned()))),
        }
    }
    countable
}

fn options_of(field: &Field) -> impl Iterator<Item = &str> {
    let of_box: &[&str] = if field.kind == FieldType::Checkbox { &["true", "false"] } else { &[] };
    let chosen = match field.kind {
        FieldType::Select | FieldType::Multiselect => field.options.as_slice(),
        _ => &[],
    };
    of_box.iter().copied().chain(chosen.iter().map(String::as_str))
}

/// Results of one field.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FieldResults {
    /// Name of the field.
    pub name: String,
    /// Label of the field.
    pub label: String,
    /// Type of the field.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Count of each option, in the form's order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<OptionResults>>,
    /// Number of numeric answers; present from five on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    /// Mean of the numeric answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
}

/// Count of one option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OptionResults {
    /// The option; `true` or `false` for a checkbox.
    pub value: String,
    /// How often the option was chosen.
    pub count: i64,
}

/// Results of one field, as the owner sees them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OwnFieldResults {
    /// Name of the field.
    pub name: String,
    /// Label of the field.
    pub label: String,
    /// Type of the field.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Count of each option, in the form's order; left out for a number field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<OptionResults>>,
    /// Statistics; left out unless it is a number field.
    #[serde(flatten)]
    pub numbers: Option<NumberResults>,
}

/// Returns the owner's results of these fields.
pub fn of_owner(
    fields: &[Field],
    tallies: &[Tally],
    summaries: &[NumberSummary],
    counts: &[PartCount],
) -> Vec<OwnFieldResults> {
    let with_numbers = |field: FieldResults| OwnFieldResults {
        numbers: (field.kind == FieldType::Number).then(|| numbers::of(&field.name, summaries, counts)),
        name: field.name,
        label: field.label,
        kind: field.kind,
        options: field.options,
    };
    of(fields, tallies).into_iter().map(with_numbers).collect()
}

/// Returns the public results of these fields.
pub fn of(fields: &[Field], tallies: &[Tally]) -> Vec<FieldResults> {
    let results = |field: &Field| {
        let own = || tallies.iter().filter(|tally| tally.field == field.name);
        let mut results = FieldResults {
            name: field.name.clone(),
            label: field.label.clone(),
            kind: field.kind,
            options: None,
            count: None,
            mean: None,
        };
        match field.kind {
            FieldType::Select | FieldType::Multiselect | FieldType::Checkbox => {
                let count = |option: &str| own().find(|tally| tally.answer.as_deref() == Some(option));
                let option = |option: &str| OptionResults {
                    value: option.to_owned(),
                    count: count(option).map_or(0, |tally| tally.count),
                };
                results.options = Some(options_of(field).map(option).collect());
            }
            FieldType::Number => {
                let numbers = own().find(|tally| tally.answer.is_none() && tally.count >= NUMBERS_MIN);
                results.count = numbers.map(|tally| tally.count);
                results.mean = numbers.and_then(|tally| tally.mean);
            }
            _ => return None,
        }
        Some(results)
    };
    fields.iter().filter_map(results).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields() -> Vec<Field> {
        let kinds =
            ["text", "email", "textarea", "url", "tel", "date", "hidden", "file", "number", "checkbox"];
        let mut fields: Vec<_> =
            kinds.iter().map(|kind| json!({"name": kind, "label": "L", "type": kind})).collect();
        fields.push(json!({"name": "vote", "label": "Vote", "type": "select", "options": ["x", "y"]}));
        fields.push(json!({"name": "many", "label": "Many", "type": "multiselect", "options": ["x", "y"]}));
        serde_json::from_value(json!(fields)).unwrap()
    }

    fn tally(field: &str, answer: Option<&str>, count: i64, mean: Option<f64>) -> Tally {
        Tally { field: field.to_owned(), answer: answer.map(str::to_owned), count, mean }
    }

    #[test]
    fn only_choices_and_numbers_are_counted_and_published() {
        let countable = countable(&fields());
        assert_eq!(countable.numbers, ["number"]);
        let pair = |name: &str, option: &str| (name.to_owned(), option.to_owned());
        let choices = [
            pair("checkbox", "true"),
            pair("checkbox", "false"),
            pair("vote", "x"),
            pair("vote", "y"),
            pair("many", "x"),
            pair("many", "y"),
        ];
        assert_eq!(countable.choices, choices);
        let all: Vec<Tally> =
            fields().iter().map(|field| tally(&field.name, Some("SECRET"), 9, None)).collect();
        let shown = serde_json::to_value(of(&fields(), &all)).unwrap();
        assert!(!shown.to_string().contains("SECRET"));
        let names: Vec<_> = shown.as_array().unwrap().iter().map(|field| field["name"].clone()).collect();
        assert_eq!(names, ["number", "checkbox", "vote", "many"]);
    }

    #[test]
    fn choices_count_from_the_first_and_numbers_from_the_fifth() {
        let shown = |count| {
            let tallies = [tally("number", None, count, Some(2.5)), tally("vote", Some("y"), 1, None)];
            serde_json::to_value(of(&fields(), &tallies)).unwrap()
        };
        assert_eq!(shown(4)[0], json!({"name": "number", "label": "L", "type": "number"}));
        assert_eq!(
            shown(5)[0],
            json!({"name": "number", "label": "L", "type": "number", "count": 5, "mean": 2.5})
        );
        assert_eq!(shown(5)[2]["options"], json!([{"value": "x", "count": 0}, {"value": "y", "count": 1}]));
    }
}
