//! A message bus over Redis publish/subscribe. It stores nothing: a process without a connection misses messages, and
//! its subscriber is notified of that.

use std::marker::PhantomData;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use redis::aio::{ConnectionManager, ConnectionManagerConfig, PubSub};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// Timeout of a publish. A message that must arrive is in the outbox as well.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection without messages is pinged at this interval and must respond within [`RESPONSE_TIMEOUT`].
const PING_INTERVAL: Duration = Duration::from_secs(5);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Backoff between attempts to connect: doubles from the first to the last.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// A channel of messages of one type. Clones share its connection.
pub struct Bus<M> {
    client: redis::Client,
    publisher: ConnectionManager,
    channel: String,
    messages: PhantomData<fn(M) -> M>,
}

/// An event of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusEvent<M> {
    /// A published message.
    Message(M),
    /// The subscription began or was re-established, or a message was unreadable. Earlier messages may be lost.
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
    /// Opens the channel `<prefix>:bus`. Redis may be down: the connection is made on first use. Must be called within
    /// a Tokio runtime. Fails only if the URL is invalid.
    pub fn connect(url: &str, prefix: &str) -> Result<Self, Error> {
        let client = redis::Client::open(url)?;
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(PUBLISH_TIMEOUT))
            .set_connection_timeout(Some(PUBLISH_TIMEOUT))
            .set_number_of_retries(1);
        let publisher = ConnectionManager::new_lazy_with_config(client.clone(), config)?;
        Ok(Self { client, publisher, channel: format!("{prefix}:bus"), messages: PhantomData })
    }

    /// Publishes a message to all current subscribers. After a timeout, it may have been published all the same.
    pub async fn publish(&self, message: &M) -> Result<(), Error> {
        let payload = serde_json::to_string(message)?;
        let mut publisher = self.publisher.clone();
        let publish = redis::cmd("PUBLISH").arg(&self.channel).arg(payload).to_owned();
        let receivers =
            tokio::time::timeout(PUBLISH_TIMEOUT, publish.query_async::<u64>(&mut publisher)).await;
        receivers.map_err(|_elapsed| Error::Timeout)??;
        Ok(())
    }

    /// Returns an endless stream of events. It reconnects by itself and yields [`BusEvent::Lagged`] before the first
    /// message of each connection. It receives messages only while it is polled.
    pub fn subscribe(&self) -> impl Stream<Item = BusEvent<M>> + Send + use<M> {
        let subscriber =
            Subscriber { client: self.client.clone(), channel: self.channel.clone(), connection: None };
        futures::stream::unfold(subscriber, async |mut subscriber| {
            let event = subscriber.next().await;
            Some((event, subscriber))
        })
    }
}

struct Subscriber {
    client: redis::Client,
    channel: String,
    connection: Option<PubSub>,
}

impl Subscriber {
    async fn next<M: DeserializeOwned>(&mut self) -> BusEvent<M> {
        let Some(connection) = &mut self.connection else {
            self.connection = Some(self.connect().await);
            return BusEvent::Lagged;
        };
        let Some(payload) = receive(connection).await else {
            tracing::warn!(
                channel = self.channel,
                "lost the connection of the invalidation bus; reconnecting"
            );
            self.connection = Some(self.connect().await);
            return BusEvent::Lagged;
        };
        serde_json::from_slice(&payload).map(BusEvent::Message).unwrap_or_else(|error| {
            // A message of another version may concern any cached value.
            tracing::warn!(%error, "ignored a bus message that this version can't read");
            BusEvent::Lagged
        })
    }

    async fn connect(&self) -> PubSub {
        let mut backoff = MIN_BACKOFF;
        loop {
            let attempt = async {
                let mut connection = self.client.get_async_pubsub().await?;
                connection.subscribe(&self.channel).await?;
                redis::RedisResult::Ok(connection)
            };
            match tokio::time::timeout(RESPONSE_TIMEOUT, attempt).await {
                Ok(Ok(connection)) => return connection,
                Ok(Err(error)) => tracing::debug!(%error, "can't connect to the invalidation bus"),
                Err(_elapsed) => tracing::debug!("connecting to the invalidation bus timed out"),
            }
            pause(backoff).await;
            backoff = MAX_BACKOFF.min(backoff * 2);
        }
    }
}

/// Returns the next message, or `None` if the connection is closed or no longer responds to pings.
async fn receive(connection: &mut PubSub) -> Option<Vec<u8>> {
    loop {
        let message = tokio::time::timeout(PING_INTERVAL, connection.on_message().next()).await;
        if let Ok(message) = message {
            return Some(message?.get_payload_bytes().to_vec());
        }
        let pong = tokio::time::timeout(RESPONSE_TIMEOUT, connection.ping::<redis::Value>()).await;
        if !matches!(pong, Ok(Ok(_))) {
            return None;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the backoff before Redis is tried again")]
async fn pause(pause: Duration) {
    tokio::time::sleep(pause).await;
}
