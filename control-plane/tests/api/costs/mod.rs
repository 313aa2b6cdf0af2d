//! What one account or one address can cost the others: bytes of lists, calls under way, and what is stored.

mod bounds;
mod calls;
mod headers;
mod lists;
