//! The field mapping of a webhook: names of fields in its deliveries.

use serde_json::{Map, Value};

/// Maximum number of names in `fieldMapping`.
pub const MAPPED_MAX: usize = 200;
/// Maximum length of a name in `fieldMapping`, old or new, in characters.
pub const MAPPED_CHARS_MAX: usize = 200;

/// Renames `fields` by `mapping`. If two names collide, the first one wins.
pub fn map_fields(fields: &Map<String, Value>, mapping: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut mapped = Map::new();
    for (name, value) in fields {
        let target = mapping.and_then(|mapping| mapping.get(name)).and_then(Value::as_str).unwrap_or(name);
        mapped.entry(target).or_insert_with(|| value.clone());
    }
    mapped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mapping_renames_and_loses_no_other_field() {
        let fields = json!({"email": "a@b.co", "name": "A"});
        let mapping = json!({"email": "contact"});
        let mapped = map_fields(fields.as_object().unwrap(), mapping.as_object());
        assert_eq!(Value::Object(mapped), json!({"contact": "a@b.co", "name": "A"}));
    }
}
