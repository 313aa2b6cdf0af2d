//! The path's parameters.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::FromRequestParts;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use http::request::Parts;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{Code, Problem, document};

/// The path's parameters. An invalid one is a 404, because it can't identify any resource.
#[derive(Debug, Clone)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        #[expect(clippy::disallowed_types, reason = "this is the wrapper that handlers use")]
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Self(path.0)).map_err(|rejection| Problem::new(Code::NotFound, detail(&rejection)))
    }
}

fn detail(rejection: &PathRejection) -> String {
    if let PathRejection::FailedToDeserializePathParams(failed) = rejection
        && let ErrorKind::DeserializeError { key, message, .. } = failed.kind()
        && message.contains("UUID")
    {
        return format!("`{{{key}}}` of the path is not an id (expected a UUID)");
    }
    "there is nothing at this URL".to_owned()
}

impl<T: JsonSchema> OperationInput for Path<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        document::add_path_parameters::<T>(ctx, operation);
    }
}
