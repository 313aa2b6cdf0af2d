//! Page entries: limits of their data, and the template that renders them.
//!
//! Entries come from visitors, so their values are untrusted text wherever the template puts them: they can't add
//! markup, scripts, styles or active URLs.

mod placeholders;
mod template;
mod urls;
mod value_text;

use serde_json::{Map, Value};

use crate::{FieldError, json_bytes};

pub use template::{RENDERED_BYTES_MAX, RenderedEntries, Template};
use value_text::value_text;

/// Maximum number of entries of a page.
pub const ENTRIES_MAX: i32 = 500;
/// Maximum size of an entry's data, as JSON.
pub const DATA_BYTES_MAX: usize = 16 * 1024;
/// Maximum size of all archives of an account: their entries as JSON, 100 bytes more for each, and their templates.
pub const ARCHIVES_BYTES_MAX: i64 = 64 << 20;
/// Regular expression of a placeholder's name.
pub const PLACEHOLDER_PATTERN: &str = "^[A-Za-z0-9_.-]{1,64}$";

/// Validates an entry template.
pub fn check_template(template: &str) -> Option<FieldError> {
    let message = Template::parse(template).err()?;
    Some(FieldError::new("entryTemplate", "template", format!("entryTemplate: {message}")))
}

/// Validates an entry's data: every value must be displayable.
pub fn check_data(data: &Map<String, Value>) -> Vec<FieldError> {
    let wrong = data.iter().filter(|(_, value)| value_text(value).is_none());
    let field_error = |(key, _): (&String, &Value)| {
        let field = format!("data.{key}");
        let message = format!("{field} must be a text, a number, true, false, null, or a list of these");
        FieldError::new(field, "type", message)
    };
    wrong.map(field_error).collect()
}

/// Returns whether the data exceeds the maximum size of an entry.
pub fn is_too_large(data: &Map<String, Value>) -> bool {
    json_bytes(data) > DATA_BYTES_MAX
}

#[cfg(test)]
mod tests;
