//! A JSON body too large to be buffered in any number: it takes a share of the [body budget](crate::body_budget).

use std::marker::PhantomData;
use std::sync::Arc;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use futures::TryStreamExt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use uuid::Uuid;
use web::{Code, JsonOfItems, Problem};

use crate::App;
use crate::body_budget::BodyShare;
pub(crate) use crate::body_budget::MAX_BYTES;

/// A large JSON body of items that has not been read yet.
#[derive(Debug)]
pub(crate) struct LargeJson<T> {
    request: Request,
    body: PhantomData<fn() -> T>,
}

/// A body that arrives, with its share of the budget.
struct Arriving {
    share: BodyShare,
    /// Why the body may not go on.
    refusal: Option<Problem>,
}

impl<T: DeserializeOwned> LargeJson<T> {
    /// Reads the body of an account's request. It holds its share of the budget until the share is dropped.
    pub(crate) async fn read(self, app: &App, account_id: Uuid) -> Result<(T, BodyShare), Problem> {
        let share = app.body_budget.share(account_id);
        let arriving = Arc::new(Mutex::new(Arriving { share, refusal: None }));
        let (parts, body) = self.request.into_parts();
        let bytes = body.into_data_stream().and_then({
            let (app, arriving) = (app.clone(), Arc::clone(&arriving));
            move |chunk| {
                let (app, arriving) = (app.clone(), Arc::clone(&arriving));
                async move {
                    let arriving = &mut *arriving.lock().await;
                    match app.body_budget.grow(&mut arriving.share, chunk.len()).await {
                        Ok(()) => Ok(chunk),
                        Err(problem) => {
                            arriving.refusal = Some(problem);
                            Err(axum::Error::new("refused"))
                        }
                    }
                }
            }
        });
        let request = Request::from_parts(parts, Body::from_stream(bytes));
        let reading = JsonOfItems::from_request(request, app);
        let read = tokio::time::timeout(app.body_budget.receive_timeout(), reading).await;
        // The body has been dropped, whether it was read or not.
        let arriving = Arc::into_inner(arriving).map(Mutex::into_inner);
        let Arriving { share, refusal } = arriving.ok_or_else(Problem::nothing_changed)?;
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let JsonOfItems(body) = read.map_err(|_elapsed| {
            Problem::new(Code::MalformedJson, "the body did not arrive in time; nothing was changed")
        })??;
        Ok((body, share))
    }
}

impl<T> FromRequest<App> for LargeJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &App) -> Result<Self, Problem> {
        Ok(Self { request, body: PhantomData })
    }
}

impl<T: JsonSchema> OperationInput for LargeJson<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        JsonOfItems::<T>::operation_input(ctx, operation);
    }
}
