//! The body of `forms.create` or `forms.update` for a draft.

use serde_json::{Value, json};

use super::{Draft, Question};
use crate::api_client::operations::Operation;
use crate::form_submission::FormSubmission;

/// Parts of a question that are sent even if they are empty, so that the API says what is missing.
const ALWAYS: [&str; 3] = ["type", "label", "name"];
/// Parts that are not sent under their own name.
const APART: [&str; 5] = ["options", "required", "unique", "showIf.field", "showIf.equals"];

impl Draft {
    /// Returns the body. The schema of the operation gives each value its type; parts that a question's type does not have are
    /// left out, because their inputs are hidden.
    pub(in crate::screens::builder) fn body(&self, document: &Value, operation: &Operation) -> Value {
        let mut pairs: Vec<(String, String)> =
            self.settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        // A box that is not checked is not posted.
        for name in ["publicResults", "spam.honeypot", "spam.proofOfWork"] {
            if !self.settings.contains_key(name) {
                pairs.push((name.to_owned(), String::new()));
            }
        }
        if let Some(ids) = &self.webhook_ids {
            pairs.push(("webhookIds[]".to_owned(), String::new()));
            pairs.extend(ids.iter().map(|id| ("webhookIds[]".to_owned(), id.clone())));
        }
        for (at, question) in self.questions.iter().enumerate() {
            question.add_to(&mut pairs, at);
        }
        let mut body = FormSubmission::of(pairs).to_json(document, operation);
        body["uniqueBy"] = self.unique_by();
        if body["name"].is_null() {
            body["name"] = json!("");
        }
        for (at, question) in self.questions.iter().enumerate() {
            if let Some(condition) = self.condition(question) {
                body["fields"][at]["showIf"] = condition;
            }
        }
        if self.questions.is_empty() {
            body["fields"] = json!([]);
        }
        body
    }

    /// Returns the names of the questions whose answers must differ; null for no such rule.
    fn unique_by(&self) -> Value {
        let unique = self.questions.iter().filter(|question| question.is_on("unique"));
        let names: Vec<_> = unique.map(|question| question.get("name")).collect();
        if names.is_empty() { Value::Null } else { json!(names) }
    }

    /// Returns the condition of a question, if it has one. The answer has the type of the question that it answers.
    fn condition(&self, question: &Question) -> Option<Value> {
        let (name, answer) = (question.get("showIf.field").trim(), question.get("showIf.equals"));
        if name.is_empty() {
            return None;
        }
        let other = self.questions.iter().find(|other| other.get("name") == name);
        let equals = match other.map_or("", |other| other.get("type")) {
            "checkbox" => json!(!matches!(answer, "" | "no" | "No" | "false" | "off")),
            "number" => answer.trim().parse::<f64>().map_or_else(|_| json!(answer), |number| json!(number)),
            _ => json!(answer),
        };
        Some(json!({ "field": name, "equals": equals }))
    }
}

impl Question {
    fn add_to(&self, pairs: &mut Vec<(String, String)>, at: usize) {
        let name_of = |part: &str| format!("fields[{at}].{part}");
        for part in Self::parts().filter(|part| self.has(part) && !APART.contains(part)) {
            let value = self.get(part);
            if ALWAYS.contains(&part) || !value.trim().is_empty() && self.fits(part) {
                pairs.push((name_of(part), value.to_owned()));
            }
        }
        if self.is_on("required") {
            pairs.push((name_of("required"), "on".to_owned()));
        }
        if self.has("options") {
            pairs.extend(self.options().map(|option| (name_of("options[]"), option.to_owned())));
        }
    }

    /// Returns whether a rendering is one of the type.
    fn fits(&self, part: &str) -> bool {
        let is_scale = self.get("display") == "scale";
        part != "display" || is_scale == (self.get("type") == "number")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::api_client::operations::{FORMS_CREATE, FORMS_UPDATE};

    fn document() -> Value {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../control-plane/openapi.json");
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    }

    fn body(posted: &str) -> Value {
        Draft::posted(&FormSubmission::parse(posted)).body(&document(), &FORMS_UPDATE)
    }

    #[test]
    fn values_have_the_types_of_the_api_and_hidden_inputs_are_left_out() {
        let body = body(
            "name=F&successMessage=&maxSubmissions=7&closesAt=&spam.minSeconds=3&spam.perDay=&webhookIds[]=\
             &fields[0].type=number&fields[0].label=Age&fields[0].name=age&fields[0].min=18&fields[0].display=scale\
             &fields[0].pattern=x&fields[0].required=on&fields[0].unique=on\
             &fields[1].type=select&fields[1].label=Plan&fields[1].name=plan&fields[1].options=A%0D%0A%0D%0A+B+\
             &fields[1].display=scale&fields[1].showIf.field=age&fields[1].showIf.equals=18",
        );
        let expected = json!({
            "name": "F", "successMessage": null, "maxSubmissions": 7, "closesAt": null, "publicResults": false,
            "spam": { "minSeconds": 3, "perDay": null, "honeypot": false, "proofOfWork": false },
            "webhookIds": [], "uniqueBy": ["age"],
            "fields": [
                { "type": "number", "label": "Age", "name": "age", "min": 18.0, "display": "scale", "required": true },
                { "type": "select", "label": "Plan", "name": "plan", "options": ["A", "B"],
                  "showIf": { "field": "age", "equals": 18.0 } }] });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_stored_form_is_sent_back_as_it_is() {
        let form = json!({
            "name": "F", "successMessage": "Thanks", "submitLabel": null, "redirectUrl": null,
            "closesAt": "2030-06-30T16:00:00Z", "maxSubmissions": 9, "publicResults": true, "notifyEmail": null,
            "unknownFields": "store", "uniqueBy": ["mail"],
            "spam": { "honeypot": true, "minSeconds": 2, "proofOfWork": false, "perMinute": null, "perDay": 5 },
            "appearance": { "accent": "#0f766e", "radius": 4, "logoAssetId": "01a2212b-e71a-7cf1-ac3a-03ca38f835ba" },
            "webhookIds": [], "folderId": "01a2212b-e71a-7cf1-ac3a-03ca38f835bb", "autoEntryPageId": null,
            "fields": [
                { "type": "email", "label": "Mail", "name": "mail", "required": true, "help": "H", "placeholder": "a@b.c" },
                { "type": "checkbox", "label": "More", "name": "more" },
                { "type": "text", "label": "What", "name": "what", "pattern": "[0-9]+", "patternHint": "digits",
                  "minLength": 1, "maxLength": 9, "showIf": { "field": "more", "equals": true } },
                { "type": "file", "label": "CV", "name": "cv", "accept": ".pdf", "maxFileSize": 1000 }] });
        let mut body = Draft::from_form(&form, chrono_tz::Tz::UTC).body(&document(), &FORMS_CREATE);
        assert_eq!(body["closesAt"], "2030-06-30T16:00");
        body["closesAt"] = form["closesAt"].clone();
        assert_eq!(body, form);
    }

    #[test]
    fn what_is_missing_is_sent_empty() {
        let body = body("name=&fields[0].type=text&fields[0].label=&fields[0].name=");
        assert_eq!(body["name"], "");
        assert_eq!(body["fields"], json!([{ "type": "text", "label": "", "name": "question_1" }]));
        assert_eq!(super::Draft::default().body(&document(), &FORMS_CREATE)["fields"], json!([]));
    }
}
