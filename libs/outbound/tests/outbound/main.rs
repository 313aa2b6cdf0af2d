//! Tests of the guarded client against real servers on this machine, in one program with shared helpers.
#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

mod bounds;
mod calls;
mod guard;
mod support;
