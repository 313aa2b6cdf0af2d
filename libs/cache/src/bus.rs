//! A message bus over Redis publish/subscribe. It stores nothing: a process without a connection misses messages, and
//! its subscriber is notified of that.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt as _};
use redis::aio::PubSub;
use redis_connection::Error::Timeout;
use redis_connection::{Connection, Primary, Reconnects, Server};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// Timeout of a publish. A message that must arrive is in the outbox as well.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a request waits for it.
const MAX_REQUEST_WAIT: Duration = Duration::from_millis(200);
/// After a timeout, further messages of requests are refused at once for this long, so that not every request waits.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which unreadable messages are reported. Each report makes every subscriber reload all that it caches, and
/// during an upgrade a newer release may publish an unknown kind all the time.
const UNREADABLE_INTERVAL: Duration = Duration::from_secs(10);

/// A connection without messages is pinged at this interval and must respond within [`PONG_TIMEOUT`]. Together they bound
/// how long a connection that died without a reset goes unnoticed.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const PONG_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of an attempt to connect, which may include a question to Sentinels.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Backoff between attempts to connect: doubles from the first to the last.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// Returns the name of the channel in Redis. Its subscribers are the running services of an installation.
pub fn bus_channel(prefix: &str) -> String {
    format!("{prefix}:bus")
}

/// A channel of messages of one type. Clones share its connection.
pub struct Bus<M> {
    primary: Primary,
    publisher: Connection,
    retry_at: Arc<Mutex<Option<Instant>>>,
    channel: String,
    messages: PhantomData<fn(M) -> M>,
}

/// An event of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusEvent<M> {
    /// A published message.
    Message(M),
    /// The subscription began or was re-established, or messages were unreadable. Earlier messages may be lost.
    Lagged,
    /// The connection is lost. Messages are missed until the next [`Self::Lagged`].
    Disconnected,
}

impl<M> Clone for Bus<M> {
    fn clone(&self) -> Self {
        Self {
            primary: self.primary.clone(),
            publisher: self.publisher.clone(),
            retry_at: Arc::clone(&self.retry_at),
            channel: self.channel.clone(),
            messages: PhantomData,
        }
    }
}

impl<M: Serialize + DeserializeOwned> Bus<M> {
    /// Opens the channel `<prefix>:bus`. Redis may be down: the connection is made on first use. Must be called within
    /// a Tokio runtime. Fails only if a setting is invalid.
    pub fn connect(server: impl Into<Server>, prefix: &str) -> Result<Self, Error> {
        let primary = Primary::new(server)?;
        let publisher = Connection::new(primary.clone(), PUBLISH_TIMEOUT, 1);
        let channel = bus_channel(prefix);
        Ok(Self { primary, publisher, retry_at: Arc::default(), channel, messages: PhantomData })
    }

    /// Returns this channel with another type of messages, such as one with an additional field that readers of the first type
    /// ignore.
    #[must_use]
    pub fn with_messages<N>(&self) -> Bus<N> {
        Bus {
            primary: self.primary.clone(),
            publisher: self.publisher.clone(),
            retry_at: Arc::clone(&self.retry_at),
            channel: self.channel.clone(),
            messages: PhantomData,
        }
    }

    /// Publishes a message to all current subscribers. After a timeout of two seconds, it may have been published all the
    /// same.
    pub async fn publish(&self, message: &M) -> Result<(), Error> {
        self.publish_all(std::slice::from_ref(message)).await
    }

    /// Publishes messages in this order, as [`Self::publish`] does, in one call.
    pub async fn publish_all(&self, messages: &[M]) -> Result<(), Error> {
        if messages.is_empty() {
            return Ok(());
        }
        let messages = self.pipeline(messages)?;
        Ok(self.publisher.call(async |redis| messages.query_async::<()>(redis).await).await?)
    }

    /// Publishes messages in this order for a request, which waits for at most 200 ms. After a timeout, they may be
    /// published all the same.
    pub async fn publish_for_request(&self, messages: &[M]) -> Result<(), Error> {
        let retry_at = *self.retry_at.lock().unwrap_or_else(PoisonError::into_inner);
        if retry_at.is_some_and(|retry_at| Instant::now() < retry_at) {
            return Err(Timeout.into());
        }
        let messages = self.pipeline(messages)?;
        let (publisher, retry_at) = (self.publisher.clone(), Arc::clone(&self.retry_at));
        // Goes on if the request stops waiting: a message that is a little late is better than one that the relay sends.
        let publishing = tokio::spawn(async move {
            let published = publisher.call(async |redis| messages.query_async::<()>(redis).await).await;
            let is_silent = matches!(published, Err(Timeout));
            let until = is_silent.then(|| Instant::now() + RETRY_INTERVAL);
            *retry_at.lock().unwrap_or_else(PoisonError::into_inner) = until;
            published
        });
        match tokio::time::timeout(MAX_REQUEST_WAIT, publishing).await {
            Ok(Ok(published)) => Ok(published?),
            Ok(Err(_)) | Err(_) => Err(Timeout.into()),
        }
    }

    fn pipeline(&self, messages: &[M]) -> Result<redis::Pipeline, Error> {
        let mut pipeline = redis::pipe();
        for message in messages {
            pipeline.publish(&self.channel, serde_json::to_string(message)?).ignore();
        }
        Ok(pipeline)
    }

