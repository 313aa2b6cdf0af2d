//! What one account or one address can cost the others.

mod calls;
