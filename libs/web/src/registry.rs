//! The registry: one line per endpoint, from which the router and the API document are built.

use aide::axum::ApiRouter;
use aide::axum::routing::{
    ApiMethodDocs, ApiMethodRouter, delete_with, get_with, patch_with, post_with, put_with,
};
use aide::openapi::{OpenApi, Operation, ReferenceOr, SecurityScheme, Server};
use aide::operation::{OperationHandler, OperationInput, OperationOutput};
use aide::transform::TransformOperation;
use axum::Router;
use axum::handler::Handler;
use axum::middleware::map_response;
use axum::response::Response;
use http::{HeaderValue, header};
use serde_json::Value;

use crate::document::SERVED_BY;
use crate::{document, idempotency};

/// Maximum size of a request body where an endpoint has no limit of its own.
pub const MAX_BODY_BYTES: usize = 1 << 20;

/// The endpoints of one resource.
pub struct Resource<S> {
    noun: &'static str,
    router: ApiRouter<S>,
    /// Methods and paths of the endpoints.
    routes: Vec<Route>,
    deprecated: Vec<Route>,
    extensions: Vec<Route>,
}

/// Extension of a response that must not be compressed: its length would tell about a secret in it.
#[derive(Debug, Clone, Copy)]
pub struct Uncompressed;

/// A method in lower case, and a path.
type Route = (&'static str, String);

/// Extension that marks operations beyond the specification.
const EXTENSION: &str = "x-extension";

/// An endpoint that the registry documents and does not route.
#[derive(Debug, Clone, Copy)]
pub struct Elsewhere {
    /// The service that serves it.
    pub served_by: &'static str,
    /// Method in lower case.
    pub method: &'static str,
    pub path: &'static str,
    /// The part of the operation id after the noun.
    pub name: &'static str,
    pub summary: &'static str,
    pub description: &'static str,
}

macro_rules! method {
    ($name:ident, $with:ident) => {
        /// Adds an endpoint with this method. Its operation id is `<noun>.<name of the handler>`.
        #[must_use]
        pub fn $name<H, I, O, T>(self, path: &str, handler: H, summary: &'static str) -> Self
        where
            H: Handler<T, S> + OperationHandler<I, O>,
            I: OperationInput,
            O: OperationOutput,
            T: 'static,
        {
            let describe = describe::<H>(self.noun, summary);
            self.route(stringify!($name), path, $with(handler, describe))
        }
    };
}

impl<S: Clone + Send + Sync + 'static> Resource<S> {
    /// Creates a resource without endpoints; `noun` is its plural.
    pub fn new(noun: &'static str) -> Self {
        Self {
            noun,
            router: ApiRouter::new(),
            routes: Vec::new(),
            deprecated: Vec::new(),
            extensions: Vec::new(),
        }
    }

    method!(get, get_with);
    method!(post, post_with);
    method!(put, put_with);
    method!(patch, patch_with);
    method!(delete, delete_with);

    /// Limits the body size of the endpoints so far.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.router = self.router.layer(axum::extract::DefaultBodyLimit::max(bytes));
        self
    }

    /// Marks the endpoints so far as deprecated in favour of `successor`.
    #[must_use]
    pub fn deprecated(mut self, successor: &'static str) -> Self {
        self.router = self.router.layer(map_response(async move |response| announce(response, successor)));
        self.deprecated.append(&mut self.routes);
        self
    }

    /// Keeps the responses of the endpoints so far from being compressed: they hold a secret, such as a URL that works without
    /// a key.
    #[must_use]
    pub fn uncompressed(mut self) -> Self {
        self.router = self.router.layer(map_response(async |mut response: Response| {
            response.extensions_mut().insert(Uncompressed);
            response
        }));
        self
    }

    /// Marks the endpoints so far as extensions: the specification does not have them.
    #[must_use]
    pub fn extension(mut self) -> Self {
        self.extensions.append(&mut self.routes);
        self
    }

    /// Documents an endpoint that is served elsewhere, by the types of its input and output.
    #[must_use]
    pub fn elsewhere<I: OperationInput, O: OperationOutput>(mut self, endpoint: Elsewhere) -> Self {
        let Elsewhere { served_by, method, path, name, summary, description } = endpoint;
        let mut operation = document::operation_of::<I, O>();
        operation.operation_id = Some(format!("{}.{name}", self.noun));
        operation.tags.push(self.noun.to_owned());
        operation.summary = Some(summary.to_owned());
        operation.description = Some(description.to_owned());
        operation.extensions.insert(SERVED_BY.to_owned(), served_by.into());
        self.routes.push((method, path.to_owned()));
        self.router = self.router.api_route_docs(path, ApiMethodDocs::new(method, operation));
        self
    }

    fn route(mut self, method: &'static str, path: &str, handler: ApiMethodRouter<S>) -> Self {
        self.routes.push((method, path.to_owned()));
        self.router = self.router.api_route(path, handler);
        self
    }
}

/// Start of the deprecation (2026-11-01), and the earliest date on which old endpoints may be removed.
const DEPRECATED_SINCE: HeaderValue = HeaderValue::from_static("@1793491200");
const SERVED_UNTIL: HeaderValue = HeaderValue::from_static("Mon, 01 Nov 2027 00:00:00 GMT");

