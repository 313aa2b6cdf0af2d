//! Files that visitors hand in with a form: asked for an address first or sent within the form, then bound to one
//! submission, and fetched by whoever knows their id.
//!
//! Until it is bound a file counts against an allowance of its form and its visitor, and goes after a day.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::Request;
use blobs::Received;
use bytes::Bytes;
use domain::answers::Answers;
use domain::fields::{Field, FieldType};
use domain::media::{self, SNIFFED_BYTES};
use domain::{FieldError, form_files, uploads};
use futures::{Stream, TryStreamExt};
use store::Conn;
use store::blobs::NewBlob;
use store::form_files::{NewFormFile, Unbound, WaitingFile};
use store::forms::OpenForm;
use uuid::Uuid;
use web::{ClientIp, Code, Problem};

use crate::state::EdgeState;
use crate::uploads::signed_uploads::{ANNOUNCED_FOR, KEPT_WITHIN};

/// Who sends a file, as far as it is kept: a digest that nobody without our secret can try addresses against.
pub(crate) struct Visitor(pub(super) [u8; 16]);

impl Visitor {
    pub(crate) fn of(edge: &EdgeState, request: &Request) -> Self {
        let ip = edge.proxies.visitor(request.headers(), request.extensions());
        let network = ClientIp(ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))).network();
        let digest = edge.forms.key().digest("form_files.visitor", &[&network]);
        Self(std::array::from_fn(|at| digest[at]))
    }
}

/// A file that comes within a form.
pub(crate) struct Incoming<'a> {
    pub(crate) open: &'a OpenForm,
    pub(crate) field: &'a Field,
    pub(crate) filename: &'a str,
    /// What the visitor's browser says it is.
    pub(crate) declared: &'a str,
    pub(crate) visitor: &'a Visitor,
}

/// One that has come.
pub(crate) struct Stored {
    pub(crate) id: Uuid,
    pub(crate) sha256: [u8; 32],
}

/// Most bytes of a file of a field: what it says, within what the plan allows.
pub(crate) fn max_bytes(open: &OpenForm, field: &Field) -> u64 {
    let plan = u64::try_from(open.plan.limits().asset_size_limit).unwrap_or(u64::MAX);
    field.max_file_size.map_or(plan, |max| max.min(plan))
}

/// Takes a file as it comes, chunk by chunk; gives it, or what is wrong with it.
///
/// # Errors
/// A problem that is not the file's: a store is away, the form's allowance is used up.
pub(crate) async fn take(
    edge: &EdgeState,
    file: Incoming<'_>,
    mut content: impl Stream<Item = Result<Bytes, Problem>> + Unpin + Send,
) -> Result<Result<Stored, FieldError>, Problem> {
    let Incoming { open, field, filename, declared, visitor } = file;
    let kind = form_files::kind_of(filename, declared);
    if !uploads::check_filename(filename).is_empty() {
        return Ok(Err(complain(field, "file", "a file's name is 1 to 200 characters without slashes")));
    }
    if !form_files::is_accepted(field.accept.as_deref(), filename, &kind) {
        return Ok(Err(not_accepted(field)));
    }
    let now = edge.clock.now();
    let (limit, mut head) = (max_bytes(open, field), Vec::new());
    let mut incoming = edge.blobs.receive(open.account_id, edge.rng.uuid_v7(now));
    while let Some(bytes) = content.try_next().await? {
        if incoming.size() + bytes.len() as u64 > limit {
            return Ok(Err(complain(field, "file_size", format!("a file may have at most {limit} bytes"))));
        }
        head.extend_from_slice(&bytes[..bytes.len().min(SNIFFED_BYTES - head.len())]);
        incoming.write(bytes).await?;
    }
    if incoming.size() == 0 {
        return Ok(Err(complain(field, "file", "the file is empty")));
    }
    if form_files::is_restrictive(field.accept.as_deref()) && media::check_agrees(&kind, &head).is_err() {
        return Ok(Err(not_accepted(field)));
    }
    let received = incoming.finish().await?;
    let new = NewFormFile {
        id: Uuid::from_bytes(edge.rng.bytes()),
        form_id: open.form.id,
        field: &field.name,
        filename,
        content_type: &kind,
        size_bytes: i64::try_from(received.size()).unwrap_or(i64::MAX),
        visitor: &visitor.0,
        created_at: now,
    };
    keep(edge, open, &new, &received).await?;
    Ok(Ok(Stored { id: new.id, sha256: received.name().sha256 }))
}

async fn keep(
    edge: &EdgeState,
    open: &OpenForm,
    new: &NewFormFile<'_>,
    received: &Received,
) -> Result<(), Problem> {
    let (account_id, now) = (open.account_id, new.created_at);
    let sha256 = received.name().sha256;
    let blob = NewBlob { id: edge.rng.uuid_v7(now), sha256, size_bytes: new.size_bytes };
    let announce = async |conn: &mut Conn| {
        let unbound = store::form_files::find_unbound(conn, new.form_id, new.visitor).await?;
        check_allowance(edge, unbound, new)?;
        Ok(store::blobs::insert_unreferenced(conn, account_id, &[blob], now + ANNOUNCED_FOR).await?)
    };
    edge.ask(announce).await?;
    let keep = async |conn: &mut Conn| {
        let settle = async { Ok(store::blobs::reference_blobs(conn, account_id, &[blob]).await?) };
        let settled = edge.patiently(settle).await?;
        // Under the lock of the blob's row: nobody deletes these bytes now.
        edge.blobs.store(received).await?;
        // Last, as others wait for it: no object store is waited for meanwhile.
        let note = async {
            insert(edge, conn, open, new).await?;
            for blob in settled {
                store::form_files::update_blob(conn, account_id, new.id, blob.id).await?;
            }
            Ok(())
        };
        edge.patiently(note).await
    };
    edge.transact(KEPT_WITHIN, keep).await
}

