//! Entries of pages: what they may hold, and how a page's template shows them.
//!
//! Whoever fills in an entry is a stranger, so what they wrote is text wherever the template puts it: no markup, no
//! script, no style, no address that runs one.

mod placeholders;
mod template;
mod urls;

use serde_json::{Map, Value};

use crate::FieldError;

pub use template::Template;

/// Most entries of a page.
pub const ENTRIES_MAX: i32 = 500;
/// Most bytes of an entry's data, as JSON.
pub const DATA_BYTES_MAX: usize = 16 * 1024;
/// How a placeholder is called, as a regular expression.
pub const PLACEHOLDER_PATTERN: &str = "^[A-Za-z0-9_.-]{1,64}$";

/// What is wrong with a template of entries.
pub fn check_template(template: &str) -> Option<FieldError> {
    let message = Template::parse(template).err()?;
    Some(FieldError::new("entryTemplate", "template", format!("entryTemplate: {message}")))
}

/// What is wrong with the data of an entry: each value must be one that can be shown.
pub fn check_data(data: &Map<String, Value>) -> Vec<FieldError> {
    let wrong = data.iter().filter(|(_, value)| text(value).is_none());
    let field_error = |(key, _): (&String, &Value)| {
        let field = format!("data.{key}");
        let message = format!("{field} must be a text, a number, true, false, null, or a list of these");
        FieldError::new(field, "type", message)
    };
    wrong.map(field_error).collect()
}

/// Whether the data is larger than an entry may be.
pub fn is_too_large(data: &Map<String, Value>) -> bool {
    let mut counter = Counter(0);
    // Counting never fails.
    let counted = serde_json::to_writer(&mut counter, data);
    counted.is_err() || counter.0 > DATA_BYTES_MAX
}

/// Counts what is written to it.
struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A value as it is shown: nothing for null, lists with commas. `None` for what can't be shown.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(bool) => Some(bool.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let scalar = |item: &Value| if item.is_array() { None } else { text(item) };
            Some(items.iter().map(scalar).collect::<Option<Vec<_>>>()?.join(", "))
        }
        Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests;
