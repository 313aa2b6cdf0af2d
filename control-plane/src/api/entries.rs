//! Entries, which a page shows through its template, and the archived entries of deleted pages.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::entries::{self, DATA_BYTES_MAX, ENTRIES_MAX};
use domain::scopes::{Action, Resource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::archives::{Archive, RestoreOutcome, list_archives};
use store::entries::{EntryOutcome, NewEntry};
use uuid::Uuid;
use web::{Code, Created, Deletion, Json, PageInfo, PaginationQuery, Path, Problem, Query, Reply, Sort};

use super::pages::views::EntryView;
use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("entries")
        .post("/api/pages/{id}/entries", create, "Add an entry to a page")
        .get("/api/pages/{id}/entries", list, "List a page's entries, newest first")
        .delete("/api/pages/{id}/entries/{entryId}", delete, "Delete an entry permanently")
        .get("/api/pages/archives", archives, "List archived entries of deleted pages")
        .post("/api/pages/{id}/restore-entries", restore, "Restore archived entries to a page")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateEntryRequest {
    /// Values by the names of the template's placeholders: strings, numbers, booleans, null, or lists of these; at
    /// most 16 KB.
    #[schemars(extend("additionalProperties" = {
        "type": ["string", "number", "boolean", "null", "array"],
        "items": {"type": ["string", "number", "boolean", "null"]}
    }))]
    data: Map<String, Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EntryListResponse {
    /// Newest first.
    entries: Vec<EntryView>,
    /// Number of all entries of the page.
    count: i32,
    #[serde(flatten)]
    page: PageInfo,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EntriesQuery {
    /// Maximum number of entries in one response: 1 to 500, 500 by default.
    #[schemars(range(min = 1, max = ENTRIES_MAX))]
    limit: Option<i64>,
    /// The `nextCursor` of the previous response; absent for the first page.
    #[schemars(extend("format" = "cursor"))]
    cursor: Option<String>,
}

web::list_response!(ArchiveListResponse { archives: ArchiveView });

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ArchiveView {
    id: Uuid,
    /// The deleted page.
    page_id: Uuid,
    /// Slug of the deleted page.
    slug: String,
    /// Subdomain of the deleted page.
    subdomain_id: Uuid,
    /// Number of archived entries.
    entry_count: i64,
    /// Label and prefix of the key, or e-mail address of the signed-in owner, that deleted the page.
    deleted_by: String,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RestoreEntriesRequest {
    /// The archive to restore from.
    archive_id: Uuid,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RestoredEntriesResponse {
    /// Always true.
    restored: bool,
    /// Number of entries that were added; entries that the page already had are skipped.
    entries_restored: i64,
    /// Number of entries of the page now.
    total_entries: i64,
    /// Whether the page had no template and got the archived one.
    template_restored: bool,
}

async fn create(
    call: Call<scope::EntriesCreate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(request): Json<CreateEntryRequest>,
) -> Result<Created<EntryView>, Problem> {
    if entries::is_too_large(&request.data) {
        let detail = format!("data may have at most {} KB as JSON", DATA_BYTES_MAX / 1024);
        return Err(Problem::new(Code::PayloadTooLarge, detail));
    }
    let errors = entries::check_data(&request.data);
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let new = NewEntry {
        id: app.rng.uuid_v7(call.now),
        page_id: id,
        data: Value::Object(request.data),
        submission_id: None,
        created_at: call.now,
    };
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Pages, id).await?;
    let shown = match store::entries::insert_entry(&mut tx, call.account_id, &new).await? {
        EntryOutcome::Stored(shown) => shown,
        EntryOutcome::Full => {
            let detail = format!("the page already has the maximum of {ENTRIES_MAX} entries");
            return Err(Problem::new(Code::Conflict, detail).hint("delete some of them"));
        }
        EntryOutcome::NoTemplate => {
            let hint = "set one with PUT /api/pages/{id}";
            return Err(Problem::new(Code::Conflict, "the page has no entryTemplate").hint(hint));
        }
        EntryOutcome::NoPage => return Err(Problem::not_found("page")),
    };
    call.commit(&app, tx, vec![shown.into()]).await?;
    let entry = store::entries::Entry { id: new.id, data: new.data, created_at: new.created_at };
    let next = call.suggestions(&app, After::Entry { page_id: id }).await;
    Ok(call.created(EntryView::new(entry)).with_next(next))
}

async fn list(
    call: Call<scope::EntriesRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Query(query): Query<EntriesQuery>,
) -> Result<Reply<EntryListResponse>, Problem> {
    let max = i64::from(ENTRIES_MAX);
    let (limit, after) = PaginationQuery::new(query.limit, query.cursor).read_up_to(max, max)?;
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Pages, id).await?;
    let found = store::entries::list_entries(&mut conn, call.account_id, id, after, limit).await?;
    let count = store::entries::count_entries(&mut conn, call.account_id, id).await?;
    let page = PageInfo::of(&found.rows, found.has_more);
    let entries = found.rows.into_iter().map(EntryView::new).collect();
    Ok(call.reply(EntryListResponse { entries, count, page: page.clone() }).linked(&page))
}

async fn delete(
    call: Call<scope::EntriesDelete>,
    State(app): State<App>,
    Path((id, entry_id)): Path<(Uuid, Uuid)>,
) -> Result<Reply<Deletion>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Pages, id).await?;
    let shown = store::entries::delete_entry(&mut tx, call.account_id, id, entry_id).await?;
    let shown = shown.ok_or_else(|| Problem::not_found("entry"))?;
    call.commit(&app, tx, vec![shown.into()]).await?;
    Ok(call.reply(Deletion::now()))
}

