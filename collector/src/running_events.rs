//! Events that are being processed. Each runs in a task of its own: visitors often leave the page that sent it, and the
//! server drops what it computes for a client that has disconnected.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Upper bound on such tasks: more than events may wait for their predecessors. Beyond it an event ends with its client.
const MAX_RUNNING: u32 = 20_000;

/// The events that are being processed. Clones share them.
#[derive(Clone)]
pub(crate) struct RunningEvents {
    /// One permit per task.
    free: Arc<Semaphore>,
    max: u32,
}

impl RunningEvents {
    pub(crate) fn new() -> Self {
        Self::with_max(MAX_RUNNING)
    }

    fn with_max(max: u32) -> Self {
        Self { free: Arc::new(Semaphore::new(max as usize)), max }
    }

    /// Processes an event. It is processed to its end also if the caller is dropped.
    pub(crate) async fn run(&self, event: impl Future<Output = ()> + Send + 'static) {
        let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else { return event.await };
        let task = tokio::spawn(async move {
            event.await;
            drop(permit);
        });
        // A panic has been logged, and the client must not see it.
        let _panicked = task.await;
    }

    /// Waits until no task runs.
    pub(crate) async fn finish(&self) {
        // An error means that the semaphore was closed, which nothing does.
        let _all = self.free.acquire_many(self.max).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures::poll;
    use tokio::sync::oneshot;

    use super::*;

    struct Event {
        go_on: oneshot::Sender<()>,
        ended: Arc<AtomicBool>,
    }

    /// Returns an event that waits, and the future that processes it.
    fn waiting() -> (Event, impl Future<Output = ()> + Send + 'static) {
        let (go_on, may_go_on) = oneshot::channel();
        let ended = Arc::new(AtomicBool::new(false));
        let event = Event { go_on, ended: Arc::clone(&ended) };
        (event, async move {
            may_go_on.await.unwrap();
            ended.store(true, Ordering::Relaxed);
        })
    }

    #[tokio::test]
    async fn a_disconnected_client_does_not_cancel_its_event_and_a_shutdown_waits_for_it() {
        let running = RunningEvents::new();
        let (event, process) = waiting();
        let mut request = Box::pin(running.run(process));
        assert!(poll!(&mut request).is_pending());
        drop(request);
        let mut shutdown = Box::pin(running.finish());
        assert!(poll!(&mut shutdown).is_pending());
        event.go_on.send(()).unwrap();
        shutdown.await;
        assert!(event.ended.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn beyond_the_bound_an_event_ends_with_its_client() {
        let running = RunningEvents::with_max(1);
        let ((first, process), (second, process_second)) = (waiting(), waiting());
        let (mut request, mut beyond) =
            (Box::pin(running.run(process)), Box::pin(running.run(process_second)));
        assert!(poll!(&mut request).is_pending() && poll!(&mut beyond).is_pending());
        drop(beyond);
        assert!(second.go_on.is_closed());
        first.go_on.send(()).unwrap();
        request.await;
        running.run(async {}).await;
        running.finish().await;
    }

    #[tokio::test]
    async fn a_panic_ends_one_event_only() {
        let running = RunningEvents::with_max(1);
        running.run(async { panic!("a defect") }).await;
        running.finish().await;
    }
}
