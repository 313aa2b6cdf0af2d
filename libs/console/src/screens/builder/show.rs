//! Shows the builder for a new form and for a stored one.

use axum::extract::State;
use axum::response::Response;
use chrono_tz::Tz;
use futures::join;
use serde_json::{Value, json};

use super::draft::Draft;
use super::field_problems::for_inputs;
use super::references::references;
use crate::api_client::operations::FORMS_READ;
use crate::api_client::{Answer, Call, Refusal};
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::viewer::Viewer;

/// The types of questions, with their names for people.
const TYPES: [(&str, &str); 12] = [
    ("text", "Text"),
    ("textarea", "Long text"),
    ("email", "E-mail address"),
    ("select", "One choice"),
    ("multiselect", "Several choices"),
    ("checkbox", "Checkbox"),
    ("number", "Number"),
    ("date", "Date"),
    ("tel", "Telephone"),
    ("url", "Web address"),
    ("file", "File"),
    ("hidden", "Hidden value"),
];

/// What a page of the builder shows.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) draft: Draft,
    /// The stored form. `None` for a new one.
    pub(super) form_id: Option<String>,
    /// The time of the version that the draft began with: a later one must not be overwritten unseen.
    pub(super) version: Option<String>,
    pub(super) problem: Option<Refusal>,
    /// The question that takes the focus.
    pub(super) focus: Option<usize>,
}

/// Shows a stored form.
pub(super) async fn edit(State(console): State<Console>, viewer: Viewer, path: PathParameters) -> Response {
    let id = path.get("id");
    let (account, form) =
        join!(console.account(&viewer), console.call(&viewer, Call::of(&FORMS_READ).path("id", id)),);
    let form = match form {
        Ok(form) => form,
        Err(refusal) => {
            let page = Page::new(Section::Forms, "refused.html").main("answer", &Err(refusal));
            return page.respond(&console, &viewer, &account);
        }
    };
    let shown = Shown {
        draft: Draft::from_form(&form, zone_of(&account)),
        form_id: Some(id.to_owned()),
        version: form["updatedAt"].as_str().map(str::to_owned),
        ..Shown::default()
    };
    respond(&console, &viewer, &account, shown).await
}

/// Shows the builder.
pub(super) async fn respond(console: &Console, viewer: &Viewer, account: &Answer, shown: Shown) -> Response {
    let Shown { draft, form_id, version, problem, focus } = shown;
    let references = references(console, viewer).await;
    let problem = problem.map(|refusal| for_inputs(refusal, &draft));
    let mut page = Page::new(Section::Forms, "builder/form.html")
        .panel("webhooks", &references.webhooks)
        .with("choices", references.choices)
        .with("types", json!(TYPES))
        .with("draft", &draft)
        .with("form_id", form_id)
        .with("version", version)
        .with("focus", focus);
    if let Some(problem) = problem {
        page = page.status(problem.status()).with("problem", problem);
    }
    page.respond(console, viewer, account)
}

/// Returns the time zone of an account.
pub(super) fn zone_of(account: &Answer) -> Tz {
    let zone = account.as_ref().ok().and_then(|account: &Value| account["timezone"].as_str());
    zone.and_then(|zone| zone.parse().ok()).unwrap_or(Tz::UTC)
}
