//! Binds uploaded files to a submission.

use domain::FieldError;
use domain::answers::Answers;
use domain::fields::{Field, FieldType};
use store::Conn;
use store::form_files::WaitingFile;
use store::forms::OpenForm;
use uuid::Uuid;
use web::Problem;

use super::errors::{storage_full, unknown_file};
use crate::state::EdgeState;

/// Returns the fields answered with files, and the files' ids.
///
/// # Errors
/// An answer is not an object id.
pub(crate) fn submitted_files<'a>(
    fields: &'a [Field],
    answers: &Answers,
) -> Result<Vec<(&'a Field, Uuid)>, Vec<FieldError>> {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for field in fields.iter().filter(|field| field.kind == FieldType::File) {
        let Some(answer) = answers.get(&field.name).and_then(|answer| answer.as_str()) else { continue };
        match answer.parse::<Uuid>() {
            Ok(id) => files.push((field, id)),
            Err(_) => errors.push(unknown_file(field)),
        }
    }
    if errors.is_empty() { Ok(files) } else { Err(errors) }
}

/// Returns the size of these files in bytes, or an error for each that is not an unbound file of its field.
pub(crate) async fn check_waiting(
    conn: &mut Conn,
    open: &OpenForm,
    files: &[(&Field, Uuid)],
) -> Result<Result<i64, Vec<FieldError>>, Problem> {
    let ids: Vec<Uuid> = files.iter().map(|(_, id)| *id).collect();
    let unbound = store::form_files::list_waiting(conn, open.account_id, open.form.id, &ids).await?;
    let is_unbound =
        |(field, id): &(&Field, Uuid)| unbound.iter().any(|file| file.id == *id && file.field == field.name);
    let missing: Vec<_> =
        files.iter().filter(|file| !is_unbound(file)).map(|(field, _)| unknown_file(field)).collect();
    Ok(if missing.is_empty() { Ok(unbound.iter().map(|file| file.size_bytes).sum()) } else { Err(missing) })
}

/// Binds files to a submission in its transaction. Those of spam are not counted against the account's storage.
/// Returns an error for each file that is not an unbound file of its field.
///
/// # Errors
/// The account has no storage left.
pub(crate) async fn bind(
    conn: &mut Conn,
    open: &OpenForm,
    submission_id: Uuid,
    files: &[(&Field, Uuid)],
    is_counted: bool,
) -> Result<Vec<FieldError>, Problem> {
    let (mut bytes, mut errors) = (0, Vec::new());
    for (field, id) in files {
        let (file, target) = ((field.name.as_str(), *id), (open.form.id, submission_id));
        let found = store::form_files::bind(conn, open.account_id, target, file, is_counted).await?;
        match found {
            Some(size) => bytes += size,
            None => errors.push(unknown_file(field)),
        }
    }
    let limit = open.plan.limits().storage_bytes;
    if is_counted && bytes > 0 && !store::usage::reserve_bytes(conn, open.account_id, bytes, limit).await? {
        return Err(storage_full());
    }
    Ok(errors)
}

/// Returns the unbound files among answers that had errors.
pub(crate) async fn find_unbound(
    state: &EdgeState,
    open: &OpenForm,
    answers: &Answers,
) -> Result<Vec<WaitingFile>, Problem> {
    let fields = open.form.fields.iter().filter(|field| field.kind == FieldType::File);
    let ids: Vec<Uuid> =
        fields.filter_map(|field| answers.get(&field.name)?.as_str()?.parse().ok()).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let list = async |conn: &mut Conn| {
        Ok(store::form_files::list_waiting(conn, open.account_id, open.form.id, &ids).await?)
    };
    state.db.query(list).await
}
