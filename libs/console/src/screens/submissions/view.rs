//! A submission as people read it: who sent it, what it begins with, and the answers in the order of the form.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Map, Value};

/// Characters of an excerpt.
pub(super) const EXCERPT_CHARS: usize = 160;
/// What an address in a `mailto:` link keeps.
const ADDRESS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'@').remove(b'.').remove(b'-').remove(b'_');
/// Names of fields that hold a person's name.
const NAMES: [&str; 6] = ["name", "full_name", "fullname", "your_name", "first_name", "firstname"];

/// A submission.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubmissionView {
    pub(crate) id: String,
    pub(crate) form_id: String,
    pub(crate) sender: String,
    pub(crate) email: Option<String>,
    /// The answer to the first question for an e-mail address.
    pub(crate) address: Option<String>,
    /// A `mailto:` link.
    pub(crate) reply: Option<String>,
    pub(crate) excerpt: String,
    pub(crate) status: String,
    pub(crate) spam_reasons: Vec<String>,
    pub(crate) files: usize,
    pub(crate) created_at: String,
    pub(crate) answers: Vec<AnswerView>,
}

/// An answer to a question.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AnswerView {
    pub(crate) label: String,
    pub(crate) text: String,
    /// Why the form does not ask this.
    pub(crate) note: Option<&'static str>,
    /// The answer, if it is an address of the web.
    pub(crate) link: Option<String>,
    pub(crate) files: Vec<Value>,
}

