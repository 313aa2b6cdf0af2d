//! The order of the members of a JSON object, which a `jsonb` of Postgres does not keep.

use serde_json::{Map, Value};

/// Returns the members in the order of `names`, such as the answers of a submission in the order of its form's fields. Other
/// members follow in the order that they had.
pub fn in_order<'a>(
    mut members: Map<String, Value>,
    names: impl IntoIterator<Item = &'a str>,
) -> Map<String, Value> {
    let mut ordered = Map::with_capacity(members.len());
    for name in names {
        if let Some((name, value)) = members.shift_remove_entry(name) {
            ordered.insert(name, value);
        }
    }
    ordered.append(&mut members);
    ordered
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_have_the_order_of_the_form() {
        let answers = json!({"z": 1, "gone": 2, "name": 3, "also_gone": 4});
        let ordered = in_order(answers.as_object().unwrap().clone(), ["name", "none", "z"]);
        assert_eq!(Value::Object(ordered).to_string(), r#"{"name":3,"z":1,"gone":2,"also_gone":4}"#);
    }
}
