//! Errors of files in submissions.

use domain::FieldError;
use domain::fields::Field;
use web::{Code, Problem};

pub(super) fn file_error(field: &Field, code: &'static str, message: impl Into<String>) -> FieldError {
    FieldError::new(&field.name, code, message)
}

/// The file's type is not among those of the field.
pub(super) fn type_not_accepted(field: &Field) -> FieldError {
    file_error(field, "file_kind", accepted_types(field))
}

/// Returns the message that lists the types of a field.
pub(super) fn accepted_types(field: &Field) -> String {
    let accept = field.accept.as_deref().unwrap_or_default();
    format!("{} only takes these files: {accept}", field.label)
}

/// The answer is not the id of an unbound file of this field.
pub(super) fn unknown_file(field: &Field) -> FieldError {
    let message = format!(
        "{} takes the objectId of a file that was uploaded for this field of this form, and submitted with no other \
         submission",
        field.label
    );
    file_error(field, "file", message)
}

/// The owner's account has no storage left.
pub(crate) fn storage_full() -> Problem {
    Problem::new(Code::QuotaExceeded, "the account of this form has no storage left for more files")
}