impl SubmissionView {
    /// Reads a submission of this form.
    pub(crate) fn new(form: &Value, submission: &Value) -> Self {
        let empty = Map::new();
        let payload = submission["payload"].as_object().unwrap_or(&empty);
        let fields = form["fields"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |name: &str| payload.get(name).map(text_of).filter(|text| !text.trim().is_empty());
        let of_type = |kinds: &[&str]| {
            let is_of = |field: &&Value| kinds.contains(&field["type"].as_str().unwrap_or_default());
            fields.iter().filter(is_of).find_map(|field| text(field["name"].as_str()?))
        };
        let email = of_type(&["email"]);
        let name = NAMES.iter().find_map(|name| text(name));
        let sender = name.or_else(|| email.clone()).or_else(|| of_type(&["text", "tel", "textarea"]));
        let sender = sender.unwrap_or_else(|| "Submission".to_owned());
        let long = of_type(&["textarea"]).filter(|text| *text != sender);
        let rest = |email: Option<&String>| {
            let texts = fields.iter().filter_map(|field| text(field["name"].as_str()?));
            texts.filter(|text| *text != sender && Some(text) != email).collect::<Vec<_>>().join(" · ")
        };
        let excerpt = long.unwrap_or_else(|| rest(email.as_ref()));
        let files = submission["files"].as_array().map_or(&[][..], Vec::as_slice);
        let reasons = submission["spamReasons"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let member = |name: &str| submission[name].as_str().unwrap_or_default().to_owned();
        Self {
            id: member("id"),
            form_id: member("formId"),
            reply: email
                .as_deref()
                .and_then(|email| mail_link(email, form["name"].as_str().unwrap_or_default())),
            address: email.clone(),
            email: email.filter(|email| *email != sender),
            excerpt: excerpt.chars().take(EXCERPT_CHARS).collect(),
            sender,
            status: member("status"),
            spam_reasons: reasons.map(|reason| reason_in_words(reason).to_owned()).collect(),
            files: files.len(),
            created_at: member("createdAt"),
            answers: answers(fields, payload, submission, files),
        }
    }
}

/// Returns the answers in the order of the form, then those to questions that it no longer asks, then the extra ones.
fn answers(
    fields: &[Value],
    payload: &Map<String, Value>,
    submission: &Value,
    files: &[Value],
) -> Vec<AnswerView> {
    let asked = fields.iter().map(|field| {
        let name = field["name"].as_str().unwrap_or_default();
        let text = payload.get(name).map(text_of).unwrap_or_default();
        let is_url = field["type"] == "url" && (text.starts_with("https://") || text.starts_with("http://"));
        let of_field = files.iter().filter(|file| file["field"] == name).cloned().collect();
        let label = field["label"].as_str().filter(|label| !label.is_empty()).unwrap_or(name).to_owned();
        AnswerView { label, link: is_url.then(|| text.clone()), text, note: None, files: of_field }
    });
    let is_asked = |name: &str| fields.iter().any(|field| field["name"] == name);
    let noted = |note: &'static str| {
        move |(name, value): (&String, &Value)| AnswerView {
            label: name.clone(),
            text: text_of(value),
            note: Some(note),
            link: None,
            files: Vec::new(),
        }
    };
    let removed = payload.iter().filter(|(name, _)| !is_asked(name)).map(noted("no longer asked"));
    let extra =
        submission["extra"].as_object().into_iter().flatten().map(noted("not a question of this form"));
    asked.chain(removed).chain(extra).collect()
}

/// Returns why a submission was classified as spam.
fn reason_in_words(reason: &str) -> &str {
    match reason {
        "honeypot" => "hidden field filled in",
        "too_fast" => "sent faster than people can",
        "token" => "not sent from the form’s page",
        "proof_of_work" => "no proof of work",
        "rate" => "too many from one network",
        other => other,
    }
}

/// Returns a value as people write it.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "Yes".to_owned(),
        Value::Bool(false) => "No".to_owned(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Returns the link that writes to an address; `None` if it is none.
fn mail_link(email: &str, form: &str) -> Option<String> {
    let is_address =
        email.contains('@') && !email.chars().any(|char| char.is_control() || char.is_whitespace());
    let subject = format!("Re: {form}");
    is_address.then(|| {
        let (to, subject) =
            (utf8_percent_encode(email, ADDRESS), utf8_percent_encode(&subject, NON_ALPHANUMERIC));
        format!("mailto:{to}?subject={subject}")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(payload: Value) -> SubmissionView {
        let form = json!({ "name": "Contact & more", "fields": [
            { "type": "text", "name": "name", "label": "Name" }, { "type": "email", "name": "email", "label": "E-mail" },
            { "type": "textarea", "name": "message", "label": "Message" }, { "type": "url", "name": "site", "label": "Site" }] });
        let submission = json!({ "id": "s", "formId": "f", "status": "received", "createdAt": "2026-11-22T13:02:11Z",
            "files": [], "payload": payload, "extra": { "utm": "x" } });
        SubmissionView::new(&form, &submission)
    }

    #[test]
    fn says_who_sent_what() {
        let mary =
            json!({ "name": "Mary", "email": "mary@a.test", "message": "Hello", "colour": ["red", "blue"] });
        let mary = view(mary);
        assert_eq!((mary.sender.as_str(), mary.excerpt.as_str()), ("Mary", "Hello"));
        assert_eq!(mary.reply.as_deref(), Some("mailto:mary@a.test?subject=Re%3A%20Contact%20%26%20more"));
        let notes: Vec<_> = mary.answers.iter().map(|answer| (answer.label.as_str(), answer.note)).collect();
        let asked = ["Name", "E-mail", "Message", "Site"].map(|label| (label, None));
        let rest = [("colour", Some("no longer asked")), ("utm", Some("not a question of this form"))];
        assert_eq!(notes, [asked.as_slice(), &rest].concat());
        assert_eq!(mary.answers[4].text, "red, blue");
    }

    #[test]
    fn links_only_to_the_web_and_mails_only_to_addresses() {
        let hostile = view(json!({ "email": "a@b.test?bcc=all@b.test", "site": "javascript:alert(1)" }));
        assert_eq!(hostile.reply.as_deref().map(|link| link.contains("?bcc")), Some(false));
        assert_eq!(hostile.answers[3].link, None);
        assert_eq!(view(json!({ "email": "x\r\nBcc: y@b.test" })).reply, None);
        assert_eq!(view(json!({})).sender, "Submission");
    }
}
