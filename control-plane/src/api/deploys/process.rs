//! Publishes the site in an uploaded zip, or makes a preview of it.

use axum::extract::State;
use blobs::Name;
use chrono::{DateTime, TimeDelta, Utc};
use domain::FieldError;
use domain::deploys::kept_files::OldFiles;
use domain::deploys::report::DeployStats;
use domain::scopes::Resource;
use domain::static_sites::deploy_notes::Note;
use domain::static_sites::site_path;
use domain::static_sites::site_plan::ListedFile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::deploys::{Deploy, Status};
use store::subdomains::Subdomain;
use tracing::Instrument;
use uuid::Uuid;
use web::{Code, CreatedOrChanged, OptionalJson, Path, Problem};

use super::read::{find, preview_url};
use crate::App;
use crate::call::{Call, scope};
use crate::deploys::{self, BuiltSite, Preview, Progress, Published, Source, Upload};
use crate::next_steps::After;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProcessDeployRequest {
    /// Subdomain to publish to; default: the account's first subdomain.
    subdomain_id: Option<Uuid>,
    /// Folder of the zip that is the site, such as `web/dist`; `/` is the zip's top. Default: found by its `index.html`.
    root: Option<String>,
    /// Whether addresses without a file answer with `index.html`, as single-page applications need. Default: no.
    #[serde(default)]
    spa: bool,
    /// Whether files of the previous deploy with a content hash in their names stay reachable for 24 hours, so that open
    /// tabs can load them. `false` also ends those of earlier deploys. Default: yes.
    keep_old_files: Option<bool>,
    /// Whether the site goes live. With `false` it becomes a preview at a host of its own, creates no page, and changes nothing
    /// of the live site; `POST /api/deploy/{id}/publish` makes it live later. Default: yes.
    #[serde(default = "yes")]
    publish: bool,
    /// Whether to answer only what publishing would do (extension): the pages that it would create, change and leave, the pages
    /// that are not in the zip, and the files that would be missing. Nothing is stored or published, and the deploy can be
    /// processed afterwards. Default: no.
    #[serde(default)]
    dry_run: bool,
}

fn yes() -> bool {
    true
}

