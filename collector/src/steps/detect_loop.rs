//! Drops events of a chain of deliveries that calls itself.

use domain::depth;
use domain::tracking::Dropped;

use crate::incoming_event::IncomingEvent;

/// A tracker sends no depth; deliveries of webhooks do.
pub(crate) fn detect_loop(event: &IncomingEvent) -> Result<(), Dropped> {
    if depth::is_loop(event.depth) { Err(Dropped::Loop) } else { Ok(()) }
}
