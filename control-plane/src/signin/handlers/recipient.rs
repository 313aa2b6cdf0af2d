//! `/account/mails/{token}`: the recipient of submission mails gives or refuses consent. A GET changes nothing, because
//! mail scanners fetch links too. Access to the mail proves ownership of the address, so no account is needed.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::json;
use store::recipients::{Recipient, find_by_token, update_agreed};
use web::{Path, Problem};

use crate::App;
use crate::signin::form::form_values;
use crate::signin::origin::SameOrigin;
use crate::signin::templates::Notice;
use crate::signin::token;

/// The link that is mailed to a recipient.
pub(crate) struct ConfirmationLink {
    pub(crate) token: String,
}

impl ConfirmationLink {
    /// Returns a link with a new random token.
    pub(crate) fn new(app: &App) -> Self {
        Self { token: token::generate(&app.rng) }
    }

    /// The URL to mail.
    pub(crate) fn url(&self, app: &App) -> String {
        format!("{}{}", app.addresses.base(), path(&self.token))
    }
}

fn path(token: &str) -> String {
    format!("/account/mails/{token}")
}

pub(in crate::signin) async fn show(
    State(app): State<App>,
    Path(link_token): Path<String>,
) -> Result<Response, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let Some(recipient) = find_by_token(&mut conn, &token::hash(&link_token)).await? else {
        return Ok(not_found(&app));
    };
    Ok(page(&app, &link_token, &recipient))
}

pub(in crate::signin) async fn answer(
    State(app): State<App>,
    Path(link_token): Path<String>,
    _: SameOrigin,
    form: Bytes,
) -> Result<Response, Problem> {
    let mut tx = store::begin(&app.db).await?;
    let Some(mut recipient) = find_by_token(&mut tx, &token::hash(&link_token)).await? else {
        return Ok(not_found(&app));
    };
    let answer = form_values(&form, "answer");
    if let [answer] = answer.as_slice() {
        let has_agreed = answer == "yes";
        update_agreed(&mut tx, recipient.account_id, recipient.id, has_agreed).await?;
        recipient.has_agreed = Some(has_agreed);
    }
    store::commit(tx).await.map_err(Problem::commit_failed)?;
    Ok(page(&app, &link_token, &recipient))
}

fn page(app: &App, token: &str, recipient: &Recipient) -> Response {
    let context = json!({
        "path": path(token),
        "base": app.addresses.base(),
        "address": recipient.address,
        "isAsked": recipient.has_agreed.is_none(),
        "hasAgreed": recipient.has_agreed == Some(true),
    });
    app.signin.templates.show_form("recipient.html", &context)
}

fn not_found(app: &App) -> Response {
    app.signin.templates.notice(&Notice {
        status: StatusCode::NOT_FOUND,
        title: "Unknown link",
        text: "This link is mistyped or has expired. You will get no mails.",
        link: None,
    })
}
