//! Assets: files for pages, uploaded by whoever is given a signed address.
//!
//! An asset's bytes count against the plan from the moment its address is given out: they are announced exactly, so
//! that nothing is left to settle when they come. What never comes is given back when its time is over.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::plans::UNLIMITED;
use domain::scopes::Resource;
use domain::{Complaint, Cursor, media, uploads};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::assets::Asset;
use store::uploads::{NewUpload, Purpose};
use store::usage;
use uuid::Uuid;
use web::{Code, Created, Deleted, Json, Listed, Paging, Path, Problem, Query, Reply};

use crate::App;
use crate::call::{Call, scope};
use crate::uploads::UploadHeaders;

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("assets")
        .post("/api/pages/assets", create, "Announce a file and get an address to upload it to")
        .get("/api/pages/assets", list, "List assets")
        .delete("/api/pages/assets/{id}", delete, "Delete an asset for good")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewAsset {
    /// A name without folders; it ends the public address.
    #[schemars(length(min = 1, max = uploads::FILENAME_CHARS_MAX), regex(pattern = uploads::FILENAME_PATTERN))]
    filename: String,
    /// What the bytes are; they must agree.
    #[schemars(length(min = 3, max = 161), regex(pattern = media::ESSENCE_PATTERN))]
    content_type: String,
    /// How many bytes will come, exactly.
    #[serde(deserialize_with = "web::whole_number")]
    #[schemars(with = "i64", range(min = 1))]
    size_bytes: i64,
    /// The page it belongs to. When the page goes the asset stays.
    page_id: Option<Uuid>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AnnouncedAsset {
    id: Uuid,
    /// Send the bytes here, once, before `expiresAt`. No key is needed: whoever has the address may.
    upload_url: String,
    /// Always `PUT`.
    upload_method: &'static str,
    upload_headers: UploadHeaders,
    /// Where it will be shown, for as long as there is the asset.
    public_url: String,
    expires_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AssetsQuery {
    /// Only assets of this page.
    page_id: Option<Uuid>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    #[schemars(extend("format" = "cursor"))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AssetView {
    id: Uuid,
    filename: String,
    content_type: String,
    size_bytes: i64,
    page_id: Option<Uuid>,
    /// Whether its bytes have come.
    is_uploaded: bool,
    public_url: String,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Assets {
    assets: Vec<AssetView>,
    #[serde(flatten)]
    listed: Listed,
}

async fn create(
    call: Call<scope::AssetsCreate>,
    State(app): State<App>,
    Json(wanted): Json<NewAsset>,
) -> Result<Created<AnnouncedAsset>, Problem> {
    let content_type = check(&wanted)?;
    let limits = call.limits();
    if limits.asset_size_limit != UNLIMITED && wanted.size_bytes > limits.asset_size_limit {
        let most = limits.asset_size_limit;
        let detail = format!("the {} plan takes assets of up to {most} bytes", call.plan().word());
        return Err(Problem::new(Code::QuotaExceeded, detail)
            .with("limit", json!(most))
            .hint("make the file smaller, or upgrade: GET /api/account/upgrade"));
    }
    let asset = Asset {
        id: app.rng.uuid_v7(call.now),
        page_id: wanted.page_id,
        filename: wanted.filename,
        content_type,
        size_bytes: wanted.size_bytes,
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
    if !usage::take_bytes(&mut tx, call.account_id, asset.size_bytes, limits.storage_bytes).await? {
        return Err(call.storage_exceeded(asset.size_bytes));
    }
    store::assets::insert_asset(&mut tx, call.account_id, &asset).await?;
    store::uploads::insert_upload(&mut tx, call.account_id, &upload).await?;
    app.commit(tx, vec![]).await?;

    let announced = AnnouncedAsset {
        id: asset.id,
        upload_url: app.uploads.url(&app.addresses, &upload),
        upload_method: "PUT",
        upload_headers: UploadHeaders::new(upload.content_type),
        public_url: app.addresses.asset(asset.id, &asset.filename),
        expires_at: upload.expires_at,
    };
    let image = json!({
        "slug": "picture", "title": asset.filename, "html": format!("<img src=\"{}\" alt=\"\">", announced.public_url),
    });
    Ok(call.created(announced).next("show", "pages.create", image, "Upload the file, then show it on a page"))
}

async fn list(
    call: Call<scope::AssetsRead>,
    State(app): State<App>,
    Query(query): Query<AssetsQuery>,
) -> Result<Reply<Assets>, Problem> {
    let AssetsQuery { page_id, limit, cursor } = query;
    let mut conn = store::acquire(&app.db).await?;
    if page_id.is_some() {
        check_page(&call, &mut conn, page_id).await?;
    }
    // An asset is within reach if its page is.
    let part = call.list_filter(Resource::Pages, &Paging::new(limit, cursor))?;
    let mut rows = store::assets::list_assets(&mut conn, call.account_id, &part, page_id).await?;
    let listed = Listed::cut(&mut rows, part.limit, |row| Cursor { created_at: row.created_at, id: row.id });
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
    let assets = rows.into_iter().map(view).collect();
    Ok(call.reply(Assets { assets, listed: listed.clone() }).part(listed))
}

async fn delete(
    call: Call<scope::AssetsDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deleted>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    let found = store::assets::find_asset(&mut tx, call.account_id, id).await?;
    let found = found.ok_or_else(|| Problem::not_found("asset"))?;
    check_page(&call, &mut tx, found.page_id).await?;
    // In the order of whoever takes its upload, and of whoever deletes its page, which takes the counters before what
    // belongs to it: one waits for the other, and never each for each.
    store::uploads::delete_upload(&mut tx, call.account_id, id).await?;
    usage::lock(&mut tx, call.account_id).await?;
    let gone = store::assets::delete_asset(&mut tx, call.account_id, id).await?;
    let gone = gone.ok_or_else(|| Problem::not_found("asset"))?;
    usage::give_back_bytes(&mut tx, call.account_id, gone.size_bytes).await?;
    store::blobs::release_blobs(&mut tx, call.account_id, gone.blob_id.as_slice(), call.now).await?;
    app.commit(tx, vec![Change::Asset { asset_id: id }]).await?;
    Ok(call.reply(Deleted::now()))
}

/// An asset lies where its page lies; one without a page is the whole account's, and on nobody's list of pages.
async fn check_page<S>(call: &Call<S>, conn: &mut store::Conn, page_id: Option<Uuid>) -> Result<(), Problem> {
    match page_id {
        Some(page_id) => call.check_id(conn, Resource::Pages, page_id).await,
        None => {
            call.check_new(Resource::Pages)?;
            call.check_whole_account(Resource::Assets)
        }
    }
}

fn check(wanted: &NewAsset) -> Result<String, Problem> {
    let mut complaints = uploads::check_filename(&wanted.filename);
    if wanted.size_bytes < 1 {
        complaints.push(Complaint::new("sizeBytes", "range", "sizeBytes must be at least 1"));
    }
    let content_type = media::essence(&wanted.content_type);
    if content_type.is_none() {
        let rule = "contentType must be a media type like `image/png`";
        complaints.push(Complaint::new("contentType", "media_type", rule));
    }
    match content_type {
        Some(content_type) if complaints.is_empty() => Ok(content_type),
        _ => Err(Problem::validation(complaints)),
    }
}
