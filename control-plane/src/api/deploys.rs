//! Deploys: a whole site from one zip.

use axum::extract::State;
use blobs::Name;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Complaint;
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

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("deploys")
        .get("/api/deploy/{id}", read, "How far a deploy is")
        .post("/api/deploy/{id}/rollback", rollback, "Make a site what it was before its newest deploy")
        .extension()
        .post("/api/deploy", create, "Begin a deploy and get an address to upload its zip to")
        .post("/api/deploy/{id}/process", process, "Publish the site in an uploaded zip")
}

const CONTENT_TYPE: &str = "application/zip";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewDeploy {
    /// How many bytes the zip has, exactly; at most 100 MB.
    #[serde(deserialize_with = "web::whole_number")]
    #[schemars(with = "i64", range(min = 1, max = ZIP_BYTES_MAX))]
    size_bytes: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BegunDeploy {
    deploy_id: Uuid,
    /// Send the zip here, once, before `expiresAt`, by `PUT`.
    upload_url: String,
    upload_method: &'static str,
    upload_headers: UploadHeaders,
    expires_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeployView {
    id: Uuid,
    /// `presigned`, `uploaded`, `processing`, `processed` or `rolled_back`.
    status: &'static str,
    subdomain_id: Option<Uuid>,
    files_done: i32,
    /// 0 until they are counted.
    files_total: i32,
    /// The deploy its site had before.
    previous_deploy_id: Option<Uuid>,
    created_at: DateTime<Utc>,
    processed_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Processing {
    /// Where to publish: the account's first subdomain unless told otherwise.
    subdomain_id: Option<Uuid>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeployedPage {
    slug: String,
    id: Uuid,
    /// `created`, `updated` or `unchanged`.
    status: &'static str,
    subdomain_url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeployedAsset {
    /// Its path in the site.
    filename: String,
    public_url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StalePage {
    slug: String,
    id: Uuid,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Stats {
    pages_created: usize,
    pages_updated: usize,
    assets_uploaded: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProcessedDeploy {
    deploy_id: Uuid,
    pages: Vec<DeployedPage>,
    /// Images and fonts. All other files are served at the paths they have in the zip.
    assets: Vec<DeployedAsset>,
    site_url: String,
    /// Pages of the site that the zip doesn't have. They stay, with the files of the deploy before.
    stale_pages_not_in_zip: Vec<StalePage>,
    /// What was left out, and why.
    errors: Vec<String>,
    /// Paths that pages and style sheets refer to and that are not in the zip.
    missing_assets: Vec<String>,
    previous_deploy_id: Option<Uuid>,
    stats: Stats,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RestoredPage {
    slug: String,
    id: Uuid,
    /// `restored`; `unpublished` if the deploy had made it; `kept` if its version before is no longer kept.
    status: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RolledBack {
    deploy_id: Uuid,
    /// The deploy whose files are served again, if there is one.
    served_deploy_id: Option<Uuid>,
    pages: Vec<RestoredPage>,
}

async fn create(
    call: Call<scope::DeploysCreate>,
    State(app): State<App>,
    Json(NewDeploy { size_bytes }): Json<NewDeploy>,
) -> Result<Created<BegunDeploy>, Problem> {
    if !(1..=ZIP_BYTES_MAX).contains(&size_bytes) {
        let rule = format!("sizeBytes must be 1 to {ZIP_BYTES_MAX}");
        return Err(Problem::validation(vec![Complaint::new("sizeBytes", "range", rule)]));
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
        let detail = format!("{} deploys of this account are begun and not processed", app.deploys.max_open);
        return Err(
            Problem::new(Code::Conflict, detail).hint("process one of them, or wait until they expire")
        );
    }
    store::deploys::insert_deploy(&mut tx, call.account_id, upload.id, size_bytes, call.now).await?;
    store::uploads::insert_upload(&mut tx, call.account_id, &upload).await?;
    app.commit(tx, vec![]).await?;
    let begun = BegunDeploy {
        deploy_id: upload.id,
        upload_url: app.uploads.url(&app.addresses, &upload),
        upload_method: "PUT",
        upload_headers: UploadHeaders::new(CONTENT_TYPE),
        expires_at: upload.expires_at,
    };
    let id = json!({"id": upload.id});
    Ok(call.created(begun).next("publish", "deploys.process", id, "Upload the zip, then publish its site"))
}

async fn read(
    call: Call<scope::DeploysRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<DeployView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let deploy = find(&call, &mut conn, id).await?;
    let is_processed_now = deploy.leased_until.is_some_and(|until| until > call.now);
    let status = if is_processed_now { "processing" } else { deploy.status.word() };
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

/// Goes on when the caller has left: a long one is longer than some wait, and would never be done.
async fn process(
    call: Call<scope::DeploysUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    OptionalJson(wanted): OptionalJson<Processing>,
) -> Result<Reply<ProcessedDeploy>, Problem> {
    let going_on = tokio::spawn(carry_out(call, app, id, wanted).in_current_span());
    going_on.await.unwrap_or_else(|ended| {
        tracing::error!(%ended, "processing a deploy broke off");
        Err(Problem::away(false))
    })
}

async fn carry_out(
    call: Call<scope::DeploysUpdate>,
    app: App,
    id: Uuid,
    wanted: Option<Processing>,
) -> Result<Reply<ProcessedDeploy>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let deploy = find(&call, &mut conn, id).await?;
    let subdomain = call.subdomain(&mut conn, wanted.and_then(|wanted| wanted.subdomain_id)).await?;
    let (zip_id, sha256) = deploy.zip.ok_or_else(|| not_ready(&deploy))?;
    let until = call.now + TimeDelta::from_std(app.deploys.lease_ttl).unwrap_or_default();
    if !store::deploys::lease_deploy(&mut conn, call.account_id, id, call.now, until).await? {
        return Err(Problem::new(Code::Conflict, "this deploy is being processed")
            .hint("see how far it is with GET /api/deploy/{id}"));
    }
    drop(conn);
    let progress = Progress::default();
    let zip = Name { account_id: call.account_id, sha256 };
    let work = async {
        let most = call.limits().asset_size_limit;
        let site = deploys::build(&app, call.account_id, zip, deploy.size_bytes, most, &progress).await?;
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
    let stats = Stats {
        pages_created: count("created"),
        pages_updated: count("updated"),
        assets_uploaded: assets.len(),
    };
    let stale = published.stale.into_iter().map(|page| StalePage { slug: page.slug, id: page.id });
    Ok(call.reply(ProcessedDeploy {
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
) -> Result<Reply<RolledBack>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let deploy = find(&call, &mut conn, id).await?;
    drop(conn);
    let rolled_back = deploys::rollback(&app, &call, &deploy).await?;
    let view =
        |page: deploys::RolledBackPage| RestoredPage { slug: page.slug, id: page.id, status: page.status };
    Ok(call.reply(RolledBack {
        deploy_id: id,
        served_deploy_id: deploy.previous_id,
        pages: rolled_back.pages.into_iter().map(view).collect(),
    }))
}

/// The deploy in the path, if its site is within reach. It concerns a whole site, so that a key kept to a folder can't
/// touch it.
async fn find<S>(call: &Call<S>, conn: &mut store::Conn, id: Uuid) -> Result<Deploy, Problem> {
    let deploy = store::deploys::find_deploy(conn, call.account_id, id).await?;
    let deploy = deploy.ok_or_else(|| Problem::not_found("deploy"))?;
    call.check_whole_account(Resource::Deploys)?;
    if deploy.subdomain_id.is_some() {
        call.subdomain(conn, deploy.subdomain_id).await?;
    }
    Ok(deploy)
}

fn not_ready(deploy: &Deploy) -> Problem {
    match deploy.status {
        Status::Presigned | Status::Uploaded => {
            Problem::new(Code::Conflict, "the zip of this deploy has not been uploaded")
                .hint("PUT it to the uploadUrl that POST /api/deploy gave")
        }
        Status::Processed | Status::RolledBack => {
            Problem::new(Code::Conflict, "this deploy was processed already").hint("begin a new one")
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
