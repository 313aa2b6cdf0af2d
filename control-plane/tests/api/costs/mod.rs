//! What one account or one address can cost the others: bytes of lists, large bodies, calls under way, and what is stored.

mod bodies;
mod bounds;
mod calls;
mod headers;
mod lists;
