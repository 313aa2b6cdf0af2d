//! Deploys: a whole site from one zip.

use axum::extract::State;
use blobs::Name;
use chrono::{DateTime, TimeDelta, Utc};
use domain::FieldError;
use domain::deploys::ZIP_BYTES_MAX;
use domain::plans::UNLIMITED;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::deploys::{Deploy, Status};
use store::uploads::{NewUpload, Purpose};
use tracing::Instrument;
use uuid::Uuid;
use web::{Code, Created, Json, OptionalJson, Path, Problem, Reply};

use crate::App;
use crate::call::{Call, scope};
use crate::deploys::{self, Progress};
use crate::uploads::UploadHeaders;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("deploys")
        .get("/api/deploy/{id}", read, "Get a deploy's progress")
        .post("/api/deploy/{id}/rollback", rollback, "Roll a site back to before its latest deploy")
        .extension()
        .post("/api/deploy", create, "Create a deploy and get a URL to upload its zip to")
        .post("/api/deploy/{id}/process", process, "Publish the site in an uploaded zip")
}

const CONTENT_TYPE: &str = "application/zip";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateDeployRequest {
    /// Exact number of bytes of the zip; at most 100 MB.
    #[serde(deserialize_with = "web::whole_number")]
    #[schemars(with = "i64", range(min = 1, max = ZIP_BYTES_MAX))]
    size_bytes: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeployUploadResponse {
    /// Id of the new deploy.
    deploy_id: Uuid,
    /// Send the zip here by `PUT`, once, before `expiresAt`.
    upload_url: String,
    /// Always `PUT`.
    upload_method: &'static str,
    /// Headers to send with the upload.
    upload_headers: UploadHeaders,
    /// The upload URL expires at this time.
    expires_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeployView {
    id: Uuid,
    /// `presigned`, `uploaded`, `processing`, `processed` or `rolled_back`.
    status: &'static str,
    /// The subdomain it was published to; null before processing.
    subdomain_id: Option<Uuid>,
    /// Number of files processed so far.
    files_done: i32,
    /// Number of files in the zip; 0 until they are counted.
    files_total: i32,
    /// The site's previous deploy; null for none.
    previous_deploy_id: Option<Uuid>,
    created_at: DateTime<Utc>,
    /// When processing finished; null before.
    processed_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProcessDeployRequest {
    /// Subdomain to publish to; default: the account's first subdomain.
    subdomain_id: Option<Uuid>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeployedPage {
    /// Path of the page on its site.
    slug: String,
    /// Id of the page.
    id: Uuid,
    /// `created`, `updated` or `unchanged`.
    status: &'static str,
    /// Public URL of the page.
    subdomain_url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeployedAsset {
    /// Path of the file in the site.
    filename: String,
    /// Public URL of the file.
    public_url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StalePage {
    /// Path of the page on its site.
    slug: String,
    /// Id of the page.
    id: Uuid,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeployStats {
    /// Number of new pages.
    pages_created: usize,
    /// Number of changed pages.
    pages_updated: usize,
    /// Number of assets with URLs of their own.
    assets_uploaded: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeployResultResponse {
    /// Id of the deploy.
    deploy_id: Uuid,
    /// The pages in the zip.
    pages: Vec<DeployedPage>,
    /// Images and fonts, served at URLs of their own. All other files are served at their paths in the zip.
    assets: Vec<DeployedAsset>,
    /// Public URL of the site.
    site_url: String,
    /// Pages of the site that are not in the zip. They stay, with the files of the previous deploy.
    stale_pages_not_in_zip: Vec<StalePage>,
    /// Files that were left out, with the reason.
    errors: Vec<String>,
    /// Paths that pages and style sheets refer to but that are not in the zip.
    missing_assets: Vec<String>,
    /// The site's previous deploy; null for none.
    previous_deploy_id: Option<Uuid>,
    /// Totals of this deploy.
    stats: DeployStats,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DeployRollbackPage {
    /// Path of the page on its site.
    slug: String,
    /// Id of the page.
    id: Uuid,
    /// `restored`; `unpublished` if the deploy had created the page; `kept` if the previous version is no longer
    /// stored.
    status: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeployRollbackResponse {
    /// The deploy that was rolled back.
    deploy_id: Uuid,
    /// The deploy with the files that are served again; null for none.
    served_deploy_id: Option<Uuid>,
    /// The pages that the deploy had created or changed.
    pages: Vec<DeployRollbackPage>,
}

async fn create(
    call: Call<scope::DeploysCreate>,
    State(app): State<App>,
    Json(CreateDeployRequest { size_bytes }): Json<CreateDeployRequest>,
) -> Result<Created<DeployUploadResponse>, Problem> {
    if !(1..=ZIP_BYTES_MAX).contains(&size_bytes) {
        let rule = format!("sizeBytes must be 1 to {ZIP_BYTES_MAX}");
        return Err(Problem::validation(vec![FieldError::new("sizeBytes", "range", rule)]));
    }
    call.check_whole_account(Resource::Deploys)?;
    let storage = call.limits().storage_bytes;
    if storage != UNLIMITED && size_bytes > storage {
        return Err(call.storage_exceeded(size_bytes));
    }
    let upload = NewUpload {
        id: app.rng.uuid_v7(call.now),
        purpose: Purpose::Deploy,
        content_type: CONTENT_TYPE,
        size_bytes,
        expires_at: app.uploads.expires_at(call.now),
        created_at: call.now,
    };
    let mut tx = store::begin(&app.db).await?;
    store::usage::lock(&mut tx, call.account_id).await?;
    if store::deploys::count_open(&mut tx, call.account_id).await? >= app.deploys.max_open {
        let detail = format!("this account has {} unprocessed deploys", app.deploys.max_open);
        return Err(
            Problem::new(Code::Conflict, detail).hint("process one of them, or wait until they expire")
        );
    }
    store::deploys::insert_deploy(&mut tx, call.account_id, upload.id, size_bytes, call.now).await?;
    store::uploads::insert_upload(&mut tx, call.account_id, &upload).await?;
    app.commit(tx, vec![]).await?;
    let response = DeployUploadResponse {
        deploy_id: upload.id,
        upload_url: app.uploads.url(&app.addresses, &upload),
        upload_method: "PUT",
        upload_headers: UploadHeaders::new(CONTENT_TYPE),
        expires_at: upload.expires_at,
    };
    let id = json!({"id": upload.id});
    Ok(call.created(response).next("publish", "deploys.process", id, "Upload the zip, then publish its site"))
}

async fn read(
    call: Call<scope::DeploysRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<DeployView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let deploy = find(&call, &mut conn, id).await?;
    let is_processed_now = deploy.leased_until.is_some_and(|until| until > call.now);
    let status = if is_processed_now { "processing" } else { deploy.status.as_str() };
    Ok(call.reply(DeployView {
        id,
        status,
        subdomain_id: deploy.subdomain_id,
        files_done: deploy.files_done,
        files_total: deploy.files_total,
        previous_deploy_id: deploy.previous_id,
        created_at: deploy.created_at,
        processed_at: deploy.processed_at,
    }))
}

/// Runs in its own task, which continues after the caller disconnects: a long deploy can exceed the caller's timeout.
async fn process(
    call: Call<scope::DeploysUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    OptionalJson(request): OptionalJson<ProcessDeployRequest>,
) -> Result<Reply<DeployResultResponse>, Problem> {
    let task = tokio::spawn(process_deploy(call, app, id, request).in_current_span());
    task.await.unwrap_or_else(|error| {
        tracing::error!(%error, "the task that processes a deploy ended early");
        Err(Problem::outcome_unknown())
    })
}

async fn process_deploy(
    call: Call<scope::DeploysUpdate>,
    app: App,
    id: Uuid,
    request: Option<ProcessDeployRequest>,
) -> Result<Reply<DeployResultResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let deploy = find(&call, &mut conn, id).await?;
    let subdomain = call.subdomain(&mut conn, request.and_then(|request| request.subdomain_id)).await?;
    let (zip_id, sha256) = deploy.zip.ok_or_else(|| not_ready(&deploy))?;
    if deploy.leased_until.is_some_and(|until| until > call.now) {
        return Err(already_processing());
    }
    drop(conn);
    // Held until the deploy is published.
    let _permit = app.deploy_admission.acquire_account(call.account_id).await?;
    let mut conn = store::acquire(&app.db).await?;
    let now = app.clock.now();
    let until = now + TimeDelta::from_std(app.deploys.lease_ttl).unwrap_or_default();
    if !store::deploys::lease_deploy(&mut conn, call.account_id, id, now, until).await? {
        return Err(already_processing());
    }
    drop(conn);
    let progress = Progress::default();
    let zip = Name { account_id: call.account_id, sha256 };
    let work = async {
        let site = deploys::build(&app, &call, zip, deploy.size_bytes, subdomain.id, &progress).await?;
        let published = deploys::publish(&app, &call, id, zip_id, &subdomain, &site).await?;
        Ok::<_, Problem>((site, published))
    };
    let (site, published) = match progress.report_while(&app, call.account_id, id, work).await {
        Ok(done) => done,
        Err(problem) => {
            Progress::release(&app, call.account_id, id).await;
            return Err(problem);
        }
    };
    let view = |page: deploys::PublishedPage| DeployedPage {
        subdomain_url: app.addresses.page(&subdomain.name, &page.slug),
        slug: page.slug,
        id: page.id,
        status: page.status,
    };
    let pages: Vec<DeployedPage> = published.pages.into_iter().map(view).collect();
    let assets = assets(&app, &site);
    let count = |status: &str| pages.iter().filter(|page| page.status == status).count();
    let stats = DeployStats {
        pages_created: count("created"),
        pages_updated: count("updated"),
        assets_uploaded: assets.len(),
    };
    let stale = published.stale.into_iter().map(|page| StalePage { slug: page.slug, id: page.id });
    Ok(call.reply(DeployResultResponse {
        deploy_id: id,
        pages,
        assets,
        site_url: app.addresses.page(&subdomain.name, domain::pages::INDEX),
        stale_pages_not_in_zip: stale.collect(),
        errors: site.errors,
        missing_assets: site.missing.into_iter().collect(),
        previous_deploy_id: published.previous_id,
        stats,
    }))
}

async fn rollback(
    call: Call<scope::DeploysUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<DeployRollbackResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let deploy = find(&call, &mut conn, id).await?;
    drop(conn);
    let rolled_back = deploys::rollback(&app, &call, &deploy).await?;
    let view = |page: deploys::RolledBackPage| DeployRollbackPage {
        slug: page.slug,
        id: page.id,
        status: page.status,
    };
    Ok(call.reply(DeployRollbackResponse {
        deploy_id: id,
        served_deploy_id: deploy.previous_id,
        pages: rolled_back.pages.into_iter().map(view).collect(),
    }))
}

/// Returns the deploy if the caller may access its site. A deploy changes a whole site, so a key restricted to a
/// folder has no access.
async fn find<S>(call: &Call<S>, conn: &mut store::Conn, id: Uuid) -> Result<Deploy, Problem> {
    let deploy = store::deploys::find_deploy(conn, call.account_id, id).await?;
    let deploy = deploy.ok_or_else(|| Problem::not_found("deploy"))?;
    call.check_whole_account(Resource::Deploys)?;
    if deploy.subdomain_id.is_some() {
        call.subdomain(conn, deploy.subdomain_id).await?;
    }
    Ok(deploy)
}

fn already_processing() -> Problem {
    Problem::new(Code::Conflict, "this deploy is already being processed")
        .hint("see its progress with GET /api/deploy/{id}")
}

fn not_ready(deploy: &Deploy) -> Problem {
    match deploy.status {
        Status::Presigned | Status::Uploaded => {
            Problem::new(Code::Conflict, "the zip of this deploy has not been uploaded")
                .hint("PUT it to the uploadUrl from POST /api/deploy")
        }
        Status::Processed | Status::RolledBack => {
            Problem::new(Code::Conflict, "this deploy was already processed").hint("create a new one")
        }
    }
}

fn assets(app: &App, site: &deploys::BuiltSite) -> Vec<DeployedAsset> {
    let by_content = site.files.iter().filter(|file| file.by_content);
    let view = |file: &deploys::BuiltFile| {
        let name = domain::deploys::paths::name_of(&file.path);
        let public_url = app.addresses.asset_by_content(&hex::encode(file.blob.sha256), name);
        DeployedAsset { filename: file.path.clone(), public_url }
    };
    by_content.map(view).collect()
}
