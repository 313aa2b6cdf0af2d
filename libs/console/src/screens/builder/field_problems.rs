//! Leads the API's field errors to the inputs of the builder, which has one input where the body has a list.

use super::draft::{Draft, question_part};
use crate::api_client::Refusal;

/// Parts of a question in words.
const PARTS: [(&str, &str); 8] = [
    ("label", "the label"),
    ("name", "the name"),
    ("options", "the options"),
    ("placeholder", "the example"),
    ("help", "the explanation"),
    ("pattern", "the pattern"),
    ("showIf.field", "the condition"),
    ("unique", "the answer"),
];

/// Settings in words.
const SETTINGS: [(&str, &str); 9] = [
    ("name", "The name"),
    ("successMessage", "The message"),
    ("submitLabel", "The button's label"),
    ("redirectUrl", "The address to go to"),
    ("closesAt", "The closing time"),
    ("maxSubmissions", "The number of submissions"),
    ("notifyEmail", "The address to notify"),
    ("appearance.accent", "The colour"),
    ("appearance.logoAssetId", "The logo"),
];

/// Returns the refusal with the names of inputs as fields, and messages that count questions as people do.
pub(super) fn for_inputs(mut refusal: Refusal, draft: &Draft) -> Refusal {
    for error in &mut refusal.field_errors {
        let field = input_of(&error.field, draft);
        if let Some((at, part)) = question_part(&field) {
            let number = at + 1;
            let known = PARTS.iter().find(|(name, _)| *name == part);
            let words = known.map_or(part, |(_, words)| *words);
            error.message = match error.message.strip_prefix(&error.field) {
                Some(rest) => format!("Question {number}: {words}{rest}"),
                None => format!("Question {number}: {}", error.message),
            };
        } else if let Some((_, words)) = SETTINGS.iter().find(|(name, _)| *name == field)
            && let Some(rest) = error.message.strip_prefix(&error.field)
        {
            error.message = format!("{words}{rest}");
        }
        error.field = field;
    }
    refusal
}

/// Returns the input that a path of the body belongs to.
fn input_of(path: &str, draft: &Draft) -> String {
    let list = path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
    match list {
        Some(("uniqueBy", index)) => {
            let questions = draft.questions().iter().enumerate();
            let mut unique = questions.filter(|(_, question)| question.is_on("unique"));
            let found = index.parse().ok().and_then(|index| unique.nth(index));
            found.map_or_else(|| "fields".to_owned(), |(at, _)| format!("fields[{at}].unique"))
        }
        Some((list, _)) if list != "fields" => list.to_owned(),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::api_client::FieldProblem;
    use crate::form_submission::FormSubmission;

    #[test]
    fn an_error_stands_at_the_input_that_it_is_about() {
        let posted = "fields[0].type=text&fields[1].type=file&fields[1].unique=on";
        let draft = Draft::posted(&FormSubmission::parse(posted));
        let led = |field: &str, message: &str| {
            let mut refusal = Refusal::new(StatusCode::BAD_REQUEST, "validation_failed", "Some", "x");
            refusal.field_errors =
                vec![FieldProblem { field: field.to_owned(), message: message.to_owned() }];
            let error = for_inputs(refusal, &draft).field_errors.remove(0);
            (error.field, error.message)
        };
        let pair = |field: &str, message: &str| (field.to_owned(), message.to_owned());
        assert_eq!(
            led("fields[3].label", "fields[3].label must have 1 to 500 characters"),
            pair("fields[3].label", "Question 4: the label must have 1 to 500 characters")
        );
        assert_eq!(
            led("fields[0].options[2]", "an option is blank"),
            pair("fields[0].options", "Question 1: an option is blank")
        );
        assert_eq!(led("uniqueBy[0]", "takes files"), pair("fields[1].unique", "Question 2: takes files"));
        assert_eq!(led("name", "name must not be empty"), pair("name", "The name must not be empty"));
        assert_eq!(led("uniqueBy[4]", "x"), pair("fields", "x"));
        assert_eq!(led("webhookIds[1]", "x"), pair("webhookIds", "x"));
        assert_eq!(led("spam.perDay", "x"), pair("spam.perDay", "x"));
    }
}
