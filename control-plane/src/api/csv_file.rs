//! The response of exports.

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ResponseDoc};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header;

/// A CSV file in the process of being sent.
pub(super) struct CsvFile {
    /// Its name for the browser: ASCII without quotation marks.
    pub(super) name: String,
    pub(super) body: Body,
}

impl IntoResponse for CsvFile {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, "text/csv; charset=utf-8; header=present".to_owned()),
            (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", self.name)),
            (header::CACHE_CONTROL, "no-store".to_owned()),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        ];
        (headers, self.body).into_response()
    }
}

impl OperationOutput for CsvFile {
    type Inner = Self;

    fn operation_response(_: &mut GenContext, _: &mut Operation) -> Option<ResponseDoc> {
        let content = [("text/csv".to_owned(), MediaType::default())].into_iter().collect();
        Some(ResponseDoc { description: "The file.".to_owned(), content, ..ResponseDoc::default() })
    }

    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<u16>, ResponseDoc)> {
        let file = Self::operation_response(ctx, operation);
        file.into_iter().map(|file| (Some(200), file)).collect()
    }
}