impl Default for ProcessDeployRequest {
    fn default() -> Self {
        Self {
            subdomain_id: None,
            root: None,
            spa: false,
            keep_old_files: None,
            publish: yes(),
            dry_run: false,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeployedPage {
    /// Slug of the page. `/<slug>` answers with the page, or redirects to the path of its file.
    slug: String,
    /// Id of the page; null for one that does not exist yet, of a dry run.
    id: Option<Uuid>,
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
    /// Slug of the page.
    slug: String,
    /// Id of the page.
    id: Uuid,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployResultResponse {
    /// Id of the deploy.
    deploy_id: Uuid,
    /// Whether this is only what publishing would do, as `dryRun` asked (extension).
    dry_run: bool,
    /// The HTML files of the zip that are pages. All files are served at their paths in the site.
    pages: Vec<DeployedPage>,
    /// Images and fonts, which are also served at URLs of their own.
    assets: Vec<DeployedAsset>,
    /// Public URL of the site.
    site_url: String,
    /// Pages of the site that are not in the zip. They stay, with the files of the previous deploy.
    stale_pages_not_in_zip: Vec<StalePage>,
    /// Files that were left out because of an error, with the reason.
    errors: Vec<String>,
    /// Files of the zip that are not served, and HTML that is served without being a page, by path.
    files: Vec<ListedFile>,
    /// Lines of `_redirects` and `_headers` that are ignored, slugs that differ from the paths of their files, and old files
    /// that the plan has no room to keep.
    notes: Vec<Note>,
    /// Paths that pages and style sheets refer to but that are not in the zip; of a dry run without those that the site still
    /// serves afterwards.
    missing_assets: Vec<String>,
    /// The site's previous deploy; null for none.
    previous_deploy_id: Option<Uuid>,
    /// Totals of this deploy.
    stats: DeployStats,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployPreviewResponse {
    /// Id of the deploy.
    deploy_id: Uuid,
    /// The site, for everyone who knows this URL. Search engines don't index it, and no visit is counted. It answers 404 once the
    /// preview is published, expired or deleted.
    preview_url: String,
    /// When the preview ends and its files are deleted.
    preview_expires_at: DateTime<Utc>,
    /// Images and fonts, which are also served at URLs of their own.
    assets: Vec<DeployedAsset>,
    /// Files that were left out because of an error, with the reason.
    errors: Vec<String>,
    /// Files of the zip that are not served, and HTML that would be served without being a page, by path.
    files: Vec<ListedFile>,
    /// Lines of `_redirects` and `_headers` that are ignored, and slugs that would differ from the paths of their files.
    notes: Vec<Note>,
    /// Paths that pages and style sheets refer to but that are not in the zip.
    missing_assets: Vec<String>,
    /// Totals of this deploy.
    stats: DeployStats,
}

/// Runs in its own task, which continues after the caller disconnects: a long deploy can exceed the caller's timeout.
pub(super) async fn process(
    call: Call<scope::DeploysUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    OptionalJson(request): OptionalJson<ProcessDeployRequest>,
) -> Result<CreatedOrChanged<DeployPreviewResponse, DeployResultResponse>, Problem> {
    to_the_end(process_deploy(call, app, id, request)).await
}

/// Runs `work` in a task of its own.
pub(super) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(work.in_current_span()).await.unwrap_or_else(|error| {
        tracing::error!(%error, "the task that processes a deploy ended early");
        Err(Problem::outcome_unknown())
    })
}

async fn process_deploy(
    call: Call<scope::DeploysUpdate>,
    app: App,
    id: Uuid,
    request: Option<ProcessDeployRequest>,
) -> Result<CreatedOrChanged<DeployPreviewResponse, DeployResultResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let deploy = find(&call, &mut conn, id).await?;
    let request = request.unwrap_or_default();
    let subdomain = call.subdomain(&mut conn, request.subdomain_id).await?;
    check_ready(&deploy)?;
    if request.dry_run && !request.publish {
        let rule = "dryRun answers what publishing would do; leave out publish";
        return Err(Problem::validation(vec![FieldError::new("publish", "conflict", rule)]));
    }
    if !request.publish {
        // The HTML of a preview has no pages, which a key could be restricted to.
        call.check_new(Resource::Pages)?;
        deploys::check_room(&app, &call, &mut conn).await?;
    }
    drop(conn);
    let progress = Progress::default();
    let upload = Upload {
        deploy_id: id,
        zip: deploy.zip.map(|(_, sha256)| Name { account_id: call.account_id, sha256 }),
        size_bytes: deploy.size_bytes,
        has_manifest: deploy.has_manifest,
        root: request.root,
        spa: request.spa,
        is_preview: !request.publish,
    };
    if request.dry_run {
        return dry_run(call, &app, &deploy, upload, &subdomain).await;
    }
    let old_files = OldFiles::from_request(request.keep_old_files);
    let work = async {
        let site = deploys::build(&app, &call, upload, subdomain.id, &progress).await?;
        let zip_id = deploy.zip.map(|(id, _)| id);
        if !request.publish {
            let preview = deploys::preview(&app, &call, id, zip_id, &subdomain, &site).await?;
            return Ok((site, Err(preview)));
        }
        let source = Source::Zip(zip_id);
        let published = deploys::publish(&app, &call, id, source, &subdomain, &site, old_files).await?;
        Ok::<_, Problem>((site, Ok(published)))
    };
    let (site, done) = with_lease(&app, &call, &deploy, &progress, work).await?;
    Ok(match done {
        Ok(published) => {
            let next = call.suggestions(&app, After::Pages).await;
            let response = result(&app, id, &subdomain.name, site, published);
            CreatedOrChanged::Changed(call.reply(response).with_next(next))
        }
        Err(preview) => {
            let response = preview_result(&app, id, site, &preview);
            let next = call.suggestions(&app, After::Preview { id }).await;
            CreatedOrChanged::Created(call.created(response).with_next(next))
        }
    })
}

/// Answers what publishing would do. The deploy can be processed afterwards.
async fn dry_run(
    call: Call<scope::DeploysUpdate>,
    app: &App,
    deploy: &Deploy,
    upload: Upload,
    subdomain: &Subdomain,
) -> Result<CreatedOrChanged<DeployPreviewResponse, DeployResultResponse>, Problem> {
    let progress = Progress::default();
    let work = async {
        let mut site = deploys::build_unstored(app, &call, upload, subdomain.id, &progress).await?;
        let planned = deploys::dry_run(app, &call, deploy.id, subdomain, &mut site).await?;
        Ok((site, planned))
    };
    let (site, planned) = with_lease(app, &call, deploy, &progress, work).await?;
    Progress::release(app, call.account_id, (deploy.id, deploy.status)).await;
    let response =
        DeployResultResponse { dry_run: true, ..result(app, deploy.id, &subdomain.name, site, planned) };
    let hint = "Publish it; so far nothing was changed";
    let next = call.suggestions(app, After::Deploy { id: deploy.id, hint }).await;
    Ok(CreatedOrChanged::Changed(call.reply(response).with_next(next)))
}

/// Runs `work` on a deploy that no other process works on, and reports its progress. One deploy of an account is worked on
/// at a time.
pub(super) async fn with_lease<S, T>(
    app: &App,
    call: &Call<S>,
    deploy: &Deploy,
    progress: &Progress,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    if deploy.leased_until.is_some_and(|until| until > call.now) {
        return Err(already_processing());
    }
    // Held until the deploy is published.
    let _permit = app.deploy_admission.acquire_account(call.account_id).await?;
    let mut conn = store::acquire(&app.db).await?;
    let now = app.clock.now();
    let until = now + TimeDelta::from_std(app.deploys.lease_ttl).unwrap_or_default();
    let (account_id, id) = (call.account_id, deploy.id);
    if !store::deploys::lease_deploy(&mut conn, account_id, id, deploy.status, now, until).await? {
        return Err(already_processing());
    }
    drop(conn);
    let leased = (id, deploy.status);
    let done = progress.report_while(app, account_id, leased, work).await;
    if done.is_err() {
        Progress::release(app, account_id, leased).await;
    }
    done
}

/// Returns the response with a published site.
pub(super) fn result(
    app: &App,
    deploy_id: Uuid,
    subdomain: &str,
    site: BuiltSite,
    published: Published,
) -> DeployResultResponse {
    let view = |page: deploys::PublishedPage| DeployedPage {
        subdomain_url: app.addresses.page(subdomain, &page.slug),
        slug: page.slug,
        id: page.id,
        status: page.status,
    };
    let assets = assets(app, &site);
    let mut files = site.listed;
    files.sort_unstable();
    let stale = published.stale.into_iter().map(|page| StalePage { slug: page.slug, id: page.id });
    DeployResultResponse {
        deploy_id,
        dry_run: false,
        pages: published.pages.into_iter().map(view).collect(),
        assets,
        site_url: app.addresses.page(subdomain, domain::pages::INDEX),
        stale_pages_not_in_zip: stale.collect(),
        errors: site.errors,
        files,
        notes: site.notes.into_iter().chain(published.note).collect(),
        missing_assets: site.missing.into_iter().collect(),
        previous_deploy_id: published.previous_id,
        stats: published.stats,
    }
}

fn preview_result(app: &App, deploy_id: Uuid, site: BuiltSite, preview: &Preview) -> DeployPreviewResponse {
    let assets = assets(app, &site);
    let mut files = site.listed;
    files.sort_unstable();
    DeployPreviewResponse {
        deploy_id,
        preview_url: preview_url(app, &preview.label),
        preview_expires_at: preview.expires_at,
        assets,
        errors: site.errors,
        files,
        notes: site.notes,
        missing_assets: site.missing.into_iter().collect(),
        stats: preview.stats,
    }
}

fn already_processing() -> Problem {
    Problem::new(Code::Conflict, "this deploy is already being processed")
        .hint("see its progress with GET /api/deploy/{id}")
}

fn check_ready(deploy: &Deploy) -> Result<(), Problem> {
    match deploy.status {
        Status::Uploaded => Ok(()),
        Status::Presigned => {
            Err(Problem::new(Code::Conflict, "the zip of this deploy has not been uploaded")
                .hint("PUT it to the uploadUrl from POST /api/deploy"))
        }
        Status::Preview => Err(Problem::new(Code::Conflict, "this deploy was processed, and is a preview")
            .hint("make it live with POST /api/deploy/{id}/publish")),
        Status::Expired | Status::Processed | Status::RolledBack => {
            Err(Problem::new(Code::Conflict, "this deploy was already processed").hint("create a new one"))
        }
    }
}

fn assets(app: &App, site: &BuiltSite) -> Vec<DeployedAsset> {
    let by_content = site.files.iter().filter(|file| file.by_content);
    let view = |file: &deploys::BuiltFile| {
        let name = site_path::name_of(&file.path);
        let public_url = app.addresses.asset_by_content(&hex::encode(file.blob.sha256), name);
        DeployedAsset { filename: file.path.clone(), public_url }
    };
    by_content.map(view).collect()
}
