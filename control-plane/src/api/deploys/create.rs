//! Announces a deploy and signs the URL to upload its zip to.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::FieldError;
use domain::plans::UNLIMITED;
use domain::scopes::Resource;
use domain::static_sites::limits::ZIP_BYTES_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::uploads::{NewUpload, Purpose};
use uuid::Uuid;
use web::{Code, Created, Json, Problem};

use crate::App;
use crate::call::{Call, scope};
use crate::uploads::UploadHeaders;

const CONTENT_TYPE: &str = "application/zip";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CreateDeployRequest {
    /// Exact number of bytes of the zip; at most 100 MB.
    #[serde(deserialize_with = "web::whole_number")]
    #[schemars(with = "i64", range(min = 1, max = ZIP_BYTES_MAX))]
    size_bytes: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployUploadResponse {
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

pub(super) async fn create(
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
