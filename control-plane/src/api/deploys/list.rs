//! The deploys of an account.

use axum::extract::State;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;
use web::{PaginationQuery, Problem, Query, Reply};

use super::read::{DeployState, shows_previews, unprocessed_by};
use crate::App;
use crate::call::{Call, scope};

/// A deploy in the list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedDeploy {
    /// Id of the deploy.
    deploy_id: Uuid,
    #[serde(flatten)]
    state: DeployState,
}

web::list_response!(pub(super) DeployListResponse { deploys: ListedDeploy });

pub(super) async fn list(
    call: Call<scope::DeploysRead>,
    State(app): State<App>,
    Query(pagination): Query<PaginationQuery>,
) -> Result<Reply<DeployListResponse>, Problem> {
    call.check_whole_account(Resource::Deploys)?;
    let filter = call.list_filter(Resource::Subdomains, &pagination)?;
    let mut conn = store::acquire(&app.db).await?;
    let rows =
        store::deploys::list_deploys(&mut conn, call.account_id, &filter, unprocessed_by(&call)).await?;
    let (now, shows_previews) = (call.now, shows_previews(&call));
    Ok(call.list(rows, &filter, |deploy| ListedDeploy {
        deploy_id: deploy.id,
        state: DeployState::new(&app, deploy, now, shows_previews),
    }))
}
