//! Analytics: sites, and questions whose answers are checked against a slow count in memory.

mod asking;
mod expected;
mod life;
mod now;
mod refusals;
mod stand;
mod traffic;
mod truth;
