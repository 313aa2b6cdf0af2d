//! Documents the `Idempotency-Key` header on every authenticated POST of the registry.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{
    HeaderStyle, OpenApi, Operation, Parameter, ParameterData, ParameterSchemaOrContent, ReferenceOr,
    SchemaObject,
};
use schemars::json_schema;

use crate::document::SERVED_BY;

const DESCRIPTION: &str = "A repeated request with the same key and body within 24 hours gets the stored response, with \
    `Idempotent-Replayed: true`, and is not executed again. While the first request is in progress, or with another \
    body, the response is 409. Responses with status 401, 405, 408, 413, 415, 429 and 5xx are not stored, so a retry \
    executes the request.";

/// Documents the header on an operation outside the registry that has it.
#[derive(Debug, Clone, Copy)]
pub struct IdempotencyKey;

impl OperationInput for IdempotencyKey {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        operation.parameters.push(ReferenceOr::Item(parameter()));
    }
}

fn parameter() -> Parameter {
    let text = json_schema!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"});
    Parameter::Header {
        parameter_data: ParameterData {
            name: "Idempotency-Key".to_owned(),
            description: Some(DESCRIPTION.to_owned()),
            required: false,
            deprecated: None,
            format: ParameterSchemaOrContent::Schema(SchemaObject {
                json_schema: text,
                external_docs: None,
                example: None,
            }),
            example: None,
            examples: Default::default(),
            explode: None,
            extensions: Default::default(),
        },
        style: HeaderStyle::Simple,
    }
}

/// Adds the header to the document's operations.
pub(crate) fn describe(document: &mut OpenApi) {
    let paths = document.paths.iter_mut().flat_map(|paths| paths.paths.values_mut());
    for item in paths.filter_map(ReferenceOr::as_item_mut) {
        let has_header =
            |post: &&mut Operation| !post.security.is_empty() && !post.extensions.contains_key(SERVED_BY);
        if let Some(post) = item.post.as_mut().filter(has_header) {
            post.parameters.push(ReferenceOr::Item(parameter()));
        }
    }
}
