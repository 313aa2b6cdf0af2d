//! Reads arguments and bounds results.

use rhai::Dynamic;

use crate::expressions::{limits::TEXT_BYTES_MAX, values};

/// What a function returns; the error is a sentence without a subject.
pub(super) type Outcome = Result<Dynamic, String>;

pub(super) fn text(value: &Dynamic) -> Result<String, String> {
    values::to_text(value)
}

pub(super) fn whole(value: &Dynamic) -> Result<i64, String> {
    value.as_int().map_err(|_| "a whole number is needed".to_owned())
}

/// Returns a text, unless it is too long.
pub(super) fn bounded(text: String) -> Outcome {
    check_bytes(text.len())?;
    Ok(text.into())
}

pub(super) fn check_bytes(bytes: usize) -> Result<(), String> {
    if bytes > TEXT_BYTES_MAX {
        return Err(format!("a text may have at most {} KB", TEXT_BYTES_MAX >> 10));
    }
    Ok(())
}
