//! Reads the fields of stored forms.
//!
//! A newer release may have stored properties that this one does not know. Requests with them are refused, but a stored form must
//! stay readable while programs of two releases work on one database.

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

use crate::fields::{Display, Field};

/// The properties of [`Field`].
const PROPERTIES: [&str; 18] = [
    "name",
    "label",
    "type",
    "required",
    "placeholder",
    "help",
    "display",
    "options",
    "minLength",
    "maxLength",
    "pattern",
    "patternHint",
    "min",
    "max",
    "accept",
    "maxFileSize",
    "effectiveMaxFileSize",
    "showIf",
];
/// The properties of its `showIf`.
const CONDITION_PROPERTIES: [&str; 2] = ["field", "equals"];

/// The fields of a stored form. Unknown properties are ignored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFields(pub Vec<Field>);

impl<'de> Deserialize<'de> for StoredFields {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let stored = Vec::<Map<String, Value>>::deserialize(reader)?;
        let read = |mut field: Map<String, Value>| {
            field.retain(|name, _| PROPERTIES.contains(&name.as_str()));
            if let Some(Value::Object(condition)) = field.get_mut("showIf") {
                condition.retain(|name, _| CONDITION_PROPERTIES.contains(&name.as_str()));
            }
            if field.get("display").is_some_and(|display| Display::deserialize(display).is_err()) {
                // A rendering of a newer release: the default one takes the same answers.
                field.remove("display");
            }
            serde_json::from_value(Value::Object(field)).map_err(de::Error::custom)
        };
        stored.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ignores_what_a_newer_release_has_stored_while_requests_with_it_are_refused() {
        let stored = json!([{"name": "a", "label": "A", "type": "select", "options": ["x"], "display": "carousel",
                             "shade": "teal", "showIf": {"field": "b", "equals": "y", "unless": 1}}]);
        let known = json!([{"name": "a", "label": "A", "type": "select", "options": ["x"],
                            "showIf": {"field": "b", "equals": "y"}}]);
        let read: StoredFields = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(read.0, serde_json::from_value::<Vec<Field>>(known).unwrap());
        assert!(serde_json::from_value::<Vec<Field>>(stored).is_err(), "requests are strict");
        assert!(serde_json::from_value::<StoredFields>(json!([{"name": "a"}])).is_err());
    }

    #[test]
    fn knows_every_property_of_a_field() {
        let schema = schemars::schema_for!(Field);
        let mut properties: Vec<_> =
            schema.as_value()["properties"].as_object().unwrap().keys().cloned().collect();
        let mut ours = PROPERTIES.map(str::to_owned).to_vec();
        properties.sort();
        ours.sort();
        assert_eq!(ours, properties);
    }
}
