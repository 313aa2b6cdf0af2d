//! What everybody may know of a form's answers, where its owner shows results.
//!
//! Of choices how often each was made, from the first on, so that a poll is one; of numbers how many there are and what
//! they come to, once they are too many to tell one from the others. Of everything else nothing: texts, addresses,
//! days, files and hidden fields are their givers' own.

use schemars::JsonSchema;
use serde::Serialize;

use crate::fields::{Field, FieldType};

/// Numbers are told from so many on.
pub const NUMBERS_MIN: i64 = 5;

/// How often a field was given one answer; or, of a field of numbers, how many there are and what they come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// The field's name.
    pub field: String,
    /// The answer as a text; none of numbers.
    pub answer: Option<String>,
    /// How many.
    pub count: i64,
    /// The mean of the numbers.
    pub mean: Option<f64>,
}

/// What is to be counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Countable {
    /// Fields with each of their options.
    pub choices: Vec<(String, String)>,
    /// Fields of numbers.
    pub numbers: Vec<String>,
}

/// What of these fields is to be counted.
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

/// One field's results.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FieldResults {
    /// The field's name.
    pub name: String,
    /// What people read.
    pub label: String,
    /// What kind of answer.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// How often each option was chosen, in the form's order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<OptionResults>>,
    /// How many numbers were given; from five on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    /// What they come to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
}

/// How often an option was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OptionResults {
    /// The option; of a checkbox `true` or `false`.
    pub value: String,
    /// How often.
    pub count: i64,
}

/// The results of these fields, of what was counted.
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
    fn only_choices_and_numbers_are_asked_for_and_shown_whatever_comes() {
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
