//! A receiver that is down for a while gets everything once it is back, under the ids it would have seen.

use anyhow::{Result, ensure};
use harness::{Receiver, System};

use crate::PROGRAM;
use crate::story::Story;

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_was_refused_twice_arrives_the_third_time() -> Result<()> {
    let schedule = r#"webhooks.schedule=["0s", "300ms", "300ms", "1h"]"#;
    let system = System::start(PROGRAM, false, &[schedule]).await?;
    let mut story = Story::begin(&system).await?;
    story.receiver = Receiver::listen(2).await?;
    story.a_trial_gives_a_working_key().await?;
    story.a_form_knows_right_from_wrong().await?;
    story.a_webhook_listens().await?;
    let submission = story.an_answer_is_taken().await?;
    let delivery = story.it_is_stored_and_delivered(&submission).await?;
    let log = story.delivery_log().await?;
    ensure!(log["deliveries"][0]["id"] == delivery.header("webhook-id"), "{log}");
    ensure!(log["deliveries"][0]["attempts"] == 3, "{log}");
    ensure!(story.receiver.taken().len() == 1);
    Ok(())
}
