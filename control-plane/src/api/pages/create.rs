//! Creates pages.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::pages::{Content, Publication, PublicationChange};
use domain::scopes::Resource;
use domain::{pages, timestamps};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Created, Json, Problem};

use super::checks::slug_taken;
use super::views::PageView;
use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CreatePageRequest {
    /// Path of the page on its site: `index` is the root. It can't be changed later.
    #[schemars(length(min = 2, max = 200), regex(pattern = pages::SLUG_PATTERN))]
    slug: String,
    /// Title of the page.
    #[schemars(length(min = 1, max = pages::TITLE_CHARS_MAX))]
    title: String,
    /// The whole HTML document, at most 512 KB.
    #[schemars(length(max = pages::MAX_HTML_BYTES))]
    html: String,
    /// Style sheet added to the document's head, at most 128 KB.
    #[schemars(length(max = pages::MAX_CSS_BYTES))]
    css: Option<String>,
    /// Your own data, at most 16 KB as JSON.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// Whether visitors can see the page; default true.
    is_published: Option<bool>,
    /// Time at which the page is published; a past time publishes it at once. Overrides `isPublished`.
    #[schemars(regex(pattern = timestamps::PATTERN))]
    publish_at: Option<DateTime<Utc>>,
    /// HTML of one entry, at most 64 KB, with `{{placeholders}}` (letters, digits, `_`, `-`, `.`) in text and
    /// attribute values. Entries are inserted at `<!-- service:entries -->` in the page's HTML.
    #[schemars(length(max = pages::MAX_TEMPLATE_BYTES))]
    entry_template: Option<String>,
    /// Subdomain to publish to; default: the account's first subdomain.
    subdomain_id: Option<Uuid>,
    /// Folder to create the page in; default: the key's folder.
    folder_id: Option<Uuid>,
}

pub(super) async fn create(
    call: Call<scope::PagesCreate>,
    State(app): State<App>,
    Json(request): Json<CreatePageRequest>,
) -> Result<Created<PageView>, Problem> {
    let mut errors = pages::check_slug(&request.slug);
    let (css, template) = (request.css.as_deref(), request.entry_template.as_deref());
    errors.extend(pages::check_content(Some(&request.title), Some(&request.html), css, template));
    errors.extend(pages::check_metadata(&request.metadata));
    errors.extend(timestamps::check("publishAt", request.publish_at));
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let mut tx = store::begin(&app.db).await?;
    let folder_id = call.new_resource_folder(&mut tx, Resource::Pages, request.folder_id).await?;
    let subdomain = call.subdomain(&mut tx, request.subdomain_id).await?;
    let publication =
        PublicationChange { is_published: request.is_published, publish_at: request.publish_at.map(Some) };
    let new = store::pages::NewPage {
        id: app.rng.uuid_v7(call.now),
        folder_id,
        subdomain_id: subdomain.id,
        slug: request.slug,
        content: Content {
            title: request.title,
            html: request.html,
            css: request.css,
            entry_template: request.entry_template,
            metadata: Value::Object(request.metadata),
        },
        publication: Publication::NEW.apply(publication, call.now),
        deploy_id: None,
        created_at: call.now,
    };
    if !store::pages::insert_page(&mut tx, call.account_id, &new).await? {
        let existing =
            store::pages::find_id_by_slug(&mut tx, call.account_id, subdomain.id, &new.slug).await?;
        let taken = slug_taken(&subdomain, &new.slug);
        let ids = existing.as_slice();
        // A key learns nothing about a page that it may not access.
        return Err(match call.check_ids(&mut tx, Resource::Pages, ids).await {
            Ok(()) => taken
                .with("existingPageId", json!(existing))
                .hint("update it with PUT /api/pages/{existingPageId}"),
            Err(refusal) if refusal.is_client_error() => taken.hint("choose another slug"),
            Err(failure) => failure,
        });
    }
    let limit = call.limits().projects;
    if !usage::reserve(&mut tx, call.account_id, Counter::Projects, limit).await? {
        return Err(call.count_exceeded(&mut tx, Counter::Projects).await);
    }
    let page = store::pages::find_page(&mut tx, call.account_id, new.id).await?;
    let view = PageView::new(&app, page.ok_or_else(|| Problem::not_found("page"))?.summary);
    call.set_changed(Resource::Pages, new.id, &view.slug);
    call.commit(
        &app,
        tx,
        vec![Change::Page { subdomain_id: subdomain.id, slug: view.slug.clone(), path: None }],
    )
    .await?;

    let (id, is_published, is_scheduled) = (view.id, view.is_published, view.publish_at.is_some());
    let next = call.suggestions(&app, After::Page { id, is_published, is_scheduled }).await;
    Ok(call.created(view).with_next(next))
}