web::list_query!(ArchivesQuery {
    /// Order by creation; default `oldest`.
    sort: Option<Sort>,
});

async fn archives(
    call: Call<scope::EntriesRead>,
    State(app): State<App>,
    Query(query): Query<ArchivesQuery>,
) -> Result<Reply<ArchiveListResponse>, Problem> {
    // Access to an archive follows the deleted page.
    let filter = call.list_filter(Resource::Pages, &query.pagination().sorted(query.sort))?;
    let mut conn = store::acquire(&app.db).await?;
    let rows = list_archives(&mut conn, call.account_id, &filter).await?;
    Ok(call.list(rows, &filter, ArchiveView::from))
}

async fn restore(
    call: Call<scope::EntriesCreate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(RestoreEntriesRequest { archive_id }): Json<RestoreEntriesRequest>,
) -> Result<Reply<RestoredEntriesResponse>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Pages, id).await?;
    let archive = store::archives::find_archive(&mut tx, call.account_id, archive_id).await?;
    let archive = archive.ok_or_else(|| Problem::not_found("archive"))?;
    call.check_in_folder(Resource::Pages, archive.page_id, archive.folder_id)?;
    let (account_id, now) = (call.account_id, call.now);
    let restored = store::archives::restore_entries(&mut tx, account_id, id, archive_id, now).await?;
    let (entries, total, template) = match restored {
        RestoreOutcome::Done { entries, total, template } => (entries, total, template),
        RestoreOutcome::TooMany(total) => {
            let detail = format!(
                "the page would have {total} entries, more than the maximum of {ENTRIES_MAX}; nothing was changed"
            );
            return Err(Problem::new(Code::Conflict, detail).hint("restore them to another page"));
        }
        RestoreOutcome::NoPage => return Err(Problem::not_found("page")),
    };
    if template {
        // Setting the template is an edit of the page.
        call.require_scope(Resource::Pages, Action::Update)?;
    }
    let page = store::pages::find_page(&mut tx, call.account_id, id).await?;
    let page = page.ok_or_else(|| Problem::not_found("page"))?;
    call.commit(&app, tx, vec![page.location().into()]).await?;
    Ok(call.reply(RestoredEntriesResponse {
        restored: true,
        entries_restored: entries,
        total_entries: total,
        template_restored: template,
    }))
}

impl From<Archive> for ArchiveView {
    fn from(archive: Archive) -> Self {
        let Archive { id, page_id, slug, subdomain_id, entry_count, deleted_by, created_at, .. } = archive;
        Self { id, page_id, slug, subdomain_id, entry_count, deleted_by, created_at }
    }
}
