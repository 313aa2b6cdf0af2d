//! The form with a zip, as a browser without scripts posts it: read part by part, the zip to a file without a name.

use std::fs::File;

use axum::extract::Request;
use domain::static_sites::limits::ZIP_BYTES_MAX;
use http::{StatusCode, header};
use multer::{Field, Multipart};
use tokio::io::AsyncWriteExt;

use crate::api_client::Refusal;
use crate::form_submission::FormSubmission;

/// Bytes of all other fields together, and of what separates them.
const FIELDS_BYTES_MAX: u64 = 64 << 10;

/// A zip on disk.
pub(super) struct PostedZip {
    pub(super) file: File,
    pub(super) size_bytes: u64,
}

/// The parts of the form, in their order.
pub(super) struct PostedParts(Multipart<'static>);

impl PostedParts {
    /// Begins to read a form.
    ///
    /// # Errors
    /// It is none with a file, or is larger than any zip may be.
    pub(super) fn of(request: Request) -> Result<Self, Refusal> {
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let length = text(header::CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        if length.is_some_and(|length| length > ZIP_BYTES_MAX.unsigned_abs() + FIELDS_BYTES_MAX) {
            return Err(too_large());
        }
        let boundary = text(header::CONTENT_TYPE).and_then(|kind| multer::parse_boundary(kind).ok());
        let boundary = boundary.ok_or_else(|| incomplete("The form was posted without a file."))?;
        Ok(Self(Multipart::new(request.into_body().into_data_stream(), boundary)))
    }

    /// Returns the fields before the zip. Nothing of the zip is read yet.
    pub(super) async fn fields(&mut self) -> Result<(FormSubmission, Field<'static>), Refusal> {
        let (mut fields, mut left) = (Vec::new(), FIELDS_BYTES_MAX);
        while let Some(mut field) = self.0.next_field().await.map_err(|error| unreadable(&error))? {
            let Some(name) = field.name().map(str::to_owned) else { continue };
            if name == "zip" {
                return Ok((FormSubmission::of(fields), field));
            }
            let mut value = Vec::new();
            while let Some(bytes) = field.chunk().await.map_err(|error| unreadable(&error))? {
                left = left.checked_sub(bytes.len() as u64).ok_or_else(too_large)?;
                value.extend_from_slice(&bytes);
            }
            fields.push((name, String::from_utf8_lossy(&value).into_owned()));
        }
        Err(incomplete("The form was posted without a file."))
    }
}

/// Reads a zip to disk.
pub(super) async fn read_zip(mut field: Field<'static>) -> Result<PostedZip, Refusal> {
    let failed = |error: std::io::Error| {
        tracing::error!(%error, "failed to write a posted zip to disk");
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Refusal::new(
            status,
            "unavailable",
            "The zip can't be stored now",
            "Please try again. Nothing was changed.",
        )
    };
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
        return Err(incomplete("Choose a zip file."));
    }
    Ok(PostedZip { file: file.into_std().await, size_bytes })
}

fn too_large() -> Refusal {
    let detail = "A zip may have at most 100 MB. Nothing was changed.";
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "The zip is too large", detail)
}

fn incomplete(detail: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "validation_failed", "There is no zip", detail)
}

fn unreadable(error: &multer::Error) -> Refusal {
    tracing::debug!(%error, "failed to read a posted zip");
    let detail = "The upload ended early, or is not readable. Nothing was changed.";
    Refusal::new(StatusCode::BAD_REQUEST, "validation_failed", "The upload failed", detail)
}