/// Stores a file's row, if the allowances have room for it.
pub(super) async fn insert(
    edge: &EdgeState,
    conn: &mut Conn,
    open: &OpenForm,
    new: &NewFormFile<'_>,
) -> Result<(), Problem> {
    let unbound = store::form_files::lock_unbound(conn, new.form_id, new.visitor).await?;
    check_allowance(edge, unbound, new)?;
    let usage = store::usage::find_usage(conn, open.account_id).await?;
    let limit = open.plan.limits().storage_bytes;
    if limit >= 0 && usage.is_some_and(|usage| usage.storage_bytes.saturating_add(new.size_bytes) > limit) {
        return Err(no_room());
    }
    store::form_files::insert_file(conn, open.account_id, new).await?;
    Ok(())
}

/// Whether one more file may wait.
fn check_allowance(edge: &EdgeState, unbound: Unbound, new: &NewFormFile<'_>) -> Result<(), Problem> {
    let more = new.size_bytes.max(form_files::WAITING_BYTES_MIN);
    let rules = &edge.form_rules;
    for (used, limit, whose) in [
        (unbound.of_form, rules.unbound_bytes_per_form, "this form"),
        (unbound.of_visitor, rules.unbound_bytes_per_visitor, "you"),
    ] {
        if used.saturating_add(more) > limit {
            let detail = format!(
                "files that wait to be handed in may have {limit} bytes together, and those of {whose} have {used}"
            );
            return Err(Problem::new(Code::RateLimited, detail).retry_after(3_600));
        }
    }
    Ok(())
}

/// The files among the answers: which field is answered by which.
///
/// # Errors
/// What is no object id.
pub(crate) fn handed_in<'a>(
    fields: &'a [Field],
    kept: &Answers,
) -> Result<Vec<(&'a Field, Uuid)>, Vec<FieldError>> {
    let (mut files, mut wrong) = (Vec::new(), Vec::new());
    for field in fields.iter().filter(|field| field.kind == FieldType::File) {
        let Some(answer) = kept.get(&field.name).and_then(|answer| answer.as_str()) else { continue };
        match answer.parse::<Uuid>() {
            Ok(id) => files.push((field, id)),
            Err(_) => wrong.push(no_such_file(field)),
        }
    }
    if wrong.is_empty() { Ok(files) } else { Err(wrong) }
}

/// What is wrong with files that aren't there to be handed in.
///
/// # Errors
/// A problem of the database's.
pub(crate) async fn missing(
    conn: &mut Conn,
    open: &OpenForm,
    files: &[(&Field, Uuid)],
) -> Result<Vec<FieldError>, Problem> {
    let ids: Vec<Uuid> = files.iter().map(|(_, id)| *id).collect();
    let waiting = store::form_files::list_waiting(conn, open.account_id, open.form.id, &ids).await?;
    let is_there =
        |(field, id): &(&Field, Uuid)| waiting.iter().any(|file| file.id == *id && file.field == field.name);
    Ok(files.iter().filter(|file| !is_there(file)).map(|(field, _)| no_such_file(field)).collect())
}

/// Makes files the submission's, in its transaction; those of spam, which doesn't count, are let go instead: it keeps
/// none. Gives what is wrong with those that are no such files.
///
/// # Errors
/// A problem: the account has no room for them.
pub(crate) async fn bind(
    conn: &mut Conn,
    open: &OpenForm,
    submission_id: Uuid,
    files: &[(&Field, Uuid)],
    counts: bool,
) -> Result<Vec<FieldError>, Problem> {
    let (mut bytes, mut wrong) = (0, Vec::new());
    for (field, id) in files {
        let what = (field.name.as_str(), *id);
        let found = if counts {
            store::form_files::bind(conn, open.account_id, (open.form.id, submission_id), what, true).await?
        } else {
            let is_gone = store::form_files::discard(conn, open.account_id, open.form.id, what).await?;
            is_gone.then_some(0)
        };
        match found {
            Some(size) => bytes += size,
            None => wrong.push(no_such_file(field)),
        }
    }
    let limit = open.plan.limits().storage_bytes;
    if bytes > 0 && !store::usage::reserve_bytes(conn, open.account_id, bytes, limit).await? {
        return Err(no_room());
    }
    Ok(wrong)
}

/// Files that came with answers which weren't right.
///
/// # Errors
/// A problem of the database's.
pub(crate) async fn waiting(
    edge: &EdgeState,
    open: &OpenForm,
    answers: &Answers,
) -> Result<Vec<WaitingFile>, Problem> {
    let fields = open.form.fields.iter().filter(|field| field.kind == FieldType::File);
    let answers = fields.filter_map(|field| answers.get(&field.name)?.as_str()?.parse().ok());
    let ids: Vec<Uuid> = answers.collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let list = async |conn: &mut Conn| {
        Ok(store::form_files::list_waiting(conn, open.account_id, open.form.id, &ids).await?)
    };
    edge.ask(list).await
}

fn complain(field: &Field, code: &'static str, message: impl Into<String>) -> FieldError {
    FieldError::new(&field.name, code, message)
}

fn not_accepted(field: &Field) -> FieldError {
    let accept = field.accept.as_deref().unwrap_or_default();
    complain(field, "file_kind", format!("{} takes these files alone: {accept}", field.label))
}

fn no_such_file(field: &Field) -> FieldError {
    let message = format!(
        "{} takes the objectId of a file that was uploaded for just this field of this form, and handed in with no \
         other submission",
        field.label
    );
    complain(field, "file", message)
}

fn no_room() -> Problem {
    Problem::new(Code::QuotaExceeded, "whoever has this form has no room for more files")
}
