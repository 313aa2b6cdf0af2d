//! Assets: files for pages, uploaded to a signed URL.
//!
//! The bytes count against the plan as soon as the URL is issued. The size is announced exactly, so nothing remains
//! to settle after the upload. The bytes of an upload that never comes are released when its URL expires.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::plans::UNLIMITED;
use domain::scopes::Resource;
use domain::{FieldError, media, units, uploads};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::assets::Asset;
use store::uploads::{NewUpload, Purpose};
use store::usage;
use uuid::Uuid;
use web::{Code, Created, Deletion, Json, Path, Problem, Query, Reply, Sort};

use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;
use crate::uploads::UploadHeaders;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("assets")
        .post("/api/pages/assets", create, "Create an asset and get a URL to upload it to")
        .get("/api/pages/assets", list, "List assets")
        .delete("/api/pages/assets/{id}", delete, "Delete an asset permanently")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateAssetRequest {
    /// File name without folders; the last part of the public URL.
    #[schemars(length(min = 1, max = uploads::FILENAME_CHARS_MAX), regex(pattern = uploads::FILENAME_PATTERN))]
    filename: String,
    /// Media type of the file; the bytes must match it.
    #[schemars(length(min = 3, max = 161), regex(pattern = media::ESSENCE_PATTERN))]
    content_type: String,
    /// Exact number of bytes.
    #[serde(deserialize_with = "web::whole_number")]
    #[schemars(with = "i64", range(min = 1))]
    size_bytes: i64,
    /// The page it belongs to. The asset stays when the page is deleted.
    page_id: Option<Uuid>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AssetUploadResponse {
    id: Uuid,
    /// Send the bytes here, once, before `expiresAt`. The URL is the credential: no key is needed.
    upload_url: String,
    /// Always `PUT`.
    upload_method: &'static str,
    /// Headers to send with the upload.
    upload_headers: UploadHeaders,
    /// Public URL of the file, valid until the asset is deleted.
    public_url: String,
    /// The upload URL expires at this time.
    expires_at: DateTime<Utc>,
}

web::list_query!(AssetsQuery {
    /// Only assets of this page.
    page_id: Option<Uuid>,
    /// Order by creation; default `oldest`.
    sort: Option<Sort>,
});

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AssetView {
    id: Uuid,
    /// File name without folders.
    filename: String,
    /// Media type of the file.
    content_type: String,
    /// Size in bytes.
    size_bytes: i64,
    /// The page it belongs to; null for none.
    page_id: Option<Uuid>,
    /// Whether the bytes have been uploaded.
    is_uploaded: bool,
    /// Public URL of the file.
    public_url: String,
    created_at: DateTime<Utc>,
}

web::list_response!(AssetListResponse { assets: AssetView });

async fn create(
    call: Call<scope::AssetsCreate>,
    State(app): State<App>,
    Json(request): Json<CreateAssetRequest>,
) -> Result<Created<AssetUploadResponse>, Problem> {
    let content_type = check(&request)?;
    let limits = call.limits();
    if limits.asset_size_limit != UNLIMITED && request.size_bytes > limits.asset_size_limit {
        let limit = limits.asset_size_limit;
        let detail = format!(
            "the {} plan allows assets of up to {}",
            call.plan().as_str(),
            units::size(limit.unsigned_abs())
        );
        return Err(Problem::new(Code::QuotaExceeded, detail)
            .with("limit", json!(limit))
            .hint("make the file smaller, or upgrade: GET /api/account/upgrade"));
    }
    let asset = Asset {
        id: app.rng.uuid_v7(call.now),
        page_id: request.page_id,
        filename: request.filename,
        content_type,
        size_bytes: request.size_bytes,
        blob_id: None,
        created_at: call.now,
    };
    let upload = NewUpload {
        id: asset.id,
        purpose: Purpose::Asset,
        content_type: &asset.content_type,
        size_bytes: asset.size_bytes,
        expires_at: app.uploads.expires_at(call.now),
        created_at: call.now,
    };
    let mut tx = store::begin(&app.db).await?;
    check_page(&call, &mut tx, asset.page_id).await?;
    if !usage::reserve_bytes(&mut tx, call.account_id, asset.size_bytes, limits.storage_bytes).await? {
        return Err(call.storage_exceeded(asset.size_bytes));
    }
    store::assets::insert_asset(&mut tx, call.account_id, &asset).await?;
    store::uploads::insert_upload(&mut tx, call.account_id, &upload).await?;
    call.set_changed(Resource::Assets, asset.id, &asset.filename);
    call.commit(&app, tx, vec![]).await?;

    let response = AssetUploadResponse {
        id: asset.id,
        upload_url: app.uploads.url(&app.addresses, &upload),
        upload_method: "PUT",
        upload_headers: UploadHeaders::new(upload.content_type),
        public_url: app.addresses.asset(asset.id, &asset.filename),
        expires_at: upload.expires_at,
    };
    let after = After::Asset { id: asset.id, public_url: &response.public_url, filename: &asset.filename };
    let next = call.suggestions(&app, after).await;
    Ok(call.created(response).with_next(next))
}

async fn list(
    call: Call<scope::AssetsRead>,
    State(app): State<App>,
    Query(query): Query<AssetsQuery>,
) -> Result<Reply<AssetListResponse>, Problem> {
    let page_id = query.page_id;
    let mut conn = store::acquire(&app.db).await?;
    if page_id.is_some() {
        check_page(&call, &mut conn, page_id).await?;
    }
    // A key can access an asset if it can access the asset's page.
    let filter = call.list_filter(Resource::Pages, &query.pagination().sorted(query.sort))?;
    let rows = store::assets::list_assets(&mut conn, call.account_id, &filter, page_id).await?;
    let view = |asset: Asset| AssetView {
        id: asset.id,
        public_url: app.addresses.asset(asset.id, &asset.filename),
        filename: asset.filename,
        content_type: asset.content_type,
        size_bytes: asset.size_bytes,
        page_id: asset.page_id,
        is_uploaded: asset.blob_id.is_some(),
        created_at: asset.created_at,
    };
    Ok(call.list(rows, &filter, view))
}

async fn delete(
    call: Call<scope::AssetsDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deletion>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    let found = store::assets::find_asset(&mut tx, call.account_id, id).await?;
    let found = found.ok_or_else(|| Problem::not_found("asset"))?;
    check_page(&call, &mut tx, found.page_id).await?;
    // Locks in the same order as the upload, which starts with its row, and as the deletion of a page, which locks
    // the counters before the page's resources. So these transactions can't deadlock.
    store::uploads::delete_upload(&mut tx, call.account_id, id).await?;
    usage::lock(&mut tx, call.account_id).await?;
    let deleted = store::assets::delete_asset(&mut tx, call.account_id, id).await?;
    let deleted = deleted.ok_or_else(|| Problem::not_found("asset"))?;
    usage::release_bytes(&mut tx, call.account_id, deleted.size_bytes).await?;
    store::blobs::release_blobs(&mut tx, call.account_id, deleted.blob_id.as_slice(), call.now).await?;
    call.set_changed(Resource::Assets, id, &found.filename);
    call.commit(&app, tx, vec![Change::Asset { asset_id: id }]).await?;
    Ok(call.reply(Deletion::now()))
}

/// Checks access to an asset: through its page, or, without a page, as a resource of the whole account.
pub(super) async fn check_page<S>(
    call: &Call<S>,
    conn: &mut store::Conn,
    page_id: Option<Uuid>,
) -> Result<(), Problem> {
    match page_id {
        Some(page_id) => call.check_id(conn, Resource::Pages, page_id).await,
        None => {
            call.check_new(Resource::Pages)?;
            call.check_whole_account(Resource::Assets)
        }
    }
}

fn check(request: &CreateAssetRequest) -> Result<String, Problem> {
    let mut errors = uploads::check_filename(&request.filename);
    if request.size_bytes < 1 {
        errors.push(FieldError::new("sizeBytes", "range", "sizeBytes must be at least 1"));
    }
    let content_type = media::essence(&request.content_type);
    if content_type.is_none() {
        let rule = "contentType must be a media type like `image/png`";
        errors.push(FieldError::new("contentType", "media_type", rule));
    }
    match content_type {
        Some(content_type) if errors.is_empty() => Ok(content_type),
        _ => Err(Problem::validation(errors)),
    }
}
