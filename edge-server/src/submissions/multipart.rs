//! Reads a multipart form: collects its text, and streams its files to the object store, unbound, as if they had been
//! uploaded before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use bytes::Bytes;
use domain::FieldError;
use domain::fields::{Field, FieldType};
use domain::submissions::BYTES_MAX;
use futures::{Stream, StreamExt, TryStreamExt};
use multer::{Constraints, Multipart, SizeLimit};
use sha2::{Digest, Sha256};
use store::forms::OpenForm;
use web::{Code, Problem};

use super::submitted_body::{FormPairs, too_large};
use crate::state::EdgeState;
use crate::uploads::form_files::storage::{self, SubmittedFile, max_file_bytes};
use crate::uploads::form_files::visitor::Visitor;

/// Allowance for part headers and boundaries.
const OVERHEAD_BYTES: u64 = 64 << 10;
/// Most bytes that may arrive without completing a chunk of a part: the parser buffers them while it looks for a boundary.
const MAX_UNPARSED_BYTES: usize = 1 << 20;
/// Most parts: a form has up to a hundred fields, some with many answers.
const MAX_PARTS: usize = 10_000;

type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Most names of files for unknown fields that are kept: more than a response has.
const MAX_UNKNOWN_FILES: usize = 64;

/// A posted form that was read to its end.
#[derive(Default)]
pub(super) struct MultipartBody {
    /// The text fields, and the ids of stored files.
    pub(super) pairs: FormPairs,
    /// The digest of the form.
    pub(super) digest: [u8; 32],
    /// The errors of files.
    pub(super) file_errors: Vec<FieldError>,
    /// Names of files that were sent for fields that the form does not have.
    pub(super) unknown_files: Vec<String>,
}

/// Reads a multipart form. Files are stored for their `visitor`; without one they are only digested.
pub(super) async fn read(
    state: &EdgeState,
    open: &OpenForm,
    visitor: Option<&Visitor>,
    boundary: String,
    body: Body,
) -> Result<MultipartBody, Problem> {
    let is_file = |field: &&Field| field.kind == FieldType::File;
    let file_bytes: u64 =
        open.form.fields.iter().filter(is_file).map(|field| max_file_bytes(open, field)).sum();
    let limit = file_bytes.saturating_add(BYTES_MAX as u64 + OVERHEAD_BYTES);
    let constraints = Constraints::new().size_limit(SizeLimit::new().whole_stream(limit));
    let unparsed = Arc::new(AtomicUsize::new(0));
    let mut parts = Multipart::with_constraints(limit_unparsed(body, &unparsed), boundary, constraints);
    let mark_parsed = || unparsed.store(0, Ordering::Relaxed);
    let (mut pairs, mut errors, mut text_bytes) = (FormPairs::new(), Vec::new(), 0);
    let mut unknown_files = Vec::new();
    let mut digest = Sha256::new();
    let mut count = 0;
    while let Some(mut part) = parts.next_field().await.map_err(invalid_multipart)? {
        mark_parsed();
        count += 1;
        let name = part.name().unwrap_or_default().to_owned();
        text_bytes += name.len();
        let filename = part.file_name().map(base_name);
        let mut content = Sha256::new();
        if let Some(filename) = filename {
            let field =
                open.form.fields.iter().find(|field| field.kind == FieldType::File && field.name == name);
            // An empty name means that no file was chosen.
            let Some(field) = field.filter(|_| !filename.is_empty()) else {
                let known = open.form.fields.iter().find(|field| field.name == name);
                match known.filter(|_| !filename.is_empty()) {
                    Some(field) => refuse_file(field, &mut errors),
                    None if filename.is_empty() || unknown_files.len() == MAX_UNKNOWN_FILES => {}
                    None => unknown_files.push(name),
                }
                while part.chunk().await.map_err(invalid_multipart)?.is_some() {
                    mark_parsed();
                }
                continue;
            };
            let declared = part.content_type().map(ToString::to_string).unwrap_or_default();
            let bytes = (&mut part).inspect(|_| mark_parsed()).map_err(invalid_multipart);
            if let Some(visitor) = visitor {
                let file = SubmittedFile { open, field, filename: &filename, declared: &declared, visitor };
                match storage::receive(state, file, bytes).await? {
                    Ok(file) => {
                        content.update(file.sha256);
                        // It takes precedence over a file that was uploaded with an earlier attempt.
                        pairs.entry(name.clone()).or_default().insert(0, file.id.to_string());
                    }
                    Err(error) => errors.push(error),
                }
            } else {
                content.update(digest_of(bytes).await?);
            }
            while part.chunk().await.map_err(invalid_multipart)?.is_some() {
                mark_parsed();
            }
        } else {
            let mut text = Vec::new();
            while let Some(bytes) = part.chunk().await.map_err(invalid_multipart)? {
                mark_parsed();
                text_bytes += bytes.len();
                if text_bytes > BYTES_MAX {
                    return Err(too_large());
                }
                text.extend_from_slice(&bytes);
            }
            content.update(&text);
            pairs.entry(name.clone()).or_default().push(String::from_utf8_lossy(&text).into_owned());
        }
        if text_bytes > BYTES_MAX || count > MAX_PARTS {
            return Err(too_large());
        }
        digest.update((name.len() as u64).to_be_bytes());
        digest.update(&name);
        digest.update(content.finalize());
    }
    Ok(MultipartBody { pairs, digest: digest.finalize().into(), file_errors: errors, unknown_files })
}

/// Returns the digest of a file that is not stored: a repeated submission is still recognized by it.
async fn digest_of(
    mut content: impl Stream<Item = Result<Bytes, Problem>> + Unpin,
) -> Result<[u8; 32], Problem> {
    let mut digest = Sha256::new();
    while let Some(bytes) = content.try_next().await? {
        digest.update(&bytes);
    }
    Ok(digest.finalize().into())
}

/// Returns the body as a stream that fails if too much arrives without being parsed. `unparsed` counts those bytes.
fn limit_unparsed(
    body: Body,
    unparsed: &Arc<AtomicUsize>,
) -> impl Stream<Item = Result<Bytes, BodyError>> + use<> {
    let unparsed = Arc::clone(unparsed);
    body.into_data_stream().map(move |bytes| {
        let bytes = bytes.map_err(BodyError::from)?;
        if unparsed.fetch_add(bytes.len(), Ordering::Relaxed) > MAX_UNPARSED_BYTES {
            return Err("too many bytes between two parts".into());
        }
        Ok(bytes)
    })
}

/// Adds the error of a file for a field of another type, once: the answer must not vanish.
fn refuse_file(field: &Field, errors: &mut Vec<FieldError>) {
    if errors.iter().all(|error| error.field != field.name) {
        let message = format!("{} takes text, not a file", field.label);
        errors.push(FieldError::new(&field.name, "not_a_file_field", message));
    }
}

/// Returns a file's name without folders, which some browsers send.
fn base_name(filename: &str) -> String {
    filename.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}

fn invalid_multipart(error: multer::Error) -> Problem {
    if matches!(error, multer::Error::StreamSizeExceeded { .. }) {
        return Problem::new(Code::PayloadTooLarge, "this is more than the form's fields take together");
    }
    let message = format!("the parts of the form could not be read: {error}");
    Problem::validation(vec![FieldError::new("body", "multipart", message)])
}
