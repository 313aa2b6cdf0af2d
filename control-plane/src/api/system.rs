//! The API's own description: for programs, for agents and for people. It is public, and the same for every caller.

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{OpenApi, Operation, Response as ResponseDoc};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::HeaderMap;
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Code, Path, Problem, Query, Resource};

use crate::App;
use crate::reference::{CachedText, SchemaResponse};

pub(super) fn resource() -> Resource<App> {
    Resource::new("system").get(
        "/api/schema",
        schema,
        "Describe the API: schemas, errors, limits and examples",
    )
}

/// `GET /api/openapi.json` and the texts of the reference, which are not part of the document.
pub(super) fn document_routes(document: &OpenApi) -> Router<App> {
    let document = CachedText::json(serde_json::to_string_pretty(document).unwrap_or_default());
    let document = std::sync::Arc::new(document);
    Router::new()
        .route("/api/openapi.json", get(async move |headers: HeaderMap| document.answer(&headers)))
        .route("/llms.txt", get(guide))
        .route("/docs", get(first_page))
        .route("/docs/{category}", get(page))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SchemaQuery {
    /// Only the endpoints of this category.
    category: Option<SchemaCategoryName>,
}

/// The categories of endpoints.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SchemaCategoryName {
    Trial,
    Auth,
    Pages,
    Forms,
    Submissions,
    Webhooks,
    Workflows,
    Keys,
    Account,
    Analytics,
    Folders,
    Automations,
    Mcp,
    System,
}

impl SchemaCategoryName {
    fn as_str(self) -> &'static str {
        match self {
            Self::Trial => "trial",
            Self::Auth => "auth",
            Self::Pages => "pages",
            Self::Forms => "forms",
            Self::Submissions => "submissions",
            Self::Webhooks => "webhooks",
            Self::Workflows => "workflows",
            Self::Keys => "keys",
            Self::Account => "account",
            Self::Analytics => "analytics",
            Self::Folders => "folders",
            Self::Automations => "automations",
            Self::Mcp => "mcp",
            Self::System => "system",
        }
    }
}

/// The description, as it was made by the first request.
struct SchemaText(Response);

impl IntoResponse for SchemaText {
    fn into_response(self) -> Response {
        self.0
    }
}

impl OperationOutput for SchemaText {
    type Inner = SchemaResponse;

    #[expect(clippy::disallowed_types, reason = "only its description is used")]
    fn inferred_responses(ctx: &mut GenContext, of: &mut Operation) -> Vec<(Option<u16>, ResponseDoc)> {
        let doc = axum::Json::<SchemaResponse>::operation_response(ctx, of);
        doc.into_iter().map(|doc| (Some(200), doc)).collect()
    }
}

async fn schema(
    State(app): State<App>,
    Query(query): Query<SchemaQuery>,
    headers: HeaderMap,
) -> Result<SchemaText, Problem> {
    let category = query.category.map_or("", SchemaCategoryName::as_str);
    let text = app.reference.schema(category)?;
    Ok(SchemaText(text.answer(&headers)))
}

async fn guide(State(app): State<App>, headers: HeaderMap) -> Response {
    app.reference.guide().answer(&headers)
}

async fn first_page(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    show(&app, "", &headers)
}

async fn page(
    State(app): State<App>,
    Path(category): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    show(&app, &category, &headers)
}

fn show(app: &App, category: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    let page = app.reference.page(category)?.ok_or_else(|| {
        Problem::new(Code::NotFound, "the reference has no such page; GET /docs lists its pages")
    })?;
    Ok(page.answer(headers))
}
