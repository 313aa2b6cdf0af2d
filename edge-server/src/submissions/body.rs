//! Reads the body of a submission: JSON, a URL-encoded form, or a multipart form with files.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use domain::answers::Answers;
use domain::submissions::BYTES_MAX;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use sha2::{Digest, Sha256};
use store::forms::OpenForm;
use web::{Json, Problem};

use super::multipart::{self, MultipartBody};
use super::submitted_body::{BodyKind, Content, FormPairs, SubmittedBody, too_large};
use crate::forms::pages::page::Presentation;
use crate::state::EdgeState;
use crate::uploads::form_files::visitor::Visitor;

/// Reads a body to its end. Its files are stored on the way, unbound, unless the form is closed.
pub(super) async fn read(
    state: &EdgeState,
    open: &OpenForm,
    request: Request,
) -> Result<SubmittedBody, Problem> {
    let kind = BodyKind::of(request.headers());
    web::check_not_compressed(request.headers())?;
    let visitor = Visitor::of(state, &request);
    let (head, body) = request.into_parts();
    let mut closed = None;
    let MultipartBody { pairs, digest, file_errors, unknown_files } = match kind {
        BodyKind::Other => {
            let body = read_limited(body).await?;
            let digest = Sha256::digest(&body).into();
            let request = Request::from_parts(head, body.into());
            let presentation = Presentation::from_form(|_| None, request.headers());
            let Json(answers) = Json::<Answers>::from_request(request, &()).await?;
            let (content, file_errors, unknown_files) = (Content::Json(answers), Vec::new(), Vec::new());
            return Ok(SubmittedBody { content, digest, presentation, file_errors, unknown_files, closed });
        }
        BodyKind::UrlEncoded => {
            let body = read_limited(body).await?;
            let mut pairs = FormPairs::new();
            for (name, value) in form_urlencoded::parse(&body) {
                pairs.entry(name.into_owned()).or_default().push(value.into_owned());
            }
            MultipartBody { pairs, digest: Sha256::digest(&body).into(), ..MultipartBody::default() }
        }
        BodyKind::Multipart(boundary) => {
            closed = state.forms.current_closed_reason(open, state.clock.now()).await?;
            let visitor = closed.is_none().then_some(&visitor);
            multipart::read(state, open, visitor, boundary, body).await?
        }
    };
    let field = |name: &str| pairs.get(name).and_then(|values| values.first()).map(String::as_str);
    let presentation = Presentation::from_form(field, &head.headers);
    let content = Content::Form(pairs);
    Ok(SubmittedBody { content, digest, presentation, file_errors, unknown_files, closed })
}

pub(super) async fn read_limited(body: Body) -> Result<Bytes, Problem> {
    let read = Limited::new(body, BYTES_MAX).collect().await;
    read.map(http_body_util::Collected::to_bytes).map_err(|error| {
        if error.is::<LengthLimitError>() {
            return too_large();
        }
        Problem::malformed_json("the body could not be read to its end")
    })
}
