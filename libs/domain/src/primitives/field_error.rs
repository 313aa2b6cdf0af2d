//! Validation errors of single fields, and the checks that most fields share.

use schemars::JsonSchema;
use serde::Serialize;

/// Upper bound of the errors that one response lists: a request can have thousands of invalid fields.
pub const FIELD_ERRORS_MAX: usize = 50;

/// One invalid field of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FieldError {
    /// Path of the field, such as `fields[2].options`.
    pub field: String,
    /// The broken rule, a stable snake_case name.
    pub code: &'static str,
    /// What is wrong and what would be valid, as a sentence.
    pub message: String,
}

impl FieldError {
    /// Creates an error of `field`.
    pub fn new(field: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self { field: field.into(), code, message: message.into() }
    }
}

/// Pushes an error unless `text` has between `min` and `max` characters.
pub(crate) fn check_length(errors: &mut Vec<FieldError>, field: &str, text: &str, min: usize, max: usize) {
    let length = text.chars().count();
    if length < min && min == 1 {
        errors.push(FieldError::new(field, "required", format!("{field} must not be empty")));
    } else if length < min {
        errors.push(FieldError::new(field, "too_short", format!("{field} needs at least {min} characters")));
    } else if length > max {
        errors.push(FieldError::new(field, "too_long", format!("{field} may have at most {max} characters")));
    }
    check_nul(errors, field, text);
}

/// Pushes an error unless `text` has at most `max` bytes of UTF-8.
pub(crate) fn check_bytes(errors: &mut Vec<FieldError>, field: &str, text: &str, max: usize) {
    if text.len() > max {
        let message = format!("{field} may have at most {} KB, this has {} bytes", max / 1024, text.len());
        errors.push(FieldError::new(field, "too_long", message));
    }
    check_nul(errors, field, text);
}

fn check_nul(errors: &mut Vec<FieldError>, field: &str, text: &str) {
    if text.contains('\0') {
        errors.push(FieldError::new(field, "nul", format!("{field} must not contain a NUL character")));
    }
}
