//! The inputs for the answers of a submission, by the types of the form's fields, and the answers that they post.
//!
//! Each input is posted with a hash of what it showed. So two persons can edit a submission at the same time: only what the
//! viewer has changed is sent, and an answer that both have changed is found.

use chrono::NaiveDate;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::view::{EXCERPT_CHARS, text_of};
use crate::content_hash::content_hash;
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
    /// Name and value of the hidden input with the hash of the stored answer.
    shown_name: String,
    shown: String,
}

/// What an input holds: its text, and the chosen options of a list.
#[derive(Debug)]
struct InputContent {
    text: String,
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

/// Returns the inputs with the stored answers, or with those that a refused form has changed.
pub(super) fn inputs(form: &Value, payload: &Value, posted: Option<&FormSubmission>) -> Vec<AnswerInput> {
    fields(form).map(|field| input(field, payload, posted)).collect()
}

/// Returns the posted answers; null for none.
pub(super) fn answers(form: &Value, posted: &FormSubmission) -> Map<String, Value> {
    fields(form).filter_map(|field| Some((name_of(field).to_owned(), answer(field, posted)?))).collect()
}

/// Returns the posted answers that the viewer has changed.
pub(super) fn changes(form: &Value, posted: &FormSubmission) -> Map<String, Value> {
    let changed = fields(form).filter(|field| InputContent::changed(field, posted).is_some());
    changed.filter_map(|field| Some((name_of(field).to_owned(), answer(field, posted)?))).collect()
}

/// Returns the inputs that the viewer has changed while another person changed the stored answer to something else, each with a
/// message.
pub(super) fn conflicts(form: &Value, payload: &Value, posted: &FormSubmission) -> Vec<(String, String)> {
    let is_conflict = |field: &&Value| {
        let (stored, shown) = (InputContent::stored(field, payload).hash(), posted.get(&shown_name(field)));
        let changed = InputContent::changed(field, posted).filter(|new| new.hash() != stored);
        changed.is_some() && shown.is_some_and(|shown| shown != stored)
    };
    let message = |field: &Value| {
        let stored: String = text_of(&payload[name_of(field)]).chars().take(EXCERPT_CHARS).collect();
        let label = label_of(field);
        if stored.is_empty() {
            format!("{label}: another person deleted this answer. Save again to replace it.")
        } else {
            format!("{label}: another person changed this answer to “{stored}”. Save again to replace it.")
        }
    };
    fields(form).filter(is_conflict).map(|field| (input_name(field), message(field))).collect()
}

impl InputContent {
    /// Returns what an input shows of the stored answer, which may be from before the field got its type.
    fn stored(field: &Value, payload: &Value) -> Self {
        let stored = &payload[name_of(field)];
        match (field["type"].as_str().unwrap_or_default(), stored) {
            ("multiselect", _) => Self::new(String::new(), texts(stored)),
            ("checkbox", _) => Self::new(if *stored == true { "on" } else { "" }.to_owned(), Vec::new()),
            (_, Value::Null) => Self::new(String::new(), Vec::new()),
            (_, Value::String(text)) => Self::new(text.clone(), Vec::new()),
            (_, other) => Self::new(other.to_string(), Vec::new()),
        }
    }

    /// Returns what was posted; `None` if the form had no input for the field.
    fn posted(field: &Value, posted: &FormSubmission) -> Option<Self> {
        let (name, list) = (input_name(field), list_name(field));
        let is_list = field["type"] == "multiselect";
        posted.all(if is_list { &list } else { &name }).next()?;
        let chosen = posted.all(&list).filter(|option| !option.is_empty());
        Some(Self::new(posted.get(&name).unwrap_or_default().to_owned(), chosen.map(str::to_owned).collect()))
    }

    /// Returns what was posted if it is not what the input showed.
    fn changed(field: &Value, posted: &FormSubmission) -> Option<Self> {
        Self::posted(field, posted).filter(|new| posted.get(&shown_name(field)) != Some(&new.hash()))
    }

    fn new(text: String, chosen: Vec<String>) -> Self {
        // Browsers post the line ends of Windows.
        Self { text: text.replace("\r\n", "\n"), chosen }
    }

