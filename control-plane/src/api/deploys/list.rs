//! The deploys of an account.

use axum::extract::State;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;
use web::{Problem, Query, Reply};

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

web::list_query!(pub(super) DeploysQuery {
    /// Only deploys that were published to this subdomain, or are previews of it (extension).
    subdomain_id: Option<Uuid>,
});

web::list_response!(pub(super) DeployListResponse { deploys: ListedDeploy });

pub(super) async fn list(
    call: Call<scope::DeploysRead>,
    State(app): State<App>,
    Query(query): Query<DeploysQuery>,
) -> Result<Reply<DeployListResponse>, Problem> {
    call.check_whole_account(Resource::Deploys)?;
    let filter = call.list_filter(Resource::Subdomains, &query.pagination())?;
    let mut conn = store::acquire(&app.db).await?;
    let unprocessed_by = unprocessed_by(&call);
    let subdomain_id = query.subdomain_id;
    let rows =
        store::deploys::list_deploys(&mut conn, call.account_id, &filter, unprocessed_by, subdomain_id)
            .await?;
    let (now, shows_previews) = (call.now, shows_previews(&call));
    Ok(call.list(rows, &filter, |deploy| ListedDeploy {
        deploy_id: deploy.id,
        state: DeployState::new(&app, deploy, now, shows_previews),
    }))
}
