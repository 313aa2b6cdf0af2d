//! The progress of a deploy.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::Serialize;
use store::deploys::Deploy;
use uuid::Uuid;
use web::{Path, Problem, Reply};

use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployView {
    id: Uuid,
    /// `presigned`, `uploaded`, `processing`, `processed` or `rolled_back`.
    status: &'static str,
    /// The subdomain it was published to; null before processing.
    subdomain_id: Option<Uuid>,
    /// Number of files processed so far.
    files_done: i32,
    /// Number of files of the site; 0 until they are counted.
    files_total: i32,
    /// The site's previous deploy; null for none.
    previous_deploy_id: Option<Uuid>,
    created_at: DateTime<Utc>,
    /// When processing finished; null before.
    processed_at: Option<DateTime<Utc>>,
}

pub(super) async fn read(
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

/// Returns the deploy if the caller may access its site. A deploy changes a whole site, so a key restricted to a
/// folder has no access.
pub(super) async fn find<S>(call: &Call<S>, conn: &mut store::Conn, id: Uuid) -> Result<Deploy, Problem> {
    let deploy = store::deploys::find_deploy(conn, call.account_id, id).await?;
    let deploy = deploy.ok_or_else(|| Problem::not_found("deploy"))?;
    call.check_whole_account(Resource::Deploys)?;
    if deploy.subdomain_id.is_some() {
        call.subdomain(conn, deploy.subdomain_id).await?;
    }
    Ok(deploy)
}