    fn hash(&self) -> String {
        // Browsers post options in the order of the page.
        let mut chosen = self.chosen.clone();
        chosen.sort();
        content_hash(&json!([self.text, chosen]).to_string())
    }
}

fn fields(form: &Value) -> impl Iterator<Item = &Value> {
    form["fields"].as_array().into_iter().flatten().filter(|field| field["type"] != "file")
}

fn name_of(field: &Value) -> &str {
    field["name"].as_str().unwrap_or_default()
}

fn label_of(field: &Value) -> &str {
    field["label"].as_str().filter(|label| !label.is_empty()).unwrap_or_else(|| name_of(field))
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

fn shown_name(field: &Value) -> String {
    format!("shown.{}", name_of(field))
}

fn input(field: &Value, payload: &Value, posted: Option<&FormSubmission>) -> AnswerInput {
    let text = |member: &str| field[member].as_str().unwrap_or_default().to_owned();
    let name = input_name(field);
    let stored = InputContent::stored(field, payload);
    let shown = stored.hash();
    let changed = posted.and_then(|posted| InputContent::changed(field, posted));
    let InputContent { text: value, chosen } = changed.unwrap_or(stored);
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
    AnswerInput {
        name,
        label: label_of(field).to_owned(),
        hint: text("help"),
        kind,
        value,
        options,
        chosen,
        shown_name: shown_name(field),
        shown,
    }
}

/// Returns the posted answer to a field; `None` if the form had no input for it.
fn answer(field: &Value, posted: &FormSubmission) -> Option<Value> {
    let InputContent { text, chosen } = InputContent::posted(field, posted)?;
    Some(match field["type"].as_str().unwrap_or_default() {
        "multiselect" if chosen.is_empty() => Value::Null,
        "multiselect" => json!(chosen),
        "checkbox" => json!(text == "on"),
        _ if text.is_empty() => Value::Null,
        "number" => number(text.trim()),
        _ => json!(text),
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

    /// Returns a form with these fields, which was made when the answers were these.
    fn posted(shown: &Value, fields: &str) -> FormSubmission {
        let shown = inputs(&form(), shown, None).into_iter();
        let shown: String = shown.map(|input| format!("{}={}&", input.shown_name, input.shown)).collect();
        FormSubmission::parse(&format!("{shown}{fields}"))
    }

    #[test]
    fn only_changed_answers_are_sent_with_their_types() {
        let payload = json!({ "name": "Mary", "message": "one\ntwo", "guests": 2, "plan": "A", "tags": ["y", "x"], "cv": "f" });
        let same = "payload.name=Mary&payload.message=one%0D%0Atwo&payload.guests=2&payload.plan=A&payload.tags[]=&\
                    payload.tags[]=x&payload.tags[]=y&payload.agreed=&payload.day=";
        assert_eq!(changes(&form(), &posted(&payload, same)), Map::new());
        let other = "payload.name=&payload.guests=2.5&payload.plan=B&payload.tags[]=&payload.agreed=&payload.agreed=on&\
                     payload.day=2026-11-28&payload.unknown=x&payload.cv=x";
        let changed = json!({ "name": null, "guests": 2.5, "plan": "B", "tags": null, "agreed": true, "day": "2026-11-28" });
        assert_eq!(Value::Object(changes(&form(), &posted(&payload, other))), changed);
        let wrong = answers(&form(), &FormSubmission::parse("payload.guests=many"));
        assert_eq!(Value::Object(wrong), json!({ "guests": "many" }));
    }

    #[test]
    fn an_answer_from_before_its_field_got_its_type_stays_until_it_is_changed() {
        let payload =
            json!({ "name": ["a"], "message": true, "guests": "many", "tags": "x", "agreed": "yes" });
        let same = "payload.name=[\"a\"]&payload.message=true&payload.guests=many&payload.plan=&payload.tags[]=&\
                    payload.agreed=&payload.day=";
        assert_eq!(changes(&form(), &posted(&payload, same)), Map::new());
    }

    #[test]
    fn of_two_persons_neither_takes_back_what_the_other_has_changed() {
        let shown = json!({ "name": "Mary", "guests": 2, "plan": "A", "tags": ["x"] });
        let stored = json!({ "name": "Marie", "guests": 3, "plan": "B", "tags": ["x"] });
        let posted = posted(
            &shown,
            "payload.name=Maria&payload.guests=2&payload.plan=B&payload.tags[]=&payload.agreed=&payload.agreed=on",
        );
        let changed = json!({ "name": "Maria", "plan": "B", "tags": null, "agreed": true });
        assert_eq!(Value::Object(changes(&form(), &posted)), changed);
        assert_eq!(conflicts(&form(), &shown, &posted), []);
        // Both chose the same plan.
        let message = "Name: another person changed this answer to “Marie”. Save again to replace it.";
        assert_eq!(conflicts(&form(), &stored, &posted), [("payload.name".to_owned(), message.to_owned())]);
        let values: Vec<_> =
            inputs(&form(), &stored, Some(&posted)).into_iter().map(|input| input.value).collect();
        assert_eq!(values[..3], ["Maria", "", "3"].map(str::to_owned));
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
