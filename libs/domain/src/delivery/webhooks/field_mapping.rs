//! The fields of a delivery: their order and labels, which are those of the form, and their names by the webhook's
//! field mapping.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::in_order;

/// Maximum number of names in `fieldMapping`.
pub const MAPPED_MAX: usize = 200;
/// Maximum length of a name in `fieldMapping`, old or new, in characters.
pub const MAPPED_CHARS_MAX: usize = 200;

/// A field of a form, as a delivery needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldLabel {
    pub name: String,
    /// The label that visitors read.
    pub label: String,
}

/// How the fields of a delivery are ordered and called.
#[derive(Debug, Clone, Copy, Default)]
pub struct FieldNames<'a> {
    /// The webhook's new names, by field name.
    pub mapping: Option<&'a Map<String, Value>>,
    /// The fields of the form, in its order; empty if the event has no form.
    pub form: &'a [FieldLabel],
}

/// A field of a delivery under its new name.
#[derive(Debug)]
struct Renamed<'a> {
    name: &'a str,
    /// Equal to `name` unless the webhook renames the field.
    target: &'a str,
    value: &'a Value,
}

impl FieldNames<'_> {
    /// Returns the fields in the form's order under their new names, for programs.
    pub(super) fn apply(&self, fields: &Map<String, Value>) -> Map<String, Value> {
        let ordered = self.order(fields);
        let renamed = self.rename(&ordered);
        renamed.into_iter().map(|field| (field.target.to_owned(), field.value.clone())).collect()
    }

    /// Returns the fields in the form's order for people: under their new names, else under the form's labels.
    pub(crate) fn label(&self, fields: &Map<String, Value>) -> Vec<(String, Value)> {
        let ordered = self.order(fields);
        let label_of = |field: &Renamed<'_>| {
            let of_form = || self.form.iter().find(|one| one.name == field.name);
            let label = (field.target == field.name).then(of_form).flatten().map(|one| one.label.as_str());
            label.filter(|label| !label.trim().is_empty()).unwrap_or(field.target).to_owned()
        };
        let renamed = self.rename(&ordered);
        renamed.into_iter().map(|field| (label_of(&field), field.value.clone())).collect()
    }

    fn order(&self, fields: &Map<String, Value>) -> Map<String, Value> {
        in_order(fields.clone(), self.form.iter().map(|field| field.name.as_str()))
    }

    /// Renames the fields. No two get the same name: a field keeps its own one if the new one belongs to another field.
    /// Settings that would cause this are rejected, but a form may have been older than that rule, and two changes at once,
    /// of the mapping and of the form's fields, are not compared with each other.
    fn rename<'a>(&'a self, fields: &'a Map<String, Value>) -> Vec<Renamed<'a>> {
        let target_of =
            |name: &String| self.mapping.and_then(|mapping| mapping.get(name)).and_then(Value::as_str);
        let mut renamed: Vec<Renamed<'_>> = fields
            .iter()
            .map(|(name, value)| Renamed { name, target: target_of(name).unwrap_or(name), value })
            .collect();
        // A field that takes its own name back may be in the way of another one. Each round but the last one gives at
        // least one field its own name.
        while let Some(place) = find_collision(&renamed) {
            renamed[place].target = renamed[place].name;
        }
        renamed
    }
}

/// Returns the place of a renamed field that has the name of another one.
fn find_collision(fields: &[Renamed<'_>]) -> Option<usize> {
    let mut first = BTreeMap::new();
    fields.iter().enumerate().find_map(|(place, field)| {
        let earlier = *first.entry(field.target).or_insert(place);
        let is_renamed = |place: &usize| fields[*place].target != fields[*place].name;
        // Of two, at most one has it as its own name.
        (earlier != place).then_some([place, earlier]).into_iter().flatten().find(is_renamed)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apply(fields: Value, mapping: Value, form: &[FieldLabel]) -> String {
        let names = FieldNames { mapping: mapping.as_object(), form };
        Value::Object(names.apply(fields.as_object().unwrap())).to_string()
    }

    fn form() -> Vec<FieldLabel> {
        let field =
            |(name, label): (&str, &str)| FieldLabel { name: name.to_owned(), label: label.to_owned() };
        [("last_name", "Last name"), ("email", "E-mail"), ("age", " ")].map(field).to_vec()
    }

    #[test]
    fn mapping_renames_and_loses_no_other_field() {
        let of = |fields: Value, mapping: Value| apply(fields, mapping, &[]);
        let fields = json!({"email": "a@b.co", "name": "A"});
        assert_eq!(of(fields.clone(), json!({"email": "contact"})), r#"{"contact":"a@b.co","name":"A"}"#);
        assert_eq!(of(fields.clone(), json!({"email": "name"})), r#"{"email":"a@b.co","name":"A"}"#);
        assert_eq!(of(fields.clone(), json!({"name": "email"})), r#"{"email":"a@b.co","name":"A"}"#);
        assert_eq!(
            of(fields.clone(), json!({"name": "email", "email": "name"})),
            r#"{"name":"a@b.co","email":"A"}"#
        );
        assert_eq!(of(fields, json!({"name": "x", "email": "x"})), r#"{"x":"a@b.co","name":"A"}"#);
        // The second field takes its own name back, which the first one had got.
        let chain = json!({"a": "b", "b": "c", "c": "d", "d": "e", "e": "e"});
        let all = json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5});
        assert_eq!(of(all, chain), r#"{"a":1,"b":2,"c":3,"d":4,"e":5}"#);
    }

    #[test]
    fn a_conflict_that_two_changes_at_once_have_made_loses_no_answer() {
        // A PATCH of a webhook maps `mail` to `phone`, while a PUT of the form adds `phone` and another mapped field.
        let mapping = json!({"mail": "phone", "fax": "phone"});
        let names = FieldNames { mapping: mapping.as_object(), form: &[] };
        let stored = json!({"mail": "a@b.co", "phone": "555", "fax": "556"});
        let sent = names.apply(stored.as_object().unwrap());
        assert_eq!(Value::Object(sent), stored);
        assert_eq!(names.label(stored.as_object().unwrap()).len(), 3);
    }

    #[test]
    fn fields_have_the_order_of_the_form_and_people_read_its_labels() {
        // As Postgres returns them.
        let stored = json!({"age": 7, "gone": true, "email": "a@b.co", "last_name": "B"});
        let sent = apply(stored.clone(), json!({"email": "contact"}), &form());
        assert_eq!(sent, r#"{"last_name":"B","contact":"a@b.co","age":7,"gone":true}"#);
        let mapping = json!({"email": "contact"});
        let names = FieldNames { mapping: mapping.as_object(), form: &form() };
        let shown: Vec<String> =
            names.label(stored.as_object().unwrap()).into_iter().map(|(label, _)| label).collect();
        assert_eq!(shown, ["Last name", "contact", "age", "gone"]);
    }
}
