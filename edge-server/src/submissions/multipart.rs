//! A posted form with files in it (`multipart/form-data`): texts are gathered, files go to the object store as they
//! come, as if they had been uploaded before.

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

use super::body::{Pairs, too_large};
use crate::state::EdgeState;
use crate::uploads::form_files::storage::{self as form_files, Incoming, Visitor};

/// What stands around the parts.
const AROUND_BYTES: u64 = 64 << 10;
/// So much may come without being any part's: the reader keeps it while it looks for where one begins.
const UNREAD_BYTES: usize = 1 << 20;
/// Most parts: a form has a hundred fields, of which some have many answers.
const PARTS_MAX: usize = 10_000;

type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Reads all parts; keeps files for their `visitor`, and without one none.
///
/// # Errors
/// A problem: too much, or nothing that can be read.
pub(super) async fn read(
    edge: &EdgeState,
    open: &OpenForm,
    visitor: Option<&Visitor>,
    boundary: String,
    body: Body,
) -> Result<(Pairs, [u8; 32], Vec<FieldError>), Problem> {
    let is_file = |field: &&Field| field.kind == FieldType::File;
    let files: u64 =
        open.form.fields.iter().filter(is_file).map(|field| form_files::max_bytes(open, field)).sum();
    let limit = files.saturating_add(BYTES_MAX as u64 + AROUND_BYTES);
    let constraints = Constraints::new().size_limit(SizeLimit::new().whole_stream(limit));
    let unread = Arc::new(AtomicUsize::new(0));
    let mut parts = Multipart::with_constraints(watched(body, &unread), boundary, constraints);
    let is_read = || unread.store(0, Ordering::Relaxed);
    let (mut pairs, mut wrong, mut text_bytes) = (Pairs::new(), Vec::new(), 0);
    let mut digest = Sha256::new();
    let mut count = 0;
    while let Some(mut part) = parts.next_field().await.map_err(broken)? {
        is_read();
        count += 1;
        let name = part.name().unwrap_or_default().to_owned();
        text_bytes += name.len();
        let filename = part.file_name().map(last_name);
        let mut content = Sha256::new();
        if let Some(filename) = filename {
            let field =
                open.form.fields.iter().find(|field| field.kind == FieldType::File && field.name == name);
            // No file was chosen, or it is for no field.
            let Some(field) = field.filter(|_| !filename.is_empty()) else {
                while part.chunk().await.map_err(broken)?.is_some() {
                    is_read();
                }
                continue;
            };
            let declared = part.content_type().map(ToString::to_string).unwrap_or_default();
            let bytes = (&mut part).inspect(|_| is_read()).map_err(broken);
            if let Some(visitor) = visitor {
                let incoming = Incoming { open, field, filename: &filename, declared: &declared, visitor };
                match form_files::take(edge, incoming, bytes).await? {
                    Ok(file) => {
                        content.update(file.sha256);
                        // Before one that had come with the form earlier.
                        pairs.entry(name.clone()).or_default().insert(0, file.id.to_string());
                    }
                    Err(error) => wrong.push(error),
                }
            } else {
                content.update(digest_of(bytes).await?);
            }
            while part.chunk().await.map_err(broken)?.is_some() {
                is_read();
            }
        } else {
            let mut text = Vec::new();
            while let Some(bytes) = part.chunk().await.map_err(broken)? {
                is_read();
                text_bytes += bytes.len();
                if text_bytes > BYTES_MAX {
                    return Err(too_large());
                }
                text.extend_from_slice(&bytes);
            }
            content.update(&text);
            pairs.entry(name.clone()).or_default().push(String::from_utf8_lossy(&text).into_owned());
        }
        if text_bytes > BYTES_MAX || count > PARTS_MAX {
            return Err(too_large());
        }
        digest.update((name.len() as u64).to_be_bytes());
        digest.update(&name);
        digest.update(content.finalize());
    }
    Ok((pairs, digest.finalize().into(), wrong))
}

/// That of a file which is read and not kept: what is sent again can still be told from anything else.
async fn digest_of(
    mut content: impl Stream<Item = Result<Bytes, Problem>> + Unpin,
) -> Result<[u8; 32], Problem> {
    let mut digest = Sha256::new();
    while let Some(bytes) = content.try_next().await? {
        digest.update(&bytes);
    }
    Ok(digest.finalize().into())
}

/// The body, as long as it isn't only taken in: `unread` counts what came since something was made of it.
fn watched(body: Body, unread: &Arc<AtomicUsize>) -> impl Stream<Item = Result<Bytes, BodyError>> + use<> {
    let unread = Arc::clone(unread);
    body.into_data_stream().map(move |bytes| {
        let bytes = bytes.map_err(BodyError::from)?;
        if unread.fetch_add(bytes.len(), Ordering::Relaxed) > UNREAD_BYTES {
            return Err("so much can't stand between two parts".into());
        }
        Ok(bytes)
    })
}

/// A file's own name: some browsers send the folders before it.
fn last_name(filename: &str) -> String {
    filename.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}

fn broken(error: multer::Error) -> Problem {
    if matches!(error, multer::Error::StreamSizeExceeded { .. }) {
        return Problem::new(Code::PayloadTooLarge, "this is more than the form's fields take together");
    }
    Problem::new(Code::ValidationFailed, format!("the parts of the form could not be read: {error}"))
}
