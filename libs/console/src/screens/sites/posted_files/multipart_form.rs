//! A form with files, as a browser without scripts posts it: read part by part, a file to disk without a name.

use std::fs::File;

use axum::extract::Request;
use domain::static_sites::limits::{ZIP_BYTES_MAX, ZIP_ENTRIES_MAX};
use http::{StatusCode, header};
use multer::{Field, Multipart};
use tokio::io::AsyncWriteExt;

use crate::api_client::Refusal;
use crate::form_submission::FormSubmission;

/// Bytes of all other fields together, and of what separates them.
const FIELDS_BYTES_MAX: u64 = 64 << 10;

/// Names of the fields that hold files.
const FILE_FIELDS: [&str; 3] = ["zip", "folder", "file"];

/// A file on disk.
pub(in crate::screens::sites) struct PostedFile {
    pub(in crate::screens::sites) file: File,
    pub(in crate::screens::sites) size_bytes: u64,
}

/// The parts of the form, in their order.
pub(in crate::screens::sites) struct PostedParts(Multipart<'static>);

impl PostedParts {
    /// Begins to read a form.
    ///
    /// # Errors
    /// It is none with a file, or is larger than any zip may be.
    pub(in crate::screens::sites) fn of(request: Request) -> Result<Self, Refusal> {
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let length = text(header::CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        if length.is_some_and(|length| length > ZIP_BYTES_MAX.unsigned_abs() + FIELDS_BYTES_MAX) {
            return Err(too_large());
        }
        let boundary = text(header::CONTENT_TYPE).and_then(|kind| multer::parse_boundary(kind).ok());
        let boundary = boundary.ok_or_else(|| incomplete("The form was posted without a file."))?;
        Ok(Self(Multipart::new(request.into_body().into_data_stream(), boundary)))
    }

    /// Returns the fields before the first file, and the file, of which nothing is read yet.
    pub(in crate::screens::sites) async fn fields(
        &mut self,
    ) -> Result<(FormSubmission, Field<'static>), Refusal> {
        let (mut fields, mut left) = (Vec::new(), FIELDS_BYTES_MAX);
        while let Some(mut field) = self.next().await? {
            let Some(name) = field.name().map(str::to_owned) else { continue };
            if FILE_FIELDS.contains(&name.as_str()) {
                return Ok((FormSubmission::of(fields), field));
            }
            let mut value = Vec::new();
            left = left.checked_sub(name.len() as u64 + 1).ok_or_else(too_large)?;
            while let Some(bytes) = field.chunk().await.map_err(|error| unreadable(&error))? {
                left = left.checked_sub(bytes.len() as u64).ok_or_else(too_large)?;
                value.extend_from_slice(&bytes);
            }
            fields.push((name, String::from_utf8_lossy(&value).into_owned()));
        }
        Err(incomplete("The form was posted without a file."))
    }

    /// Returns the next field; `None` at the end of the form. The field before must be dropped.
    pub(super) async fn next(&mut self) -> Result<Option<Field<'static>>, Refusal> {
        self.0.next_field().await.map_err(|error| unreadable(&error))
    }
}

/// Reads a file to disk.
pub(in crate::screens::sites) async fn read_file(mut field: Field<'static>) -> Result<PostedFile, Refusal> {
    let mut file = tokio::fs::File::from_std(tempfile::tempfile().map_err(failed)?);
    let mut size_bytes = 0;
    while let Some(bytes) = field.chunk().await.map_err(|error| unreadable(&error))? {
        size_bytes += bytes.len() as u64;
        if size_bytes > ZIP_BYTES_MAX.unsigned_abs() {
            return Err(too_large());
        }
        file.write_all(&bytes).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    if size_bytes == 0 {
        return Err(incomplete("Choose a file. An empty one can't be stored."));
    }
    Ok(PostedFile { file: file.into_std().await, size_bytes })
}

pub(super) fn failed(error: std::io::Error) -> Refusal {
    tracing::error!(%error, "failed to write a posted file to disk");
    let detail = "Please try again. Nothing was changed.";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "The file can't be stored now", detail)
}

pub(super) fn too_large() -> Refusal {
    let detail = "At most 100 MB can be sent at once. Nothing was changed.";
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "The file is too large", detail)
}

pub(super) fn too_many() -> Refusal {
    let detail = format!("A folder may have at most {ZIP_ENTRIES_MAX} files. Nothing was changed.");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "The folder has too many files", &detail)
}

pub(super) fn incomplete(detail: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "validation_failed", "There is no file", detail)
}

pub(super) fn unreadable(error: &multer::Error) -> Refusal {
    tracing::debug!(%error, "failed to read a posted file");
    let detail = "The upload ended early, or is not readable. Nothing was changed.";
    Refusal::new(StatusCode::BAD_REQUEST, "validation_failed", "The upload failed", detail)
}
