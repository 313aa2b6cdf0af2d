//! A JSON body too large to be buffered in any number: it takes a share of the [body budget](super::BodyBudget).

use std::marker::PhantomData;
use std::sync::Arc;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{FromRequest, Request};
use futures::StreamExt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::Instant;
use uuid::Uuid;
use web::{Code, JsonOfItems, Problem};

use super::budget::{BodyShare, HandedShare};
use super::pace::Pace;
use crate::App;

/// Upper bound of one large body.
pub(crate) const MAX_BYTES: usize = 160 << 20;
/// `Retry-After` of a body that arrived too slowly.
const RETRY_AFTER_SECONDS: u64 = 5;

/// A large JSON body of items that has not been read yet.
#[derive(Debug)]
pub(crate) struct LargeJson<T> {
    request: Request,
    body: PhantomData<fn() -> T>,
}

/// A body that arrives, with its share of the budget.
struct Arriving {
    app: App,
    share: BodyShare,
    pace: Pace,
    /// Why the body may not go on.
    refusal: Option<Problem>,
}

impl<T: DeserializeOwned + JsonSchema> LargeJson<T> {
    /// Reads the body of an account's request. It holds its share of the budget until the share is dropped.
    pub(crate) async fn read(self, app: &App, account_id: Uuid) -> Result<(T, BodyShare), Problem> {
        let (budget, app) = (&app.body_budget, app.clone());
        let (mut parts, body) = self.request.into_parts();
        let handed = parts.extensions.remove::<HandedShare>().and_then(|handed| handed.take());
        let share = handed.unwrap_or_else(|| budget.share(account_id));
        let pace = Pace::new(budget.config(), Instant::now());
        let receive_timeout = budget.config().receive_timeout;
        let arriving = Arc::new(Mutex::new(Arriving { app: app.clone(), share, pace, refusal: None }));
        let state = (body.into_data_stream(), Arc::clone(&arriving));
        let bytes = futures::stream::try_unfold(state, async |(mut body, arriving)| {
            let chunk = arriving.lock().await.next(&mut body).await?;
            Ok::<_, axum::Error>(chunk.map(|chunk| (chunk, (body, arriving))))
        });
        let request = Request::from_parts(parts, Body::from_stream(bytes));
        let reading = JsonOfItems::from_request(request, &app);
        let read = tokio::time::timeout(receive_timeout, reading).await;
        // The body has been dropped, whether it was read or not.
        let arriving = Arc::into_inner(arriving).map(Mutex::into_inner);
        let Arriving { share, refusal, .. } = arriving.ok_or_else(Problem::nothing_changed)?;
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let JsonOfItems(body) = read.map_err(|_elapsed| too_slow())??;
        Ok((body, share))
    }
}

impl Arriving {
    /// Waits for the next chunk, at most until the body has stalled, and then for its share.
    async fn next(&mut self, body: &mut BodyDataStream) -> Result<Option<Bytes>, axum::Error> {
        let chunk = match self.pace.deadline() {
            None => body.next().await,
            Some(deadline) => match tokio::time::timeout_at(deadline, body.next()).await {
                Ok(chunk) => chunk,
                Err(_elapsed) => return Err(self.refuse(too_slow())),
            },
        };
        let Some(chunk) = chunk.transpose()? else { return Ok(None) };
        let arrived_at = Instant::now();
        match self.app.body_budget.grow(&mut self.share, chunk.len()).await {
            Ok(()) => {
                self.pace.arrived(self.share.bytes(), arrived_at);
                self.pace.waited(arrived_at.elapsed());
                Ok(Some(chunk))
            }
            Err(problem) => Err(self.refuse(problem)),
        }
    }

    fn refuse(&mut self, problem: Problem) -> axum::Error {
        self.refusal = Some(problem);
        axum::Error::new("refused")
    }
}

fn too_slow() -> Problem {
    Problem::new(Code::Unavailable, "the body arrived too slowly; nothing was changed")
        .hint("send it faster, or less at a time")
        .retry_after(RETRY_AFTER_SECONDS)
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
