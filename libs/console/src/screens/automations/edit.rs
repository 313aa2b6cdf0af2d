//! The definition as JSON, the names and the variables of an automation, and their changes.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use futures::join;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::json_lines::lines_of;
use super::page_path::page_path;
use super::show;
use crate::api_client::operations::AUTOMATIONS_UPDATE;
use crate::api_client::{Call, FieldProblem, Refusal};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::{Page, Section, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::viewer::Viewer;

/// Members of the definition, in the order of the text.
const MEMBERS: [&str; 3] = ["trigger", "steps", "concurrency"];
/// The input of the definition.
const INPUT: &str = "definition";
/// Fields with inputs of their own.
const OTHERS: [&str; 4] = [INPUT, "name", "slug", "description"];

/// An error of the definition, at its line.
#[derive(Serialize)]
struct DefinitionError<'a> {
    line: usize,
    field: &'a str,
    message: &'a str,
    /// The text of the line.
    excerpt: &'a str,
}

/// Shows what can be changed.
pub(super) async fn edit(State(console): State<Console>, viewer: Viewer, path: PathParameters) -> Response {
    respond(&console, &viewer, path.get("id"), None, |page| page).await
}

/// Shows what can be changed, with additions. `typed` is the definition as it was posted.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    typed: Option<&str>,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let (account, automation) = join!(console.account(viewer), show::read(console, viewer, id));
    let stored = automation.as_ref().map(definition_of).unwrap_or_default();
    let page = Page::new(Section::Automations, "automations/edit.html")
        .main("automation", &automation)
        .with(INPUT, typed.unwrap_or(&stored));
    add(page).respond(console, viewer, &account)
}

/// Saves the names and the definition.
pub(super) async fn save(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let (id, typed) = (path.get("id"), form.get(INPUT).unwrap_or_default());
    let body = match definition(typed) {
        Ok(members) => {
            let mut body = form.to_json(&console.document, &AUTOMATIONS_UPDATE);
            if let Value::Object(body) = &mut body {
                body.remove(INPUT);
                body.extend(members);
            }
            body
        }
        Err(message) => {
            let refusal = Refusal::at(StatusCode::BAD_REQUEST, INPUT, &message);
            return refused(&console, &viewer, id, &form, refusal).await;
        }
    };
    match console.call(&viewer, Call::of(&AUTOMATIONS_UPDATE).path("id", id).body(body)).await {
        Ok(_) => redirect(&console, &page_path(id), Some(Flash::AutomationSaved)),
        Err(refusal) => refused(&console, &viewer, id, &form, refusal).await,
    }
}

/// Adds, replaces and removes variables. Values that are not given stay.
pub(super) async fn save_variables(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let (id, removed) = (path.get("id"), form.get("remove"));
    let mut env: BTreeMap<_, _> =
        form.all("kept[]").filter(|name| Some(*name) != removed).map(|name| (name, Value::Null)).collect();
    if let (Some(name), None) = (form.get("variable"), removed) {
        env.insert(name, json!(form.get("value").unwrap_or_default()));
    }
    match console
        .call(&viewer, Call::of(&AUTOMATIONS_UPDATE).path("id", id).body(json!({ "env": env })))
        .await
    {
        Ok(_) => redirect(&console, &format!("{}/edit", page_path(id)), Some(Flash::AutomationSaved)),
        Err(refusal) => {
            let keep = |page: Page| page.problem(&refusal).with("kept_variable", form.get("variable"));
            respond(&console, &viewer, id, None, keep).await
        }
    }
}

async fn refused(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    form: &FormSubmission,
    refusal: Refusal,
) -> Response {
    let typed = form.get(INPUT).unwrap_or_default();
    let errors = definition_errors(typed, &refusal);
    let keep = |page: Page| {
        let page = page.status(refusal.status()).keep(form);
        page.with("definition_errors", &errors).with("problem", &refusal)
    };
    respond(console, viewer, id, Some(typed), keep).await
}

/// Returns the errors of the definition, each with its line.
fn definition_errors<'a>(typed: &'a str, refusal: &'a Refusal) -> Vec<DefinitionError<'a>> {
    let errors: Vec<_> =
        refusal.field_errors.iter().filter(|error| !OTHERS.contains(&error.field.as_str())).collect();
    let paths: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
    let lines: Vec<_> = typed.lines().collect();
    let at_line = |(error, line): (&&'a FieldProblem, usize)| DefinitionError {
        line,
        field: &error.field,
        message: &error.message,
        excerpt: lines.get(line - 1).copied().unwrap_or_default().trim(),
    };
    errors.iter().zip(lines_of(typed, &paths)).map(at_line).collect()
}

/// Returns the definition of an automation as text to edit.
fn definition_of(automation: &Value) -> String {
    let members = MEMBERS.iter().filter(|name| !automation[**name].is_null());
    let members: Map<String, Value> =
        members.map(|name| ((*name).to_owned(), automation[*name].clone())).collect();
    serde_json::to_string_pretty(&members).unwrap_or_default()
}

/// Reads the definition that was typed. `concurrency` that is left out is removed.
fn definition(typed: &str) -> Result<Map<String, Value>, String> {
    let parsed = serde_json::from_str::<Value>(typed);
    let parsed = parsed.map_err(|error| format!("The definition is not JSON: {error}."))?;
    let Value::Object(mut members) = parsed else {
        return Err("The definition must be an object with `trigger` and `steps`.".to_owned());
    };
    if let Some(name) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
        return Err(format!(
            "The definition has no member `{name}`: it consists of trigger, steps and concurrency."
        ));
    }
    for name in MEMBERS {
        members.entry(name).or_insert(Value::Null);
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_saved() {
        let automation = json!({ "id": "1", "name": "A", "steps": [{ "id": "a" }], "trigger": { "type": "http" },
            "concurrency": null });
        let text = definition_of(&automation);
        assert!(text.starts_with("{\n  \"trigger\"") && !text.contains("concurrency"), "{text}");
        let members = definition(&text).unwrap();
        assert_eq!(members["steps"], automation["steps"]);
        assert_eq!(members["concurrency"], Value::Null, "left out is removed");
        assert!(definition("{").unwrap_err().contains("line 1"));
        assert!(definition("[]").is_err() && definition("{\"name\": 1}").unwrap_err().contains("`name`"));
    }

    #[test]
    fn an_error_stands_at_its_line() {
        let body = json!({ "status": 400, "code": "validation_failed", "title": "x", "detail": "x", "fieldErrors": [
            { "field": "name", "message": "empty" }, { "field": "steps[0].url", "message": "missing" }] });
        let refusal: Refusal = serde_json::from_value(body).unwrap();
        let typed = "{\"trigger\": {},\n\"steps\": [\n  {\"id\": \"a\"}]}";
        let errors = definition_errors(typed, &refusal);
        assert_eq!((errors.len(), errors[0].line, errors[0].excerpt), (1, 3, "{\"id\": \"a\"}]}"));
        assert!(definition_errors("", &refusal).len() == 1, "text that is no JSON has lines too");
    }
}
