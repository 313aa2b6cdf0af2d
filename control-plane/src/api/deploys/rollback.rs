//! Rolls a site back to before its latest deploy.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;
use web::{Path, Problem, Reply};

use super::read::find;
use crate::App;
use crate::call::{Call, scope};
use crate::deploys;

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
}

pub(super) async fn rollback(
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
