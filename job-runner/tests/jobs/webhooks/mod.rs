//! Webhook deliveries.

mod chats;
mod deliveries;
mod health;
mod load;
mod sent_requests;
