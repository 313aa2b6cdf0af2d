//! `/account/mails/{token}`: whoever is to be mailed of a form's submissions says yes, or no. Looking at the page
//! changes nothing, as scanners of mail look at it too. The mail is all that proves whose the address is: nobody needs
//! an account here.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::json;
use store::recipients::{Recipient, find_by_token, update_agreed};
use web::{Path, Problem};

use super::origin::FromOurPage;
use super::pages::Notice;
use super::{cookie, posted, token};
use crate::App;

/// The way to the page of somebody who is asked.
pub(crate) struct Link {
    /// What nobody guesses.
    pub(crate) token: String,
}

impl Link {
    /// One that leads to nobody yet.
    pub(crate) fn new(app: &App) -> Self {
        Self { token: token(&app.rng) }
    }

    /// As it stands in mails.
    pub(crate) fn address(&self, app: &App) -> String {
        format!("{}{}", app.addresses.base(), path(&self.token))
    }
}

fn path(token: &str) -> String {
    format!("/account/mails/{token}")
}

pub(super) async fn show(State(app): State<App>, Path(token): Path<String>) -> Result<Response, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let Some(recipient) = find_by_token(&mut conn, &cookie::hash(&token)).await? else {
        return Ok(nobody(&app));
    };
    Ok(page(&app, &token, &recipient))
}

pub(super) async fn answer(
    State(app): State<App>,
    Path(token): Path<String>,
    _: FromOurPage,
    form: Bytes,
) -> Result<Response, Problem> {
    let mut tx = store::begin(&app.db).await?;
    let Some(mut recipient) = find_by_token(&mut tx, &cookie::hash(&token)).await? else {
        return Ok(nobody(&app));
    };
    let answer = posted(&form, "answer");
    if let [answer] = answer.as_slice() {
        let has_agreed = answer == "yes";
        update_agreed(&mut tx, recipient.account_id, recipient.id, has_agreed).await?;
        recipient.has_agreed = Some(has_agreed);
    }
    store::commit(tx).await.map_err(Problem::outcome_unknown)?;
    Ok(page(&app, &token, &recipient))
}

fn page(app: &App, token: &str, recipient: &Recipient) -> Response {
    let context = json!({
        "path": path(token),
        "base": app.addresses.base(),
        "address": recipient.address,
        "isAsked": recipient.has_agreed.is_none(),
        "hasAgreed": recipient.has_agreed == Some(true),
    });
    app.signin.pages.show_form("recipient.html", &context)
}

fn nobody(app: &App) -> Response {
    app.signin.pages.notice(&Notice {
        status: StatusCode::NOT_FOUND,
        title: "Nobody is asked here",
        text: "This link leads to nothing: it is mistyped, or too old. You will get no mails.",
        onward: None,
    })
}
