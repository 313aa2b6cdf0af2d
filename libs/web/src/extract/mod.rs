//! Extractors that reject invalid input with a problem that names the field.

mod body;
mod items;
mod json;
mod messages;
mod numbers;
mod path;
mod query;
mod query_text;
mod schema;
#[cfg(test)]
mod tests;
mod wrong_types;

pub use body::check_not_compressed;
pub use items::{read_id, read_item, shown_id};
pub use json::{Json, JsonOfItems, OptionalJson, json_syntax_error};
pub use numbers::{present, present_whole_number, whole_number, whole_number_or_null};
pub use path::Path;
pub use query::Query;
