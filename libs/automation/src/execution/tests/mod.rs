//! Tests of the walk, with a journal and effects in memory.

mod attacks;
mod flow;
mod kills;
mod limits;
mod loops;
mod retries;
mod simulation;
mod waits;
