//! Deliveries: one event for one webhook, from the submission's commit to the receiver's 2xx.
//!
//! The rows are the only record of what is to be sent and when; job-runners claim due ones ([`claim`]).

mod attempt_log;
mod claims;
mod completions;
mod events;
mod labels;
mod log;
mod manual_retry;
mod messages;
mod operator_retry;

pub use attempt_log::{LoggedAttempt, find_last_attempt, list_attempts};
pub use claims::{Attempt, ClaimLimit, Lease, claim, list_due, release_attempts};
pub use completions::{AttemptOutcome, SentRequest, complete_attempts};
pub(crate) use events::try_lock_listeners;
pub use events::{Event, insert_deliveries, lock_listeners};
pub use labels::read_field_labels;
pub use log::{Delivery, DeliveryFilter, find_delivery, list_deliveries};
pub use manual_retry::{cancel_pending, insert_ping, retry_delivery, retry_failed};
pub use messages::{Message, MessageOutcome, insert_message};
pub use operator_retry::{FailedDeliveries, FailedFilter, count_failed, retry_all_failed};
