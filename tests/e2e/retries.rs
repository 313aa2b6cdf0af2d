//! A receiver that was unavailable gets every delivery once it recovers, under the original ids.

use anyhow::{Result, ensure};
use harness::{Receiver, System};

use crate::PROGRAM;
use crate::story::Story;

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_refused_twice_succeeds_on_the_third_attempt() -> Result<()> {
    let schedule = r#"webhooks.retry_schedule=["0s", "300ms", "300ms", "1h"]"#;
    let system = System::start(PROGRAM, false, &[schedule]).await?;
    let mut story = Story::begin(&system).await?;
    story.receiver = Receiver::listen(2).await?;
    story.a_trial_gives_a_working_key().await?;
    story.a_form_validates_submissions().await?;
    story.a_webhook_is_created().await?;
    let submission = story.a_submission_is_accepted().await?;
    let delivery = story.it_is_stored_and_delivered(&submission).await?;
    let log = story.delivery_log().await?;
    ensure!(log["deliveries"][0]["id"] == delivery.header("webhook-id"), "{log}");
    ensure!(log["deliveries"][0]["attempts"] == 3, "{log}");
    ensure!(story.receiver.received().len() == 1);
    Ok(())
}
