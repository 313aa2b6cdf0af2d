//! Updates pages.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::pages::PublicationChange;
use domain::scopes::Resource;
use domain::{pages, timestamps};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::pages::PageChange;
use uuid::Uuid;
use web::{IfMatch, Json, Path, Problem, Reply, WithHeaders};

use super::views::{PageDetailView, finish, millis};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UpdatePageRequest {
    /// Title of the page.
    #[schemars(length(min = 1, max = pages::TITLE_CHARS_MAX))]
    title: Option<String>,
    /// The whole HTML document, at most 512 KB.
    #[schemars(length(max = pages::MAX_HTML_BYTES))]
    html: Option<String>,
    /// Style sheet, at most 128 KB; null removes it.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = pages::MAX_CSS_BYTES))]
    css: Option<Option<String>>,
    /// HTML of one entry, at most 64 KB; null removes it, and the entries stay.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = pages::MAX_TEMPLATE_BYTES))]
    entry_template: Option<Option<String>>,
    /// Your own data, at most 16 KB as JSON; replaces all of it.
    metadata: Option<Map<String, Value>>,
    /// Whether visitors can see the page. Clears `publishAt` unless that is given too.
    is_published: Option<bool>,
    /// A future time hides the page until then, a past time publishes it; null clears the schedule.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<DateTime<Utc>>", regex(pattern = timestamps::PATTERN))]
    publish_at: Option<Option<DateTime<Utc>>>,
    /// The `updatedAt` of an earlier response: if the page has changed since, the update is rejected. `If-Match` does
    /// the same.
    if_unmodified_since: Option<DateTime<Utc>>,
    /// Folder to move the page to; null removes it from its folder.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Uuid>")]
    folder_id: Option<Option<Uuid>>,
}

pub(super) async fn update(
    call: Call<scope::PagesUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    if_match: IfMatch,
    Json(request): Json<UpdatePageRequest>,
) -> Result<WithHeaders<Reply<PageDetailView>>, Problem> {
    let css = request.css.as_ref().and_then(Option::as_deref);
    let template = request.entry_template.as_ref().and_then(Option::as_deref);
    let (title, html) = (request.title.as_deref(), request.html.as_deref());
    let mut errors = pages::check_content(title, html, css, template);
    errors.extend(request.metadata.iter().flat_map(pages::check_metadata));
    errors.extend(timestamps::check("publishAt", request.publish_at.flatten()));
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Pages, id).await?;
    if let Some(folder_id) = request.folder_id {
        call.check_move(&mut tx, folder_id).await?;
    }
    let updated_at = store::pages::lock_page(&mut tx, call.account_id, id).await?;
    let updated_at = updated_at.ok_or_else(|| Problem::not_found("page"))?;
    if request.if_unmodified_since.is_some_and(|since| since < updated_at) || !if_match.allows(updated_at) {
        return Err(web::stale("page", json!(millis(updated_at))));
    }
    let change = PageChange {
        title: request.title,
        html: request.html,
        css: request.css,
        entry_template: request.entry_template,
        metadata: request.metadata.map(Value::Object),
        publication: PublicationChange { is_published: request.is_published, publish_at: request.publish_at },
        folder_id: request.folder_id,
        deploy_id: None,
    };
    store::pages::update_page(&mut tx, call.account_id, id, change, call.now).await?;
    finish(call, &app, tx, id).await
}
