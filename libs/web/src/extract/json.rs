//! JSON bodies.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{Operation, ReferenceOr};
use axum::extract::{FromRequest, Request};
use domain::FieldError;
use http::header;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};

use super::{body, messages, wrong_types};
use crate::{Problem, nul_characters};

/// A JSON body.
#[derive(Debug, Clone)]
pub struct Json<T>(pub T);

/// A JSON body, or an empty one.
#[derive(Debug, Clone)]
pub struct OptionalJson<T>(pub Option<T>);

/// A JSON body with items of any shape; [`read_item`] validates each on its own.
#[derive(Debug, Clone)]
pub struct JsonOfItems<T>(pub T);

impl<T: DeserializeOwned + JsonSchema, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        body::check_is_json(request.headers())?;
        read_json(&body::read(request, state).await?).map(Json)
    }
}

impl<T: DeserializeOwned + JsonSchema, S: Send + Sync> FromRequest<S> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        // The body must be read first: while it is streamed through a digest, its length is unknown.
        let kind = body::check_is_json(request.headers());
        let says_nothing = !request.headers().contains_key(header::CONTENT_TYPE);
        let bytes = body::read(request, state).await?;
        // Generated clients name the type of a body that they do not send.
        if bytes.is_empty() && (says_nothing || kind.is_ok()) {
            return Ok(Self(None));
        }
        kind?;
        read_json(&bytes).map(|body| Self(Some(body)))
    }
}

impl<T: DeserializeOwned + JsonSchema, S: Send + Sync> FromRequest<S> for JsonOfItems<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        body::check_is_json(request.headers())?;
        let bytes = body::read(request, state).await?;
        check_is_object(&bytes)?;
        read_object(&bytes).map(Self)
    }
}

/// Parses a JSON text. The problem of invalid JSON says where; that of an invalid field names it.
pub(super) fn read_json<T: DeserializeOwned + JsonSchema>(bytes: &[u8]) -> Result<T, Problem> {
    check_is_object(bytes)?;
    if let Some(field_error) = nul_characters::field_error(bytes) {
        return Err(Problem::validation(vec![field_error]));
    }
    read_object(bytes)
}

fn read_object<T: DeserializeOwned + JsonSchema>(bytes: &[u8]) -> Result<T, Problem> {
    // The schema is consulted only after serde has failed, which stops at the first error.
    read(&mut serde_json::Deserializer::from_slice(bytes))
        .map_err(|error| Problem::validation(wrong_types::of_json::<T>(bytes, error)))
}

pub(super) fn read<'de, T: Deserialize<'de>, D>(reader: D) -> Result<T, FieldError>
where
    D: Deserializer<'de, Error = serde_json::Error>,
{
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let path = error.path().to_string();
        messages::field_error(&path, &error.into_inner().to_string())
    })
}

fn check_is_object(bytes: &[u8]) -> Result<(), Problem> {
    if let Err(error) = std::str::from_utf8(bytes) {
        let detail =
            format!("the body is not UTF-8: byte {} is not part of a character", error.valid_up_to() + 1);
        return Err(Problem::malformed_json(detail));
    }
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(bytes) {
        return Err(json_syntax_error(&error, bytes.trim_ascii().is_empty()));
    }
    // serde would accept an array as a struct, by the order of its fields.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(Problem::validation(vec![FieldError::new(
            "body",
            "type",
            "the body must be a JSON object",
        )]));
    }
    Ok(())
}

/// The problem of a body that is not JSON, with the place of the error.
pub fn json_syntax_error(error: &serde_json::Error, is_empty: bool) -> Problem {
    if is_empty {
        return Problem::malformed_json("the body is empty; send a JSON object, such as {}");
    }
    Problem::malformed_json(messages::json_syntax(error))
}

impl<T: JsonSchema> OperationInput for Json<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        #[expect(clippy::disallowed_types, reason = "only its description is used")]
        axum::Json::<T>::operation_input(ctx, operation);
    }
}

impl<T: JsonSchema> OperationInput for JsonOfItems<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Json::<T>::operation_input(ctx, operation);
    }
}

impl<T: JsonSchema> OperationInput for OptionalJson<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Json::<T>::operation_input(ctx, operation);
        if let Some(ReferenceOr::Item(body)) = &mut operation.request_body {
            body.required = false;
        }
    }
}
