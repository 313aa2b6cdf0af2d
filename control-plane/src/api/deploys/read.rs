//! The state and progress of a deploy.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::deploys::report::DeployStats;
use domain::pages::INDEX;
use domain::previews;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::Serialize;
use store::deploys::{Deploy, Status};
use uuid::Uuid;
use web::{Path, Problem, Reply};

use crate::App;
use crate::call::{Call, scope};

/// What every view of a deploy shows.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployState {
    /// `presigned`, `uploaded`, `processing`, `preview`, `expired` (a preview that ended), `processed` or `rolled_back`.
    status: &'static str,
    /// Whether it is what its site serves.
    is_live: bool,
    /// The subdomain it was published to, or is a preview of; null before processing.
    subdomain_id: Option<Uuid>,
    /// What it changes, in its creator's words (extension); null for none.
    message: Option<String>,
    /// The name of the key, or the email of the person, that created it; null for old deploys.
    created_by: Option<String>,
    created_at: DateTime<Utc>,
    /// When it was published; null before.
    processed_at: Option<DateTime<Utc>>,
    /// Totals of the deploy; null before processing and for old deploys.
    stats: Option<DeployStats>,
    /// URL of the preview; null if it is none, and for a key that is restricted to pages.
    preview_url: Option<String>,
    /// When the preview ends or ended; null for other deploys.
    preview_expires_at: Option<DateTime<Utc>>,
    /// Public URL of its site; null before processing.
    site_url: Option<String>,
}

impl DeployState {
    pub(super) fn new(app: &App, deploy: Deploy, now: DateTime<Utc>, shows_previews: bool) -> Self {
        let is_processed_now = deploy.leased_until.is_some_and(|until| until > now);
        let status = match deploy.status {
            _ if is_processed_now => "processing",
            Status::Preview if has_expired(&deploy, now) => Status::Expired.as_str(),
            status => status.as_str(),
        };
        let is_shown = shows_previews && !has_expired(&deploy, now);
        let token = deploy.preview_token.as_deref().filter(|_| is_shown);
        let preview = token.zip(deploy.subdomain.as_deref());
        Self {
            status,
            is_live: deploy.is_live,
            subdomain_id: deploy.subdomain_id,
            preview_url: preview.map(|(token, name)| preview_url(app, &previews::label(token, name))),
            site_url: deploy.subdomain.as_deref().map(|name| app.addresses.page(name, INDEX)),
            message: deploy.message,
            created_by: deploy.created_by,
            created_at: deploy.created_at,
            processed_at: deploy.processed_at,
            stats: deploy.stats,
            preview_expires_at: deploy.preview_expires_at,
        }
    }
}

/// Returns the URL of the preview with this label.
pub(super) fn preview_url(app: &App, label: &str) -> String {
    app.addresses.page(label, INDEX)
}

/// Returns whether the time of a preview is over. Its files may still be stored for a moment.
pub(super) fn has_expired(deploy: &Deploy, now: DateTime<Utc>) -> bool {
    deploy.preview_expires_at.is_some_and(|at| at <= now)
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployView {
    id: Uuid,
    #[serde(flatten)]
    state: DeployState,
    /// Number of files processed so far.
    files_done: i32,
    /// Number of files of the site; 0 until they are counted.
    files_total: i32,
    /// The site's previous deploy; null for none.
    previous_deploy_id: Option<Uuid>,
}

pub(super) async fn read(
    call: Call<scope::DeploysRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<DeployView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let deploy = find(&call, &mut conn, id).await?;
    let (files_done, files_total) = (deploy.files_done, deploy.files_total);
    let previous_deploy_id = deploy.previous_id;
    let state = DeployState::new(&app, deploy, call.now, shows_previews(&call));
    Ok(call.reply(DeployView { id, state, files_done, files_total, previous_deploy_id }))
}

/// Returns the deploy if the caller may access its site. A deploy changes a whole site, so a key restricted to a
/// folder has no access. A deploy without a site may have files of any, so a restricted key finds only those it created.
pub(super) async fn find<S>(call: &Call<S>, conn: &mut store::Conn, id: Uuid) -> Result<Deploy, Problem> {
    let deploy = store::deploys::find_deploy(conn, call.account_id, id).await?;
    let deploy = deploy.ok_or_else(|| Problem::not_found("deploy"))?;
    call.check_whole_account(Resource::Deploys)?;
    if deploy.subdomain_id.is_some() {
        call.subdomain(conn, deploy.subdomain_id).await?;
    } else if unprocessed_by(call).is_some_and(|key_id| deploy.created_by_key != Some(key_id)) {
        return Err(Problem::not_found("deploy"));
    }
    Ok(deploy)
}

/// Returns whether the caller may see previews, which show all pages of a site.
pub(super) fn shows_previews<S>(call: &Call<S>) -> bool {
    call.restrictions().ids_of(Resource::Pages).is_none()
}

/// Returns the caller's key if it is restricted to ids: it sees no other's deploys without a site.
pub(super) fn unprocessed_by<S>(call: &Call<S>) -> Option<Uuid> {
    call.caller.key_id().filter(|_| !call.restrictions().ids.is_empty())
}
