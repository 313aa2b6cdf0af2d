//! Announces a deploy and signs the URL to upload its zip to.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::FieldError;
use domain::deploys::{MESSAGE_CHARS_MAX, check_message};
use domain::plans::UNLIMITED;
use domain::scopes::Resource;
use domain::static_sites::limits::ZIP_BYTES_MAX;
use domain::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::credentials::find_name;
use store::uploads::{NewUpload, Purpose};
use uuid::Uuid;
use web::{Code, CreatedOrChanged, Problem};

use super::announced::{AnnouncedFiles, ComparedFiles, compare};
use crate::App;
use crate::call::{Call, scope};
use crate::large_bodies::LargeJson;
use crate::next_steps::After;
use crate::uploads::UploadHeaders;

/// Upper bound of the request, which may announce 20,000 files.
pub(super) const MAX_BODY_BYTES: usize = 8 << 20;
const CONTENT_TYPE: &str = "application/zip";

/// An account may have 20 deploys that wait for their zip or for processing, unless the operator has set another limit; with
/// more the answer is 409. One that is never processed is deleted after some days.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CreateDeployRequest {
    /// Exact number of bytes of the zip to upload; at most 100 MB. With `files` it may be 0: if files are missing, the
    /// response only lists them and no deploy is created. Zip those files, then call again with the size of that zip.
    #[serde(deserialize_with = "web::whole_number")]
    #[schemars(with = "i64", range(min = 0, max = ZIP_BYTES_MAX))]
    size_bytes: i64,
    /// Every file of the site by its path in the zip (extension). The zip then needs only those in the response's `missing`,
    /// and may have no others than announced. A file must have exactly the announced bytes. Files outside the site's root are
    /// missing each time, so leave them out.
    files: Option<AnnouncedFiles>,
    /// What the deploy changes, in your words, shown in lists (extension); at most 200 characters.
    #[schemars(length(max = MESSAGE_CHARS_MAX))]
    message: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployUploadResponse {
    /// Id of the new deploy; null if `sizeBytes` is 0 and files are missing, because no deploy was created.
    deploy_id: Option<Uuid>,
    /// Send the zip here by `PUT`, once, before `expiresAt`. Null if there is nothing to upload: no deploy was created, or
    /// no announced file is missing and the deploy can be processed at once.
    upload_url: Option<String>,
    /// Always `PUT`.
    upload_method: &'static str,
    /// Headers to send with the upload; null without an `uploadUrl`.
    upload_headers: Option<UploadHeaders>,
    /// The upload URL expires at this time; null without an `uploadUrl`.
    expires_at: Option<DateTime<Utc>>,
    /// Paths of the announced files that no deploy of this account has with these bytes, sorted: the files to zip. Files that
    /// are never served, or exceed the plan's `assetSizeLimit`, are not missing. Absent without `files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<Vec<String>>,
}

pub(super) async fn create(
    call: Call<scope::DeploysCreate>,
    State(app): State<App>,
    body: LargeJson<CreateDeployRequest>,
) -> Result<CreatedOrChanged<DeployUploadResponse>, Problem> {
    let (CreateDeployRequest { size_bytes, files, message }, _share) =
        body.read(&app, call.account_id).await?;
    let min_bytes = if files.is_some() { 0 } else { 1 };
    let message = message.as_deref().map(str::trim).filter(|message| !message.is_empty());
    let mut errors = message.map(check_message).unwrap_or_default();
    if !(min_bytes..=ZIP_BYTES_MAX).contains(&size_bytes) {
        let max = units::size(ZIP_BYTES_MAX.unsigned_abs());
        let rule = format!("sizeBytes must be {min_bytes} to {ZIP_BYTES_MAX}, which is {max}");
        errors.push(FieldError::new("sizeBytes", "range", rule));
    }
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let manifest = files.map(|files| files.read(&call)).transpose()?;
    call.check_whole_account(Resource::Deploys)?;
    let storage = call.limits().storage_bytes;
    if storage != UNLIMITED && size_bytes > storage {
        return Err(call.storage_exceeded(size_bytes));
    }
    let mut tx = store::begin(&app.db).await?;
    store::usage::lock(&mut tx, call.account_id).await?;
    let compared = match &manifest {
        Some(manifest) => Some(compare(&call, &mut tx, manifest).await?),
        None => None,
    };
    let missing = compared.as_ref().map(|compared| compared.missing.clone());
    if size_bytes == 0 && missing.as_ref().is_some_and(|missing| !missing.is_empty()) {
        let asked = DeployUploadResponse::without_upload(None, missing);
        return Ok(CreatedOrChanged::Changed(call.reply(asked)));
    }
    if store::deploys::count_open(&mut tx, call.account_id).await? >= app.deploys.max_open {
        let open = units::counted(app.deploys.max_open, "unprocessed deploys");
        let detail = format!("this account has {open}, as many as are allowed");
        return Err(
            Problem::new(Code::Conflict, detail).hint("process one of them, or wait until they expire")
        );
    }
    let id = app.rng.uuid_v7(call.now);
    let is_complete = missing.as_ref().is_some_and(Vec::is_empty);
    let size_bytes = if is_complete { 0 } else { size_bytes };
    let name = find_name(&mut tx, call.account_id, &call.caller.credential).await?;
    let by = (name.as_str(), call.caller.key_id());
    store::deploys::insert_deploy(&mut tx, call.account_id, id, size_bytes, by, call.now).await?;
    if let Some(message) = message {
        store::deploys::update_message(&mut tx, call.account_id, id, message).await?;
    }
    if let Some(ComparedFiles { sources, .. }) = compared {
        use store::deploys::sources::{insert_sources, update_announced};
        update_announced(&mut tx, call.account_id, id, is_complete).await?;
        insert_sources(&mut tx, call.account_id, id, &sources).await?;
    }
    let (response, hint) = if is_complete {
        (DeployUploadResponse::without_upload(Some(id), missing), "Publish its site; nothing is missing")
    } else {
        let upload = NewUpload {
            id,
            purpose: Purpose::Deploy,
            content_type: CONTENT_TYPE,
            size_bytes,
            expires_at: app.uploads.expires_at(call.now),
            created_at: call.now,
        };
        store::uploads::insert_upload(&mut tx, call.account_id, &upload).await?;
        let url = app.uploads.url(&app.addresses, &upload);
        let response = DeployUploadResponse {
            upload_url: Some(url),
            upload_headers: Some(UploadHeaders::new(CONTENT_TYPE)),
            expires_at: Some(upload.expires_at),
            ..DeployUploadResponse::without_upload(Some(id), missing)
        };
        (response, "Upload the zip, then publish its site")
    };
    call.commit(&app, tx, vec![]).await?;
    let next = call.suggestions(&app, After::Deploy { id, hint }).await;
    Ok(CreatedOrChanged::Created(call.created(response).with_next(next)))
}

impl DeployUploadResponse {
    fn without_upload(deploy_id: Option<Uuid>, missing: Option<Vec<String>>) -> Self {
        Self {
            deploy_id,
            upload_url: None,
            upload_method: "PUT",
            upload_headers: None,
            expires_at: None,
            missing,
        }
    }
}
