//! Receives files within a form, and stores the rows of all form files within their allowances.

use bytes::Bytes;
use domain::fields::Field;
use domain::media::{self, SNIFFED_BYTES};
use domain::{FieldError, form_files, units, uploads};
use futures::{Stream, TryStreamExt};
use store::Conn;
use store::form_files::{NewFormFile, Unbound};
use store::forms::OpenForm;
use uuid::Uuid;
use web::{Code, Problem};

use super::errors::{file_error, storage_full, type_not_accepted};
use super::visitor::Visitor;
use crate::state::EdgeState;
use crate::uploads::blob_storage::store_blob;

/// A file in a submitted form.
pub(crate) struct SubmittedFile<'a> {
    pub(crate) open: &'a OpenForm,
    pub(crate) field: &'a Field,
    pub(crate) filename: &'a str,
    /// The content type that the browser declares.
    pub(crate) declared: &'a str,
    pub(crate) visitor: &'a Visitor,
}

/// A file that was stored.
pub(crate) struct StoredFile {
    pub(crate) id: Uuid,
    pub(crate) sha256: [u8; 32],
}

/// Returns the size limit of a field's files: the field's own, within the plan's.
pub(crate) fn max_file_bytes(open: &OpenForm, field: &Field) -> u64 {
    let plan = u64::try_from(open.plan.limits().asset_size_limit).unwrap_or(u64::MAX);
    field.max_file_size.map_or(plan, |max| max.min(plan))
}

/// Receives a file in chunks and stores it, unbound. Returns the file, or its error.
///
/// # Errors
/// The failure is not the file's: a store is unavailable, or an allowance is used up.
pub(crate) async fn receive(
    state: &EdgeState,
    file: SubmittedFile<'_>,
    mut content: impl Stream<Item = Result<Bytes, Problem>> + Unpin + Send,
) -> Result<Result<StoredFile, FieldError>, Problem> {
    let SubmittedFile { open, field, filename, declared, visitor } = file;
    let content_type = form_files::kind_of(filename, declared);
    if !uploads::check_filename(filename).is_empty() {
        return Ok(Err(file_error(field, "file", "a file's name is 1 to 200 characters without slashes")));
    }
    if !form_files::is_accepted(field.accept.as_deref(), filename, &content_type) {
        return Ok(Err(type_not_accepted(field)));
    }
    let now = state.clock.now();
    let (limit, mut head) = (max_file_bytes(open, field), Vec::new());
    let mut incoming = state.blobs.receive(open.account_id, state.rng.uuid_v7(now));
    while let Some(bytes) = content.try_next().await? {
        if incoming.size() + bytes.len() as u64 > limit {
            let message = format!("a file may have at most {}", units::size(limit));
            return Ok(Err(file_error(field, "file_size", message)));
        }
        head.extend_from_slice(&bytes[..bytes.len().min(SNIFFED_BYTES - head.len())]);
        incoming.write(bytes).await?;
    }
    if incoming.size() == 0 {
        return Ok(Err(file_error(field, "file", "the file is empty")));
    }
    let restricts_types = form_files::is_restrictive(field.accept.as_deref());
    if restricts_types && media::check_agrees(&content_type, &head).is_err() {
        return Ok(Err(type_not_accepted(field)));
    }
    let received = incoming.finish().await?;
    let new = NewFormFile {
        id: Uuid::from_bytes(state.rng.bytes()),
        form_id: open.form.id,
        field: &field.name,
        filename,
        content_type: &content_type,
        size_bytes: i64::try_from(received.size()).unwrap_or(i64::MAX),
        visitor: &visitor.0,
        created_at: now,
    };
    let check = async |conn: &mut Conn| {
        let unbound = store::form_files::find_unbound(conn, new.form_id, new.visitor).await?;
        check_allowance(state, unbound, &new)
    };
    let refer = async |conn: &mut Conn, blob_id: Uuid| {
        insert(state, conn, open, &new).await?;
        store::form_files::update_blob(conn, open.account_id, new.id, blob_id).await?;
        Ok(())
    };
    store_blob(state, open.account_id, &received, now, check, async |_| Ok(()), refer).await?;
    Ok(Ok(StoredFile { id: new.id, sha256: received.name().sha256 }))
}

/// Inserts a file's row, if the allowances and the account's storage suffice.
pub(super) async fn insert(
    state: &EdgeState,
    conn: &mut Conn,
    open: &OpenForm,
    new: &NewFormFile<'_>,
) -> Result<(), Problem> {
    let unbound = store::form_files::lock_unbound(conn, new.form_id, new.visitor).await?;
    check_allowance(state, unbound, new)?;
    let usage = store::usage::find_usage(conn, open.account_id).await?;
    let limit = open.plan.limits().storage_bytes;
    if limit >= 0 && usage.is_some_and(|usage| usage.storage_bytes.saturating_add(new.size_bytes) > limit) {
        return Err(storage_full());
    }
    store::form_files::insert_file(conn, open.account_id, new).await?;
    Ok(())
}

/// Checks that the unbound files of the form and of the visitor leave space for one more.
fn check_allowance(state: &EdgeState, unbound: Unbound, new: &NewFormFile<'_>) -> Result<(), Problem> {
    let added = new.size_bytes.max(form_files::WAITING_BYTES_MIN);
    let settings = &state.form_settings;
    for (used, limit, owner) in [
        (unbound.of_form, settings.max_unbound_bytes_per_form, "this form"),
        (unbound.of_visitor, settings.max_unbound_bytes_per_visitor, "you"),
    ] {
        if used.saturating_add(added) > limit {
            let detail = format!(
                "files that are not submitted yet may have {} together, and those of {owner} have {}",
                units::size(limit.unsigned_abs()),
                units::size(used.unsigned_abs())
            );
            return Err(Problem::new(Code::RateLimited, detail).retry_after(3_600));
        }
    }
    Ok(())
}
