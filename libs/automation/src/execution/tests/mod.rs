//! Tests of the walk, with a journal and effects in memory.

mod flow;
mod kills;
mod loops;
mod retries;
mod simulation;
mod waits;
