//! What was sent: JSON from programs, a posted form, with files in it or not, from browsers.

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use domain::answers::{self, Answers};
use domain::forms::ClosedReason;
use domain::submissions::BYTES_MAX;
use domain::{FieldError, honeypot};
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use sha2::{Digest, Sha256};
use store::forms::OpenForm;
use web::{Code, Json, Problem};

use super::handler::said;
use super::multipart;
use crate::forms::Presentation;
use crate::state::EdgeState;
use crate::uploads::form_files::storage::Visitor;

/// Texts of a posted form, by their fields' names.
pub(super) type Pairs = BTreeMap<String, Vec<String>>;

/// How a visitor wants to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientKind {
    /// A program: JSON.
    Program,
    /// A browser that posted the form: a page.
    Browser,
}

impl ClientKind {
    /// A posted form is a browser's, unless it comes of a script that asks for JSON.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let accept = said(headers, &header::ACCEPT);
        let wants_json = accept.contains("application/json") && !accept.contains("text/html");
        match Kind::of(headers) {
            Kind::Posted | Kind::Parts(_) if !wants_json => Self::Browser,
            _ => Self::Program,
        }
    }
}

/// What a body is said to be.
enum Kind {
    Posted,
    /// With this between its parts.
    Parts(String),
    /// JSON, or nothing that is taken.
    Other,
}

impl Kind {
    fn of(headers: &HeaderMap) -> Self {
        let said = said(headers, &header::CONTENT_TYPE);
        if let Ok(boundary) = multer::parse_boundary(said) {
            return Self::Parts(boundary);
        }
        let essence = said.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            Self::Posted
        } else {
            Self::Other
        }
    }
}

/// What was sent.
pub(super) struct Sent {
    content: Content,
    /// Of all of it: what is sent again has the same.
    pub(super) digest: [u8; 32],
    /// How the page was shown that it comes from.
    pub(super) manner: Presentation,
    /// What was wrong with files as they came.
    pub(super) wrong: Vec<FieldError>,
    /// The form was shut before its files came, and none was kept: whatever the form is by now, this is not stored.
    pub(super) shut: Option<ClosedReason>,
}

enum Content {
    Json(Answers),
    Posted(Pairs),
}

impl Sent {
    /// As answers to what the form asks.
    pub(super) fn answers(&self, open: &OpenForm) -> Answers {
        match &self.content {
            Content::Json(given) => given.clone(),
            Content::Posted(pairs) => answers::from_form_data(&open.form.fields, pairs),
        }
    }

    /// What our own page said beside the answers.
    pub(super) fn said(&self, name: &str) -> Option<&str> {
        match &self.content {
            // A program brings its proof where one is asked of everybody; what else our pages say is not its business.
            Content::Json(given) if name == honeypot::fields::PROOF => given.get(name)?.as_str(),
            Content::Json(_) => None,
            Content::Posted(pairs) => pairs.get(name)?.first().map(String::as_str),
        }
    }
}

/// Reads a body to its end. Files in it are stored on the way, and wait to be handed in; those for a form that is shut
/// aren't.
///
/// # Errors
/// A problem: it is too large, broken, or nothing that is taken.
pub(super) async fn read(edge: &EdgeState, open: &OpenForm, request: Request) -> Result<Sent, Problem> {
    let kind = Kind::of(request.headers());
    let visitor = Visitor::of(edge, &request);
    let (head, body) = request.into_parts();
    let mut shut = None;
    let (pairs, digest, wrong) = match kind {
        Kind::Other => {
            let body = whole(body).await?;
            let digest = Sha256::digest(&body).into();
            let request = Request::from_parts(head, body.into());
            let headers = request.headers().clone();
            let Json(given) = Json::<Answers>::from_request(request, &()).await?;
            let manner = Presentation::of(None, None, &headers);
            return Ok(Sent { content: Content::Json(given), digest, manner, wrong: Vec::new(), shut });
        }
        Kind::Posted => {
            let body = whole(body).await?;
            let mut pairs = Pairs::new();
            for (name, value) in form_urlencoded::parse(&body) {
                pairs.entry(name.into_owned()).or_default().push(value.into_owned());
            }
            (pairs, Sha256::digest(&body).into(), Vec::new())
        }
        Kind::Parts(boundary) => {
            shut = edge.forms.still_shut(open, edge.clock.now()).await?;
            let visitor = shut.is_none().then_some(&visitor);
            multipart::read(edge, open, visitor, boundary, body).await?
        }
    };
    let said = |name: &str| pairs.get(name).and_then(|values| values.first()).map(String::as_str);
    let manner =
        Presentation::of(said(honeypot::fields::LANGUAGE), said(honeypot::fields::EMBEDDED), &head.headers);
    Ok(Sent { content: Content::Posted(pairs), digest, manner, wrong, shut })
}

async fn whole(body: Body) -> Result<Bytes, Problem> {
    let read = Limited::new(body, BYTES_MAX).collect().await;
    read.map(http_body_util::Collected::to_bytes).map_err(|error| {
        if error.is::<LengthLimitError>() {
            return too_large();
        }
        Problem::new(Code::MalformedJson, "the body could not be read to its end")
    })
}

/// More than a submission may have.
pub(super) fn too_large() -> Problem {
    Problem::new(Code::PayloadTooLarge, "a submission may have at most 256 KiB, its files aside")
}
