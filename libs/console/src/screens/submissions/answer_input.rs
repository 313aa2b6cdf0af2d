//! The inputs for the answers of a submission, by the types of the form's fields, and the answers that they post.

use chrono::NaiveDate;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::form_submission::FormSubmission;

/// An input for an answer.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct AnswerInput {
    /// The name that the API's problems have: `payload.email`.
    name: String,
    label: String,
    hint: String,
    kind: Kind,
    value: String,
    options: Vec<String>,
    chosen: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// One line. No type of HTML: browsers change or refuse values that the API takes.
    Text,
    Area,
    Date,
    Select,
    Multiselect,
    Checkbox,
}

/// Returns the inputs with the stored answers, or with those of a form that was refused. Files have none.
pub(super) fn inputs(form: &Value, payload: &Value, posted: Option<&FormSubmission>) -> Vec<AnswerInput> {
    fields(form).map(|field| input(field, payload, posted)).collect()
}

/// Returns the posted answers; null for none.
pub(super) fn answers(form: &Value, posted: &FormSubmission) -> Map<String, Value> {
    fields(form).filter_map(|field| Some((name_of(field).to_owned(), answer(field, posted)?))).collect()
}

/// Returns the posted answers that differ from the stored ones, so that others can change the rest meanwhile.
pub(super) fn changes(form: &Value, payload: &Value, posted: &FormSubmission) -> Map<String, Value> {
    let is_same = |name: &str, new: &Value| match (&payload[name], new) {
        (Value::Null, new) => new.is_null() || *new == false,
        (Value::String(old), Value::String(new)) => old.replace("\r\n", "\n") == *new,
        (old, new) => old == new,
    };
    answers(form, posted).into_iter().filter(|(name, new)| !is_same(name, new)).collect()
}

fn fields(form: &Value) -> impl Iterator<Item = &Value> {
    form["fields"].as_array().into_iter().flatten().filter(|field| field["type"] != "file")
}

fn name_of(field: &Value) -> &str {
    field["name"].as_str().unwrap_or_default()
}

fn input_name(field: &Value) -> String {
    format!("payload.{}", name_of(field))
}

