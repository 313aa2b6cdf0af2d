//! Rolls a site back to before its latest deploy.

use axum::extract::State;
use domain::deploys::kept_files::OldFiles;
use domain::static_sites::deploy_notes::Note;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use web::{OptionalJson, Path, Problem, Reply};

use super::read::find;
use crate::App;
use crate::call::{Call, scope};
use crate::deploys;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RollBackDeployRequest {
    /// Whether files of the deploy with a content hash in their names stay reachable for 24 hours, so that open tabs can load
    /// them. `false` also ends those of earlier deploys. Default: yes.
    keep_old_files: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DeployRollbackPage {
    /// Slug of the page.
    slug: String,
    /// Id of the page.
    id: Uuid,
    /// `restored`; `unpublished` if the deploy had created the page; `kept` if the previous version is no longer
    /// stored.
    status: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployRollbackResponse {
    /// The deploy that was rolled back.
    deploy_id: Uuid,
    /// The deploy with the files that are served again; null for none.
    served_deploy_id: Option<Uuid>,
    /// The pages that the deploy had created or changed.
    pages: Vec<DeployRollbackPage>,
    /// Files of the deploy that the plan has no room to keep reachable.
    notes: Vec<Note>,
}

pub(super) async fn rollback(
    call: Call<scope::DeploysUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    OptionalJson(request): OptionalJson<RollBackDeployRequest>,
) -> Result<Reply<DeployRollbackResponse>, Problem> {
    let old_files = OldFiles::from_request(request.unwrap_or_default().keep_old_files);
    let mut conn = store::acquire(&app.db).await?;
    let deploy = find(&call, &mut conn, id).await?;
    drop(conn);
    let rolled_back = deploys::rollback(&app, &call, &deploy, old_files).await?;
    let view = |page: deploys::RolledBackPage| DeployRollbackPage {
        slug: page.slug,
        id: page.id,
        status: page.status,
    };
    Ok(call.reply(DeployRollbackResponse {
        deploy_id: id,
        served_deploy_id: deploy.previous_id,
        pages: rolled_back.pages.into_iter().map(view).collect(),
        notes: rolled_back.note.into_iter().collect(),
    }))
}
