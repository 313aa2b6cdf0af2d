//! Help: words to whoever runs this installation.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::help::{self, Category, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::help::NewHelp;
use uuid::Uuid;
use web::{Created, Json, Problem};

use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("help").post("/api/help", create, "Write to whoever runs this installation")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WantedHelp {
    category: Category,
    /// One line, at most 200 characters.
    #[schemars(length(min = 1, max = help::SUBJECT_CHARS_MAX), regex(pattern = r"\S"))]
    subject: String,
    /// At most 5,000 characters.
    #[schemars(length(min = 1, max = help::MESSAGE_CHARS_MAX), regex(pattern = r"\S"))]
    message: String,
    /// Where to answer, if not to the account's own address.
    #[schemars(length(max = help::ADDRESS_CHARS_MAX), extend("format" = "email"))]
    email: Option<String>,
    /// The page it is about.
    #[schemars(length(max = help::ADDRESS_CHARS_MAX), extend("format" = "uri"))]
    url: Option<String>,
    severity: Option<Severity>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Acknowledged {
    /// Name it when you write about this again.
    id: Uuid,
    received: bool,
    message: &'static str,
    created_at: DateTime<Utc>,
}

async fn create(
    call: Call<scope::AccountCreate>,
    State(app): State<App>,
    Json(wanted): Json<WantedHelp>,
) -> Result<Created<Acknowledged>, Problem> {
    let complaints =
        help::check(&wanted.subject, &wanted.message, wanted.email.as_deref(), wanted.url.as_deref());
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let new = NewHelp {
        id: app.rng.uuid_v7(call.now),
        category: wanted.category.word(),
        subject: wanted.subject,
        message: wanted.message,
        email: wanted.email.or_else(|| call.caller.account.email.clone()),
        url: wanted.url,
        severity: wanted.severity.map(Severity::word),
        created_at: call.now,
    };
    let mut tx = store::begin(&app.db).await?;
    store::help::insert_help(&mut tx, call.account_id, &new).await?;
    app.commit(tx, vec![]).await?;
    let message = "Thank you: whoever runs this installation will read it";
    Ok(call.created(Acknowledged { id: new.id, received: true, message, created_at: new.created_at }))
}
