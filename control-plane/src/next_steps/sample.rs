//! Answers of a test submission.

use domain::answers::{self, Answers};
use domain::fields::{Field, FieldType};
use serde_json::{Value, json};

/// The parameter of the operation that the path takes; an answer can't have its name.
const PATH_PARAMETER: &str = "id";

/// Returns answers that the form accepts: to its required fields, or to the first one if none is required. `None` if only
/// a person knows them, as a file or a text that must match a pattern.
pub(super) fn sample(fields: &[Field]) -> Option<Answers> {
    let is_required = fields.iter().any(|field| field.required);
    let asked = fields.iter().filter(|field| field.required || !is_required);
    let count = if is_required { usize::MAX } else { 1 };
    let mut given = Answers::new();
    for field in asked.take(count) {
        if field.pattern.is_some() || field.name == PATH_PARAMETER {
            return None;
        }
        given.insert(field.name.clone(), value(field)?);
    }
    answers::check(fields, &given).ok().filter(|accepted| !accepted.is_empty())
}

fn value(field: &Field) -> Option<Value> {
    Some(match field.kind {
        FieldType::Text | FieldType::Textarea | FieldType::Hidden => json!(text(field)),
        FieldType::Email => json!("ada@example.com"),
        FieldType::Number => number(field.min.or(field.max).unwrap_or(1.0)),
        FieldType::Select => json!(field.options.first()?),
        FieldType::Multiselect => json!([field.options.first()?]),
        FieldType::Checkbox => json!(true),
        FieldType::Url => json!("https://example.com"),
        FieldType::Tel => json!("+1 555 0100"),
        FieldType::Date => json!("2030-01-31"),
        FieldType::File => return None,
    })
}

/// Returns a text of the field's length. Lengths that a name does not have are left to a person.
fn text(field: &Field) -> String {
    let text = if field.name.contains("name") { "Ada Lovelace" } else { "This is a test" };
    let (min, max) = (field.min_length.unwrap_or(0), field.max_length.unwrap_or(u32::MAX));
    let chars = usize::try_from(max).unwrap_or(usize::MAX);
    let mut text: String = text.chars().take(chars).collect();
    if min <= 1_000 {
        while text.len() < min as usize {
            text.push('.');
        }
    }
    text.trim_end().to_owned()
}

fn number(value: f64) -> Value {
    // Only whole numbers of this size are cast.
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}
