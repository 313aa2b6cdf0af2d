//! Help requests to the operator of this installation.

use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use domain::help::{self, Category, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::help::NewHelpRequest;
use uuid::Uuid;
use web::{Created, Json, Problem};

use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("help").post("/api/help", create, "Send a help request to the operator")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateHelpRequest {
    /// Subject area.
    category: Category,
    /// One line, at most 200 characters.
    #[schemars(length(min = 1, max = help::SUBJECT_CHARS_MAX), regex(pattern = r"\S"))]
    subject: String,
    /// At most 5,000 characters.
    #[schemars(length(min = 1, max = help::MESSAGE_CHARS_MAX), regex(pattern = r"\S"))]
    message: String,
    /// Address for the reply; default: the account's address.
    #[schemars(length(max = help::ADDRESS_CHARS_MAX), extend("format" = "email"))]
    email: Option<String>,
    /// URL of the page in question.
    #[schemars(length(max = help::ADDRESS_CHARS_MAX), extend("format" = "uri"))]
    url: Option<String>,
    /// How severe the problem is.
    severity: Option<Severity>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HelpResponse {
    /// Reference for later messages about this request.
    id: Uuid,
    /// Always true.
    received: bool,
    /// Confirmation for people.
    message: &'static str,
    created_at: DateTime<Utc>,
}

async fn create(
    call: Call<scope::AccountCreate>,
    State(app): State<App>,
    Json(request): Json<CreateHelpRequest>,
) -> Result<Created<HelpResponse>, Problem> {
    let errors =
        help::check(&request.subject, &request.message, request.email.as_deref(), request.url.as_deref());
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let mut tx = store::begin(&app.db).await?;
    let mailed = store::help::count_mailed(&mut tx, call.account_id, call.now - TimeDelta::hours(1)).await?;
    let new = NewHelpRequest {
        id: app.rng.uuid_v7(call.now),
        category: request.category.as_str(),
        subject: request.subject,
        message: request.message,
        email: request.email.or_else(|| call.caller.account.email.clone()),
        url: request.url,
        severity: request.severity.map(Severity::as_str),
        mailed: mailed < help::MAILS_PER_HOUR_MAX,
        created_at: call.now,
    };
    store::help::insert_help_request(&mut tx, call.account_id, &new).await?;
    call.commit(&app, tx, vec![]).await?;
    let next = call.suggestions(&app, After::Help).await;
    let message = "The operator has received your request";
    let response = HelpResponse { id: new.id, received: true, message, created_at: new.created_at };
    Ok(call.created(response).with_next(next))
}
