//! A JSON body too large to be buffered in any number: it takes a share of the [body budget](crate::body_budget).

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRequest, Request};
use http::header;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;
use web::{Code, JsonOfItems, Problem};

use crate::App;
pub(crate) use crate::body_budget::MAX_BYTES;

/// Extracts a large JSON body of items. The permit holds the body's share of the budget until it is dropped.
#[derive(Debug)]
pub(crate) struct LargeJson<T> {
    pub(crate) body: T,
    pub(crate) permit: OwnedSemaphorePermit,
}

impl<T: DeserializeOwned> FromRequest<App> for LargeJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let length = request.headers().get(header::CONTENT_LENGTH);
        let bytes = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let permit = app.body_budget.acquire(bytes).await?;
        let reading = JsonOfItems::from_request(request, app);
        let read = tokio::time::timeout(app.body_budget.receive_timeout(), reading).await;
        let JsonOfItems(body) = read.map_err(|_elapsed| {
            Problem::new(Code::MalformedJson, "the body did not arrive in time; nothing was changed")
        })??;
        Ok(Self { body, permit })
    }
}

impl<T: JsonSchema> OperationInput for LargeJson<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        JsonOfItems::<T>::operation_input(ctx, operation);
    }
}