/// Adds the headers of RFC 9745 and RFC 8594.
fn announce(mut response: Response, successor: &str) -> Response {
    let headers = response.headers_mut();
    headers.insert("deprecation", DEPRECATED_SINCE);
    headers.insert("sunset", SERVED_UNTIL);
    if let Ok(link) = HeaderValue::from_str(&format!("<{successor}>; rel=\"successor-version\"")) {
        headers.append(header::LINK, link);
    }
    response
}

fn describe<H>(
    noun: &'static str,
    summary: &'static str,
) -> impl FnOnce(TransformOperation<'_>) -> TransformOperation<'_> {
    // The handler's name is the last part of its type's name, as in `…::api::pages::create`. `type_name` is
    // documented as best effort; the test that locks the API document would show a change.
    let name = std::any::type_name::<H>().rsplit("::").next().unwrap_or_default();
    let id = format!("{noun}.{name}");
    move |operation| operation.id(&id).tag(noun).summary(summary)
}

/// Builds the router and the API document of all `resources`.
pub fn document_of<S: Clone + Send + Sync + 'static>(
    title: &str,
    description: &str,
    resources: Vec<Resource<S>>,
) -> (Router<S>, OpenApi) {
    aide::generate::on_error(|error| tracing::debug!(%error, "a part of the API could not be documented"));
    // Relative to the document's own address, until the service that serves it says more.
    let server = Server { url: "/".to_owned(), ..Server::default() };
    let mut document = OpenApi { servers: vec![server], ..OpenApi::default() };
    let deprecated: Vec<Route> = resources.iter().flat_map(|resource| resource.deprecated.clone()).collect();
    let extensions: Vec<Route> = resources.iter().flat_map(|resource| resource.extensions.clone()).collect();
    let all = resources.into_iter().fold(ApiRouter::new(), |all, resource| all.merge(resource.router));
    let router = all.finish_api_with(&mut document, |api| {
        let scheme = SecurityScheme::Http {
            scheme: "bearer".to_owned(),
            bearer_format: None,
            description: Some("An API key, `st_trial_…` or `st_live_…`".to_owned()),
            extensions: Default::default(),
        };
        api.title(title).description(description).version("1").security_scheme("apiKey", scheme)
    });
    for operation in operations_at(&mut document, &deprecated) {
        operation.deprecated = true;
    }
    for operation in operations_at(&mut document, &extensions) {
        operation.extensions.insert(EXTENSION.to_owned(), true.into());
    }
    idempotency::describe(&mut document);
    document::finish(&mut document);
    (router, document)
}

fn operations_at<'a>(document: &'a mut OpenApi, routes: &[Route]) -> impl Iterator<Item = &'a mut Operation> {
    let items = document.paths.iter_mut().flat_map(|paths| &mut paths.paths);
    let items = items.filter_map(|(path, item)| Some((path, item.as_item_mut()?)));
    items.flat_map(|(path, item)| {
        let operations = [
            ("get", &mut item.get),
            ("put", &mut item.put),
            ("post", &mut item.post),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        let named = |method| routes.iter().any(|route| route.0 == method && route.1 == *path);
        operations
            .into_iter()
            .filter(|(method, _)| named(*method))
            .filter_map(|(_, operation)| operation.as_mut())
            .collect::<Vec<_>>()
    })
}

/// One endpoint of the API document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Path with `{id}` for parameters.
    pub path: String,
    /// Operation id, such as `pages.create`.
    pub operation_id: String,
    pub summary: String,
    pub tag: String,
    /// Scopes that the key needs; `None` for a public endpoint.
    pub scopes: Option<Vec<String>>,
    /// Whether it is an extension of the specification.
    pub is_extension: bool,
    /// The service that serves it outside the registry; `None` if the registry routes it.
    pub served_by: Option<String>,
}

/// Returns every endpoint of a document, in its order.
pub fn endpoints_of(document: &OpenApi) -> Vec<Endpoint> {
    let paths = document.paths.iter().flat_map(|paths| &paths.paths);
    let read = |(path, item): (&String, &ReferenceOr<aide::openapi::PathItem>)| {
        let ReferenceOr::Item(item) = item else { return Vec::new() };
        let one = |(method, operation): (&str, &Operation)| Endpoint {
            method: method.to_uppercase(),
            path: path.clone(),
            operation_id: operation.operation_id.clone().unwrap_or_default(),
            summary: operation.summary.clone().unwrap_or_default(),
            tag: operation.tags.first().cloned().unwrap_or_default(),
            is_extension: operation.extensions.contains_key(EXTENSION),
            served_by: operation.extensions.get(SERVED_BY).and_then(Value::as_str).map(str::to_owned),
            // An empty rule allows calls without a key.
            scopes: operation
                .security
                .first()
                .filter(|rule| !rule.is_empty())
                .map(|rule| rule.values().flatten().cloned().collect()),
        };
        item.iter().map(one).collect()
    };
    paths.flat_map(read).collect()
}