    /// Returns an endless stream of events. It reconnects by itself and yields [`BusEvent::Lagged`] before the first
    /// message of each connection, and [`BusEvent::Disconnected`] when a connection is lost. It receives messages only
    /// while it is polled.
    ///
    /// Messages of another version that this one can't read may concern any cached value, so they count as lost; once in
    /// ten seconds at most, because a newer release may publish many.
    pub fn subscribe(&self) -> impl Stream<Item = BusEvent<M>> + Send + use<M> {
        let subscriber = Subscriber {
            primary: self.primary.clone(),
            channel: self.channel.clone(),
            connection: None,
            reconnects: Reconnects::default(),
        };
        let received = futures::stream::unfold(subscriber, async |mut subscriber| {
            let event = subscriber.next().await;
            Some((event, subscriber))
        });
        let merged = UnreadableMerged { received: Box::pin(received), reported: None, due: None };
        futures::stream::unfold(merged, async |mut merged| {
            let event = merged.next().await?;
            Some((event, merged))
        })
    }
}

/// A subscription in which the unreadable messages of an interval are one [`BusEvent::Lagged`].
struct UnreadableMerged<S> {
    received: Pin<Box<S>>,
    /// When unreadable messages were last reported.
    reported: Option<tokio::time::Instant>,
    /// When further ones are reported.
    due: Option<tokio::time::Instant>,
}

impl<M, S: Stream<Item = Received<M>>> UnreadableMerged<S> {
    async fn next(&mut self) -> Option<BusEvent<M>> {
        loop {
            let due = self.due;
            let is_due = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = is_due => {
                    self.due = None;
                    self.reported = Some(tokio::time::Instant::now());
                    return Some(BusEvent::Lagged);
                }
                received = self.received.next() => match received? {
                    Received::Event(event) => return Some(event),
                    Received::Unreadable if self.due.is_none() => {
                        let now = tokio::time::Instant::now();
                        let next = self.reported.map(|reported| reported + UNREADABLE_INTERVAL);
                        self.due = next.filter(|next| *next > now);
                        if self.due.is_none() {
                            self.reported = Some(now);
                            return Some(BusEvent::Lagged);
                        }
                    }
                    Received::Unreadable => {}
                },
            }
        }
    }
}

enum Received<M> {
    Event(BusEvent<M>),
    /// A message of another version.
    Unreadable,
}

struct Subscriber {
    primary: Primary,
    channel: String,
    connection: Option<PubSub>,
    reconnects: Reconnects,
}

impl Subscriber {
    async fn next<M: DeserializeOwned>(&mut self) -> Received<M> {
        let Some(connection) = &mut self.connection else {
            self.connection = Some(self.connect().await);
            self.reconnects.record_answer();
            return Received::Event(BusEvent::Lagged);
        };
        let Some(payload) = receive(connection).await else {
            tracing::warn!(
                channel = self.channel,
                "lost the connection of the invalidation bus; reconnecting"
            );
            self.connection = None;
            self.reconnects.record_loss();
            return Received::Event(BusEvent::Disconnected);
        };
        match serde_json::from_slice(&payload) {
            Ok(message) => Received::Event(BusEvent::Message(message)),
            Err(error) => {
                tracing::debug!(%error, "received a bus message that this version can't read");
                Received::Unreadable
            }
        }
    }

    async fn connect(&self) -> PubSub {
        let mut backoff = MIN_BACKOFF;
        loop {
            let attempt = async {
                let mut connection = self.primary.client().await?.get_async_pubsub().await?;
                connection.subscribe(&self.channel).await?;
                redis::RedisResult::Ok(connection)
            };
            match tokio::time::timeout(CONNECT_TIMEOUT, attempt).await {
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
        let pong = tokio::time::timeout(PONG_TIMEOUT, connection.ping::<redis::Value>()).await;
        if !matches!(pong, Ok(Ok(_))) {
            return None;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the backoff before Redis is tried again")]
async fn pause(pause: Duration) {
    tokio::time::sleep(pause).await;
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn subscription(
        received: impl Stream<Item = Received<u32>>,
    ) -> UnreadableMerged<impl Stream<Item = Received<u32>>> {
        UnreadableMerged { received: Box::pin(received), reported: None, due: None }
    }

    /// A newer release may publish a kind of message very often, for as long as the upgrade takes.
    #[tokio::test(start_paused = true)]
    async fn many_unreadable_messages_are_one_lag_in_ten_seconds() {
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        let received =
            futures::stream::poll_fn(move |cx| ticks.poll_tick(cx).map(|_| Some(Received::Unreadable)));
        let mut events = subscription(received);
        let started = tokio::time::Instant::now();
        let mut seconds = Vec::new();
        for _ in 0..4 {
            assert_eq!(events.next().await, Some(BusEvent::Lagged));
            seconds.push(started.elapsed().as_secs());
        }
        assert_eq!(seconds, [0, 10, 20, 30]);
    }

    #[tokio::test(start_paused = true)]
    async fn readable_messages_do_not_wait_for_unreadable_ones() {
        let (forward, received) = tokio::sync::mpsc::unbounded_channel();
        let send = |message| assert!(forward.send(message).is_ok());
        let received =
            futures::stream::unfold(received, async |mut received| Some((received.recv().await?, received)));
        let mut events = subscription(received);
        let started = tokio::time::Instant::now();
        send(Received::Unreadable);
        assert_eq!(events.next().await, Some(BusEvent::Lagged), "the first one is reported at once");
        send(Received::Unreadable);
        send(Received::Event(BusEvent::Message(7)));
        send(Received::Event(BusEvent::Disconnected));
        send(Received::Event(BusEvent::Lagged));
        assert_eq!(events.next().await, Some(BusEvent::Message(7)));
        assert_eq!(events.next().await, Some(BusEvent::Disconnected));
        assert_eq!(events.next().await, Some(BusEvent::Lagged), "of the new connection");
        assert!(started.elapsed() < Duration::from_secs(1));
        assert_eq!(events.next().now_or_never(), None);
        assert_eq!(events.next().await, Some(BusEvent::Lagged), "of the unreadable message");
        assert_eq!(started.elapsed().as_secs(), 10);
    }
}
