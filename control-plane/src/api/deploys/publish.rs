//! Makes a preview live.

use axum::extract::State;
use domain::deploys::kept_files::OldFiles;
use domain::previews;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use store::deploys::{Deploy, Status};
use uuid::Uuid;
use web::{Code, OptionalJson, Path, Problem, Reply};

use super::process::{DeployResultResponse, result, to_the_end, with_lease};
use super::read::{find, has_expired};
use crate::App;
use crate::call::{Call, scope};
use crate::deploys::{self, Progress, Source};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PublishDeployRequest {
    /// Whether files of the previous deploy with a content hash in their names stay reachable for 24 hours, so that open
    /// tabs can load them. `false` also ends those of earlier deploys. Default: yes.
    keep_old_files: Option<bool>,
}

/// Runs in its own task, which continues after the caller disconnects.
pub(super) async fn publish(
    call: Call<scope::DeploysUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    OptionalJson(request): OptionalJson<PublishDeployRequest>,
) -> Result<Reply<DeployResultResponse>, Problem> {
    let old_files = OldFiles::from_request(request.unwrap_or_default().keep_old_files);
    to_the_end(publish_preview(call, app, id, old_files)).await
}

async fn publish_preview(
    call: Call<scope::DeploysUpdate>,
    app: App,
    id: Uuid,
    old_files: OldFiles,
) -> Result<Reply<DeployResultResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let deploy = find(&call, &mut conn, id).await?;
    let (subdomain_id, token) = check_preview(&deploy, &call)?;
    let subdomain = call.subdomain(&mut conn, Some(subdomain_id)).await?;
    drop(conn);
    let label = previews::label(token, &subdomain.name);
    let source = Source::Preview(&label);
    let work = async {
        let site = deploys::build_stored(&app, &call, id, subdomain.id).await?;
        let published = deploys::publish(&app, &call, id, source, &subdomain, &site, old_files).await?;
        Ok((site, published))
    };
    let (site, published) = with_lease(&app, &call, &deploy, &Progress::default(), work).await?;
    let response = result(&app, id, &subdomain.name, site, published);
    let hint = "See the state of the deploy, which is live";
    Ok(call.reply(response).next("status", "deploys.read", json!({"id": id}), hint))
}

/// Returns the subdomain and the token of a preview that can be published.
fn check_preview<'a, S>(deploy: &'a Deploy, call: &Call<S>) -> Result<(Uuid, &'a str), Problem> {
    let conflict = |detail: &'static str, hint: &'static str| Problem::new(Code::Conflict, detail).hint(hint);
    let again = "create a new deploy with POST /api/deploy";
    match (deploy.status, deploy.subdomain_id.zip(deploy.preview_token.as_deref())) {
        (Status::Preview, Some(preview)) if !has_expired(deploy, call.now) => Ok(preview),
        (Status::Preview | Status::Expired, _) => {
            Err(conflict("this preview has expired, and its files are deleted", again))
        }
        (Status::Presigned | Status::Uploaded, _) => Err(conflict(
            "this deploy is no preview, because it has not been processed",
            "process it with POST /api/deploy/{id}/process",
        )),
        (Status::Processed, _) if deploy.is_live => Err(conflict("this deploy is already live", again)),
        (Status::Processed, _) => {
            Err(conflict("this deploy was already published, and a later one replaced it", again))
        }
        (Status::RolledBack, _) => Err(conflict("this deploy was published and rolled back", again)),
    }
}
