//! Messages to every process that listens, over Redis publish/subscribe. It keeps nothing: who wasn't connected
//! has missed what was said, and is told so.

use std::marker::PhantomData;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use redis::aio::{ConnectionManager, ConnectionManagerConfig, PubSub};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// A publish that takes longer is given up: the caller has the outbox for what must arrive.
const PUBLISH_WITHIN: Duration = Duration::from_secs(2);

/// A silent connection is asked this often whether it still lives, and must answer within [`ANSWER_WITHIN`].
const ASK_EVERY: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// Pauses between attempts to connect: doubled from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// A channel of messages of one type. Clones share its connection.
pub struct Bus<M> {
    client: redis::Client,
    publisher: ConnectionManager,
    channel: String,
    messages: PhantomData<fn(M) -> M>,
}

/// What a subscriber hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusEvent<M> {
    /// Somebody published this.
    Message(M),
    /// The subscription begins, here or anew: what was said before is gone.
    Lagged,
}

impl<M> Clone for Bus<M> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            publisher: self.publisher.clone(),
            channel: self.channel.clone(),
            messages: PhantomData,
        }
    }
}

impl<M: Serialize + DeserializeOwned> Bus<M> {
    /// Opens the channel `<prefix>:bus`. Redis may be down: it is connected to when it is there. Must be called
    /// within a Tokio runtime.
    ///
    /// # Errors
    /// Only if the URL can't be understood.
    pub fn connect(url: &str, prefix: &str) -> Result<Self, Error> {
        let client = redis::Client::open(url)?;
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(PUBLISH_WITHIN))
            .set_connection_timeout(Some(PUBLISH_WITHIN))
            .set_number_of_retries(1);
        let publisher = ConnectionManager::new_lazy_with_config(client.clone(), config)?;
        Ok(Self { client, publisher, channel: format!("{prefix}:bus"), messages: PhantomData })
    }

    /// Says something to everybody who listens now.
    ///
    /// # Errors
    /// If Redis can't be reached within two seconds; it may have been said all the same.
    pub async fn publish(&self, message: &M) -> Result<(), Error> {
        let written = serde_json::to_string(message)?;
        let mut publisher = self.publisher.clone();
        let publish = redis::cmd("PUBLISH").arg(&self.channel).arg(written).to_owned();
        let heard = tokio::time::timeout(PUBLISH_WITHIN, publish.query_async::<u64>(&mut publisher)).await;
        heard.map_err(|_elapsed| Error::Timeout)??;
        Ok(())
    }

    /// Listens for as long as the stream is polled. It never ends: it connects again by itself, each time saying
    /// [`BusEvent::Lagged`] before the first message.
    pub fn subscribe(&self) -> impl Stream<Item = BusEvent<M>> + Send + use<M> {
        let ear = Ear { client: self.client.clone(), channel: self.channel.clone(), line: None };
        futures::stream::unfold(ear, async |mut ear| {
            let event = ear.next().await;
            Some((event, ear))
        })
    }
}

struct Ear {
    client: redis::Client,
    channel: String,
    line: Option<PubSub>,
}

impl Ear {
    async fn next<M: DeserializeOwned>(&mut self) -> BusEvent<M> {
        let Some(line) = &mut self.line else {
            self.line = Some(self.connect().await);
            return BusEvent::Lagged;
        };
        let Some(written) = hear(line).await else {
            tracing::warn!(channel = self.channel, "the invalidation bus is cut, connecting again");
            self.line = Some(self.connect().await);
            return BusEvent::Lagged;
        };
        serde_json::from_slice(&written).map(BusEvent::Message).unwrap_or_else(|error| {
            // Of another version: it may concern anything here.
            tracing::warn!(%error, "a message this version can't read");
            BusEvent::Lagged
        })
    }

    async fn connect(&self) -> PubSub {
        let mut wait = FIRST_PAUSE;
        loop {
            let attempt = async {
                let mut line = self.client.get_async_pubsub().await?;
                line.subscribe(&self.channel).await?;
                redis::RedisResult::Ok(line)
            };
            match tokio::time::timeout(ANSWER_WITHIN, attempt).await {
                Ok(Ok(line)) => return line,
                Ok(Err(error)) => tracing::debug!(%error, "the invalidation bus can't be reached"),
                Err(_elapsed) => tracing::debug!("the invalidation bus gives no answer"),
            }
            pause(wait).await;
            wait = LAST_PAUSE.min(wait * 2);
        }
    }
}

/// The next message; `None` when the line is dead, also if nobody ever said so.
async fn hear(line: &mut PubSub) -> Option<Vec<u8>> {
    loop {
        let heard = tokio::time::timeout(ASK_EVERY, line.on_message().next()).await;
        if let Ok(message) = heard {
            return Some(message?.get_payload_bytes().to_vec());
        }
        let answer = tokio::time::timeout(ANSWER_WITHIN, line.ping::<redis::Value>()).await;
        if !matches!(answer, Ok(Ok(_))) {
            return None;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the pause before Redis is tried again")]
async fn pause(pause: Duration) {
    tokio::time::sleep(pause).await;
}
