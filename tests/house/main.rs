//! The rules of the house, executed: who may lean on whom, who knows which library, how files look.

#![expect(clippy::expect_used, reason = "a rule that can't be looked at has failed")]

mod floors;
mod tidy;
