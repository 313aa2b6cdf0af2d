//! Completes the API document: names of path parameters, which handlers don't know, and queries without nulls.

mod schemas;

use aide::generate::{GenContext, in_context};
use aide::openapi::{
    MediaType, OpenApi, Operation, Parameter, ParameterData, ParameterSchemaOrContent, PathStyle,
    ReferenceOr, SchemaObject, StatusCode,
};
use aide::operation::{OperationInput, OperationOutput};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// Extension with the name of the service that serves an operation outside the registry.
pub(crate) const SERVED_BY: &str = "x-served-by";

/// Adds the path's parameters to an operation: one, or one for each element of a tuple. Only the path has their
/// names; [`finish`] fills them in.
pub(crate) fn add_path_parameters<T: JsonSchema>(ctx: &mut GenContext, operation: &mut Operation) {
    let schema = ctx.schema.subschema_for::<T>();
    let parts = schema.get("prefixItems").and_then(Value::as_array).cloned();
    let schemas = match parts {
        Some(parts) => parts.into_iter().filter_map(|part| Schema::try_from(part).ok()).collect(),
        None => vec![schema],
    };
    operation.parameters.extend(schemas.into_iter().map(path_parameter));
}

fn path_parameter(schema: Schema) -> ReferenceOr<Parameter> {
    let parameter_data = required_parameter("", schema);
    ReferenceOr::Item(Parameter::Path { parameter_data, style: PathStyle::Simple })
}

/// Describes a required parameter.
pub(crate) fn required_parameter(name: &str, json_schema: Schema) -> ParameterData {
    let schema = SchemaObject { json_schema, example: None, external_docs: None };
    ParameterData {
        name: name.to_owned(),
        description: None,
        required: true,
        deprecated: None,
        format: ParameterSchemaOrContent::Schema(schema),
        example: None,
        examples: Default::default(),
        explode: None,
        extensions: Default::default(),
    }
}

/// Takes null out of the types of query parameters: a query string can't express it.
pub(crate) fn forbid_nulls_in_queries(operation: &mut Operation) {
    for parameter in &mut operation.parameters {
        if let ReferenceOr::Item(Parameter::Query { parameter_data, .. }) = parameter
            && let ParameterSchemaOrContent::Schema(schema) = &mut parameter_data.format
        {
            forbid_null(&mut schema.json_schema);
        }
    }
}

fn forbid_null(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(kinds) = schema.get_mut("type") {
        let one = kinds.as_array().and_then(|kinds| kinds.iter().find(|kind| *kind != "null")).cloned();
        *kinds = one.unwrap_or(kinds.take());
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    }
}

/// Descriptions of properties with the same meaning in every schema. A schema may override them.
const COMMON_PROPERTIES: [(&str, &str); 5] = [
    ("id", "Id of the resource."),
    ("createdAt", "When the resource was created."),
    ("updatedAt", "When the resource was last changed."),
    ("folderId", "The folder the resource is in; null for none."),
    ("subdomainId", "The subdomain the resource belongs to."),
];

/// Names the path parameters, describes common properties, and rewrites all schemas for generators of clients.
pub(crate) fn finish(document: &mut OpenApi) {
    let paths = document.paths.iter_mut().flat_map(|paths| &mut paths.paths);
    for (path, item) in paths {
        let ReferenceOr::Item(item) = item else { continue };
        let names: Vec<&str> = path.split(['{', '}']).skip(1).step_by(2).collect();
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            name_path_parameters(operation, &names);
            simplify_operation(operation);
        }
    }
    let schemas = document.components.iter_mut().flat_map(|components| components.schemas.values_mut());
    for schema in schemas {
        describe_common_properties(&mut schema.json_schema);
        simplify(&mut schema.json_schema);
    }
}

fn describe_common_properties(schema: &mut Schema) {
    let members = schema.as_object_mut().and_then(|schema| schema.get_mut("properties"));
    let Some(Value::Object(members)) = members else { return };
    for (name, member) in members.iter_mut() {
        let Some(member) = member.as_object_mut() else { continue };
        if let Some((_, description)) = COMMON_PROPERTIES.iter().find(|(common, _)| common == name) {
            member.entry("description").or_insert_with(|| (*description).into());
        }
    }
}

fn simplify(schema: &mut Schema) {
    let mut value = std::mem::take(schema).to_value();
    schemas::simplify(&mut value);
    if let Ok(simplified) = Schema::try_from(value) {
        *schema = simplified;
    }
}

/// Simplifies the schemas of an operation that are not among the components.
fn simplify_operation(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().filter_map(ReferenceOr::as_item_mut) {
        let data = parameter.parameter_data_mut();
        if let ParameterSchemaOrContent::Schema(schema) = &mut data.format {
            simplify(&mut schema.json_schema);
            let description = schema.json_schema.get("description").and_then(Value::as_str);
            data.description = description.map(str::to_owned).or(data.description.take());
        }
    }
    let request = operation.request_body.iter_mut().filter_map(ReferenceOr::as_item_mut);
    let request = request.flat_map(|body| body.content.values_mut());
    let responses = operation.responses.iter_mut().flat_map(|responses| {
        responses.responses.values_mut().chain(&mut responses.default).filter_map(ReferenceOr::as_item_mut)
    });
    let responses = responses.flat_map(|response| response.content.values_mut());
    for schema in request.chain(responses).filter_map(|MediaType { schema, .. }| schema.as_mut()) {
        simplify(&mut schema.json_schema);
    }
}

/// Describes an operation by the types of its input and output.
pub(crate) fn operation_of<I: OperationInput, O: OperationOutput>() -> Operation {
    let mut operation = Operation::default();
    in_context(|ctx| {
        I::operation_input(ctx, &mut operation);
        for (status, response) in O::inferred_responses(ctx, &mut operation) {
            let responses = operation.responses.get_or_insert_default();
            let response = ReferenceOr::Item(response);
            match status {
                Some(status) => drop(responses.responses.insert(StatusCode::Code(status), response)),
                None => responses.default = Some(response),
            }
        }
    });
    operation
}

fn name_path_parameters(operation: &mut Operation, names: &[&str]) {
    let in_path = operation.parameters.iter_mut().filter_map(|parameter| match parameter {
        ReferenceOr::Item(Parameter::Path { parameter_data, .. }) => Some(parameter_data),
        _ => None,
    });
    for (parameter, name) in in_path.zip(names) {
        (*name).clone_into(&mut parameter.name);
    }
}
