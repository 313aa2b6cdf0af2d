//! The items of a [`super::JsonOfItems`], each of which succeeds or fails on its own.

use domain::FieldError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::json::read;
use super::wrong_types;
use crate::{Problem, nul_characters};

/// Upper bound of the characters of an invalid id in a response.
const SHOWN_CHARS_MAX: usize = 100;

/// Parses one item of a [`super::JsonOfItems`]. The problem's field path is relative to the item.
pub fn read_item<T: DeserializeOwned + JsonSchema>(item: Value) -> Result<T, Problem> {
    if !item.is_object() {
        let field_error = FieldError::new("item", "type", "the item must be a JSON object");
        return Err(Problem::validation(vec![field_error]));
    }
    if let Some(field_error) = nul_characters::field_error_of(&item) {
        return Err(Problem::validation(vec![field_error]));
    }
    read(&item).map_err(|error| Problem::validation(wrong_types::of_value::<T>(&item, error)))
}

/// Parses an item that is an id; `None` if it is none.
pub fn read_id(item: &Value) -> Option<Uuid> {
    Uuid::parse_str(item.as_str()?).ok()
}

/// Returns the id of an item as it was sent, at most its first 100 characters.
pub fn shown_id(item: &Value) -> String {
    let text = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
    text.chars().take(SHOWN_CHARS_MAX).collect()
}
