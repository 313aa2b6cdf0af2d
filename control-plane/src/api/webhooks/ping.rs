//! Tests a webhook: a signed `webhook.ping` takes the path of every delivery, once, and the response shows how the
//! receiver reacted.

use std::time::Duration;

use axum::extract::State;
use contract::Signal;
use domain::webhooks::PING;
use serde_json::json;
use service::admission::Permit;
use store::deliveries::Delivery;
use tokio::time::Instant;
use uuid::Uuid;
use web::{Code, Path, Problem, Reply};

use super::authorization::{check_deliveries, check_is_active};
use super::deliveries::{DeliveryView, view};
use crate::App;
use crate::call::{Call, scope};

/// How often to poll for the receiver's response.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

const MESSAGE: &str = "This is a test. Submissions will arrive like this.";

pub(super) async fn test(
    call: Call<scope::DeliveriesCreate>,
    State(app): State<App>,
    Path(webhook_id): Path<Uuid>,
) -> Result<Reply<DeliveryView>, Problem> {
    let _permit = acquire(&app, call.account_id).await?;
    let id = app.rng.uuid_v7(call.now);
    let mut tx = store::begin(&app.db).await?;
    check_is_active(&check_deliveries(&call, &mut tx, webhook_id).await?)?;
    let payload = json!({
        "type": PING,
        "timestamp": call.now,
        "data": {"webhookId": webhook_id, "message": MESSAGE},
    });
    let traceparent = service::telemetry::traceparent();
    let (account_id, now) = (call.account_id, call.now);
    store::deliveries::insert_ping(
        &mut tx,
        account_id,
        webhook_id,
        id,
        &payload,
        traceparent.as_deref(),
        now,
    )
    .await?;
    call.commit_and_send(&app, tx, vec![Signal::DeliveriesDue { webhook_ids: vec![webhook_id] }]).await?;
    let delivery = wait(&app, &call, id).await?;
    Ok(call.reply(view(delivery)))
}

/// Returns a permit of the account, or 429 at once if it has all of its own: a test that waited would hold one of the
/// account's calls.
async fn acquire(app: &App, account_id: Uuid) -> Result<Permit<Uuid>, Problem> {
    app.webhook_tests.acquire_without_key_queue(account_id).await.map_err(|_rejected| {
        let max = app.webhooks.max_concurrent_tests;
        let detail = format!("an account can run at most {max} webhook tests at once");
        Problem::new(Code::RateLimited, detail).retry_after(app.webhooks.test_timeout.as_secs().max(1))
    })
}

/// Returns the delivery once it has ended, or as it is after the timeout.
async fn wait<S>(app: &App, call: &Call<S>, id: Uuid) -> Result<Delivery, Problem> {
    let deadline = Instant::now() + app.webhooks.test_timeout;
    let mut ticks = service::ticks(POLL_INTERVAL);
    loop {
        ticks.tick().await;
        let mut conn = store::acquire(&app.db).await?;
        let found = store::deliveries::find_delivery(&mut conn, call.account_id, id).await?;
        drop(conn);
        let delivery = found.ok_or_else(|| Problem::not_found("delivery"))?;
        if delivery.state != "pending" || Instant::now() >= deadline {
            return Ok(delivery);
        }
    }
}
