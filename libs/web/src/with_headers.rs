//! A response with additional headers, documented like the response itself.

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ResponseDoc};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;

/// A response `1` with the additional headers `0`.
#[derive(Debug)]
pub struct WithHeaders<T>(pub HeaderMap, pub T);

impl<T: IntoResponse> IntoResponse for WithHeaders<T> {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

impl<T: OperationOutput> OperationOutput for WithHeaders<T> {
    type Inner = T::Inner;

    fn operation_response(ctx: &mut GenContext, operation: &mut Operation) -> Option<ResponseDoc> {
        T::operation_response(ctx, operation)
    }

    fn inferred_responses(ctx: &mut GenContext, of: &mut Operation) -> Vec<(Option<u16>, ResponseDoc)> {
        T::inferred_responses(ctx, of)
    }
}
