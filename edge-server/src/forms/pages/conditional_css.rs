//! Style rules that show or hide a form's fields by their `showIf`, so that it works without JavaScript.
//!
//! CSS can only depend on choices. A field that depends on text is always visible; the server ignores answers to fields that
//! should be hidden. No text of an owner gets into a rule: fields appear by name (letters, digits, `_` and `-`), and options
//! by index.

use std::collections::BTreeMap;

use domain::fields::{Display, Field, FieldType, ShowIf};
use serde_json::Value;

/// Returns the rules for a form's fields, which are elements with the id `ask-<name>`.
pub(crate) fn rules(fields: &[Field]) -> String {
    let mut conditions: BTreeMap<&str, String> = BTreeMap::new();
    let mut rules = String::new();
    for field in fields {
        let Some(ShowIf { field: name, equals }) = &field.show_if else { continue };
        let Some(other) = fields.iter().find(|other| other.name == *name) else { continue };
        let Some(condition) = condition(other, equals) else { continue };
        // The other field must be visible itself.
        let condition = format!("{condition}{}", conditions.get(name.as_str()).map_or("", String::as_str));
        rules += &format!("#ask-{0}{{display:none}}form{condition} #ask-{0}{{display:block}}\n", field.name);
        conditions.insert(&field.name, condition);
    }
    rules
}

/// Returns a selector of the form element that matches while `other` has this answer.
fn condition(other: &Field, equals: &Value) -> Option<String> {
    let index = || other.options.iter().position(|option| equals.as_str() == Some(option));
    let id = format!("#field-{}", other.name);
    match other.kind {
        FieldType::Checkbox if *equals == Value::Bool(true) => Some(format!(":has({id}:checked)")),
        FieldType::Checkbox if *equals == Value::Bool(false) => Some(format!(":not(:has({id}:checked))")),
        FieldType::Select if other.display == Some(Display::Radio) => {
            index().map(|at| format!(":has({id}-{}:checked)", at + 1))
        }
        FieldType::Number => {
            let points = other.scale()?;
            let at = points.clone().position(|point| equals.as_f64() == Some(point as f64))?;
            Some(format!(":has({id}-{}:checked)", at + 1))
        }
        // The first option is empty.
        FieldType::Select => index().map(|at| format!(":has({id} option:nth-of-type({}):checked)", at + 2)),
        FieldType::Multiselect => index().map(|at| format!(":has({id}-{}:checked)", at + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn follows_chained_conditions_without_text_of_the_owner() {
        let fields: Vec<Field> = serde_json::from_value(json!([
            {"name": "plan", "label": "P", "type": "select", "options": ["a", "</style><script>"]},
            {"name": "more", "label": "M", "type": "checkbox",
             "showIf": {"field": "plan", "equals": "</style><script>"}},
            {"name": "what", "label": "W", "type": "text", "showIf": {"field": "more", "equals": true}},
            {"name": "free", "label": "F", "type": "text", "showIf": {"field": "what", "equals": "</style>"}},
        ]))
        .unwrap();
        let plan = ":has(#field-plan option:nth-of-type(3):checked)";
        let expected = [
            format!("#ask-more{{display:none}}form{plan} #ask-more{{display:block}}\n"),
            format!(
                "#ask-what{{display:none}}form:has(#field-more:checked){plan} #ask-what{{display:block}}\n"
            ),
        ];
        assert_eq!(rules(&fields), expected.concat());
    }

    #[test]
    fn follows_radio_buttons_and_the_points_of_a_scale() {
        let fields: Vec<Field> = serde_json::from_value(json!([
            {"name": "plan", "label": "P", "type": "select", "options": ["a", "b"], "display": "radio"},
            {"name": "nps", "label": "N", "type": "number", "min": -1, "max": 3, "display": "scale"},
            {"name": "x", "label": "X", "type": "text", "showIf": {"field": "plan", "equals": "b"}},
            {"name": "y", "label": "Y", "type": "text", "showIf": {"field": "nps", "equals": 1}},
        ]))
        .unwrap();
        let rules = rules(&fields);
        assert!(rules.contains("form:has(#field-plan-2:checked) #ask-x{display:block}"), "{rules}");
        assert!(rules.contains("form:has(#field-nps-3:checked) #ask-y{display:block}"), "{rules}");
    }
}
