//! What is wrong with one field of what somebody sent.

use serde::Serialize;

/// One thing wrong with one field: where, which rule, and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// Path of the field, `fields[2].options` style.
    pub field: String,
    /// Stable snake_case name of the rule, for programs.
    pub code: &'static str,
    /// A sentence for people: what was wrong and what would be right.
    pub message: String,
}

impl Complaint {
    /// A complaint about `field`.
    pub fn new(field: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self { field: field.into(), code, message: message.into() }
    }
}

/// Pushes a complaint unless `text` has between `min` and `max` characters.
pub(crate) fn check_length(into: &mut Vec<Complaint>, field: &str, text: &str, min: usize, max: usize) {
    let length = text.chars().count();
    if length < min && min == 1 {
        into.push(Complaint::new(field, "required", format!("{field} must not be empty")));
    } else if length < min {
        into.push(Complaint::new(field, "too_short", format!("{field} needs at least {min} characters")));
    } else if length > max {
        into.push(Complaint::new(field, "too_long", format!("{field} may have at most {max} characters")));
    }
    if text.contains('\0') {
        into.push(Complaint::new(field, "nul", format!("{field} must not contain a NUL character")));
    }
}

/// Pushes a complaint unless `text` has at most `max` bytes of UTF-8.
pub(crate) fn check_bytes(into: &mut Vec<Complaint>, field: &str, text: &str, max: usize) {
    if text.len() > max {
        let message = format!("{field} may have at most {} KB, this has {} bytes", max / 1024, text.len());
        into.push(Complaint::new(field, "too_long", message));
    }
    if text.contains('\0') {
        into.push(Complaint::new(field, "nul", format!("{field} must not contain a NUL character")));
    }
}
