//! The guarded client against real servers on this machine: one program, so that all parts share what they stand on.
#![expect(clippy::unwrap_used, reason = "a test's own plumbing may fail loudly")]

mod bounds;
mod calls;
mod guard;
mod support;
