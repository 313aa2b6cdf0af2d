//! The start of a new form: its presets, and the builder with the chosen one.

use axum::extract::State;
use axum::response::Response;
use futures::join;

use super::draft::Draft;
use super::show::{Shown, respond, zone_of};
use crate::api_client::Call;
use crate::api_client::operations::{FORMS_READ, WORKFLOWS_LIST, WORKFLOWS_READ};
use crate::page::{Page, Section};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// The preset that is an empty form.
const EMPTY: &str = "empty";

/// Shows the presets; with `preset` or `from` the builder with the questions of a preset or another form.
pub(super) async fn start(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    let preset = query.get("preset");
    let call = match (query.get("from"), preset) {
        (Some(id), _) => Call::of(&FORMS_READ).path("id", id),
        (None, Some(id)) if id != EMPTY => Call::of(&WORKFLOWS_READ).path("id", id),
        _ => Call::of(&WORKFLOWS_LIST),
    };
    let (account, answer) = join!(console.account(&viewer), console.call(&viewer, call));
    let draft = match (&answer, query.get("from"), preset) {
        (_, None, Some(EMPTY)) => Draft::empty(),
        (Ok(form), Some(_), _) => Draft::from_form(form, zone_of(&account)).into_copy(),
        (Ok(preset), None, Some(_)) => Draft::from_preset(preset),
        _ => {
            let page = Page::new(Section::Forms, "builder/start.html").main("presets", &answer);
            return page.respond(&console, &viewer, &account);
        }
    };
    let shown = Shown { draft, ..Shown::default() };
    respond(&console, &viewer, &account, shown).await
}
