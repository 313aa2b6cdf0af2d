//! The query string.

use std::borrow::Cow;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::FromRequestParts;
use domain::FieldError;
use http::request::Parts;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;

use super::query_text::QueryText;
use super::{messages, wrong_types};
use crate::{Problem, document};

/// The query string. A name in brackets is the same as one after a dot: `filters[country]` and `filters.country`.
#[derive(Debug, Clone)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned + JsonSchema, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        read(parts.uri.query().unwrap_or_default()).map(Query)
    }
}

fn read<T: DeserializeOwned + JsonSchema>(query: &str) -> Result<T, Problem> {
    if let Some((name, _)) = pairs(query).find(|(name, value)| name.contains('\0') || value.contains('\0')) {
        let name = name.replace('\0', "\u{fffd}");
        let message = format!("{name} must not contain a NUL character");
        return Err(Problem::validation(vec![FieldError::new(name, "nul", message)]));
    }
    let reader = MapDeserializer::new(pairs(query).map(|(name, value)| (name, QueryText(value))));
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let path = error.path().to_string();
        let first = messages::field_error(&path, &error.into_inner().to_string());
        Problem::validation(wrong_types::of_query::<T>(pairs(query), first))
    })
}

fn pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    url::form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (without_brackets(name), value))
}

/// Returns `filters.country` for `filters[country]`.
fn without_brackets(name: Cow<'_, str>) -> Cow<'_, str> {
    let inner = name.strip_suffix(']').and_then(|name| name.split_once('['));
    match inner {
        Some((object, member)) if !object.is_empty() && !member.is_empty() => {
            format!("{object}.{member}").into()
        }
        _ => name,
    }
}

impl<T: JsonSchema> OperationInput for Query<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        #[expect(clippy::disallowed_types, reason = "only its description is used")]
        axum::extract::Query::<T>::operation_input(ctx, operation);
        document::forbid_nulls_in_queries(operation);
    }
}