fn list_name(field: &Value) -> String {
    format!("{}[]", input_name(field))
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn input(field: &Value, payload: &Value, posted: Option<&FormSubmission>) -> AnswerInput {
    let text = |member: &str| field[member].as_str().unwrap_or_default().to_owned();
    let (name, stored) = (input_name(field), &payload[name_of(field)]);
    let value = match posted {
        Some(posted) => posted.get(&name).unwrap_or_default().to_owned(),
        None => match stored {
            Value::Null => String::new(),
            Value::Array(_) if field["type"] == "multiselect" => String::new(),
            Value::String(text) => text.clone(),
            Value::Bool(is_checked) => if *is_checked { "on" } else { "" }.to_owned(),
            other => other.to_string(),
        },
    };
    let chosen = match posted {
        Some(posted) => posted.all(&list_name(field)).map(str::to_owned).collect(),
        None => texts(stored),
    };
    let mut options = texts(&field["options"]);
    // An answer from before the options changed stays until it is changed.
    let former = chosen.iter().chain([&value]).filter(|one| !one.is_empty());
    let former: Vec<_> = former.filter(|one| !options.contains(one)).cloned().collect();
    options.extend(former);
    let is_date = value.is_empty() || value.parse::<NaiveDate>().is_ok();
    let kind = match field["type"].as_str().unwrap_or_default() {
        "select" => Kind::Select,
        "multiselect" => Kind::Multiselect,
        "checkbox" => Kind::Checkbox,
        "date" if is_date => Kind::Date,
        "textarea" => Kind::Area,
        _ if value.contains('\n') => Kind::Area,
        _ => Kind::Text,
    };
    let label = Some(text("label")).filter(|label| !label.is_empty());
    let label = label.unwrap_or_else(|| name_of(field).to_owned());
    AnswerInput { name, label, hint: text("help"), kind, value, options, chosen }
}

/// Returns the posted answer to a field; `None` if the form had no input for it.
fn answer(field: &Value, posted: &FormSubmission) -> Option<Value> {
    if field["type"] == "multiselect" {
        let list = list_name(field);
        posted.all(&list).next()?;
        let chosen: Vec<_> = posted.all(&list).filter(|option| !option.is_empty()).collect();
        return Some(if chosen.is_empty() { Value::Null } else { json!(chosen) });
    }
    let name = input_name(field);
    posted.all(&name).next()?;
    let text = posted.get(&name).unwrap_or_default();
    Some(match field["type"].as_str().unwrap_or_default() {
        "checkbox" => json!(text == "on"),
        _ if text.is_empty() => Value::Null,
        "number" => number(text.trim()),
        // Browsers post the line ends of Windows.
        _ => json!(text.replace("\r\n", "\n")),
    })
}

/// Returns a number as it was written. Text that is none stays text, so that the API says so.
fn number(text: &str) -> Value {
    let written = serde_json::from_str::<Value>(text).ok().filter(Value::is_number);
    let parsed = || text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from);
    written.or_else(parsed).unwrap_or_else(|| json!(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Value {
        json!({ "fields": [
            { "type": "text", "name": "name", "label": "Name" },
            { "type": "textarea", "name": "message", "label": "Message" },
            { "type": "number", "name": "guests", "label": "Guests" },
            { "type": "select", "name": "plan", "label": "Plan", "options": ["A", "B"] },
            { "type": "multiselect", "name": "tags", "label": "Tags", "options": ["x", "y"] },
            { "type": "checkbox", "name": "agreed", "label": "Agreed" },
            { "type": "date", "name": "day", "label": "Day" },
            { "type": "file", "name": "cv", "label": "CV" }] })
    }

    #[test]
    fn only_changed_answers_are_sent_with_their_types() {
        let payload = json!({ "name": "Mary", "message": "one\ntwo", "guests": 2, "plan": "A", "tags": ["x"], "cv": "f" });
        let same = "payload.name=Mary&payload.message=one%0D%0Atwo&payload.guests=2&payload.plan=A&payload.tags[]=&\
                    payload.tags[]=x&payload.agreed=&payload.day=";
        assert_eq!(changes(&form(), &payload, &FormSubmission::parse(same)), Map::new());
        let other = "payload.name=&payload.guests=2.5&payload.plan=B&payload.tags[]=&payload.agreed=&payload.agreed=on&\
                     payload.day=2026-11-28&payload.unknown=x&payload.cv=x";
        let changed = json!({ "name": null, "guests": 2.5, "plan": "B", "tags": null, "agreed": true, "day": "2026-11-28" });
        assert_eq!(Value::Object(changes(&form(), &payload, &FormSubmission::parse(other))), changed);
        let wrong = answers(&form(), &FormSubmission::parse("payload.guests=many"));
        assert_eq!(Value::Object(wrong), json!({ "guests": "many" }));
    }

    #[test]
    fn an_input_keeps_what_its_field_no_longer_offers() {
        let payload =
            json!({ "name": "a\nb", "plan": "Old", "tags": ["y", "z"], "day": "soon", "agreed": true });
        let shown = inputs(&form(), &payload, None);
        let kinds: Vec<_> = shown.iter().map(|input| input.kind).collect();
        let expected =
            [Kind::Area, Kind::Area, Kind::Text, Kind::Select, Kind::Multiselect, Kind::Checkbox, Kind::Text];
        assert_eq!(kinds, expected);
        assert_eq!(shown[3].options, ["A", "B", "Old"]);
        assert_eq!(
            (shown[4].options.as_slice(), shown[4].chosen.len()),
            (["x", "y", "z"].map(str::to_owned).as_slice(), 2)
        );
        assert_eq!(shown[5].value, "on");
        let posted = FormSubmission::parse("payload.name=New&payload.tags[]=&payload.tags[]=x");
        let kept = inputs(&form(), &payload, Some(&posted));
        assert_eq!((kept[0].value.as_str(), kept[4].chosen.contains(&"x".to_owned())), ("New", true));
    }
}
