//! Bodies too large to be taken in any number: so many bytes at once, and none that trickles in for ever.

use std::sync::Arc;
use std::time::Duration;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRequest, Request};
use http::header;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use web::{Code, JsonOfItems, Problem};

use crate::App;

/// Most bytes of one such body.
pub(crate) const MAX_BYTES: usize = 160 << 20;

/// Section `[large_bodies]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LargeBodies {
    /// So many MiB at once.
    pub in_flight_mib: u32,
    /// How long one waits for room.
    #[serde(with = "service::config::duration")]
    pub wait: Duration,
    /// How long one may take to arrive.
    #[serde(with = "service::config::duration")]
    pub arrive: Duration,
}

/// The room that large bodies share.
#[derive(Debug)]
pub struct Room {
    config: LargeBodies,
    mebibytes: Arc<Semaphore>,
}

impl Room {
    /// All of it.
    pub(crate) fn new(config: &LargeBodies) -> Self {
        let mebibytes = Arc::new(Semaphore::new(config.in_flight_mib as usize));
        Self { config: config.clone(), mebibytes }
    }

    /// Room for a body of so many bytes, or of unknown size, as soon as there is some.
    async fn take(&self, bytes: Option<usize>) -> Result<OwnedSemaphorePermit, Problem> {
        let mebibytes = bytes.unwrap_or(MAX_BYTES).min(MAX_BYTES).div_ceil(1 << 20);
        let wanted = u32::try_from(mebibytes).unwrap_or(u32::MAX).clamp(1, self.config.in_flight_mib);
        let waiting = Arc::clone(&self.mebibytes).acquire_many_owned(wanted);
        match tokio::time::timeout(self.config.wait, waiting).await {
            Ok(Ok(room)) => Ok(room),
            Ok(Err(_)) | Err(_) => {
                let detail = "too many large requests are under way right now; nothing was changed";
                Err(Problem::new(Code::Unavailable, detail).retry_after(5))
            }
        }
    }
}

/// A large JSON body of items, and the room it takes for as long as this lives.
#[derive(Debug)]
pub(crate) struct Large<T> {
    pub(crate) body: T,
    pub(crate) room: OwnedSemaphorePermit,
}

impl<T: DeserializeOwned> FromRequest<App> for Large<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let length = request.headers().get(header::CONTENT_LENGTH);
        let bytes = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let room = app.large_bodies.take(bytes).await?;
        let reading = JsonOfItems::from_request(request, app);
        let read = tokio::time::timeout(app.large_bodies.config.arrive, reading).await;
        let JsonOfItems(body) = read.map_err(|_elapsed| {
            Problem::new(Code::MalformedJson, "the body did not arrive in time; nothing was changed")
        })??;
        Ok(Self { body, room })
    }
}

impl<T: JsonSchema> OperationInput for Large<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        JsonOfItems::<T>::operation_input(ctx, operation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_is_room_for_so_many_bytes_and_then_a_refusal() {
        let wait = Duration::from_millis(10);
        let room = Room::new(&LargeBodies { in_flight_mib: 4, wait, arrive: wait });
        let small = room.take(Some(10)).await.unwrap();
        let larger = room.take(Some((2 << 20) + 1)).await.unwrap();
        assert_eq!(room.take(Some(1)).await.unwrap_err().code(), Code::Unavailable);
        drop(small);
        drop(larger);
        assert!(room.take(None).await.is_ok(), "one of any size fits alone");
    }
}
