//! The rules of the house, executed: who may lean on whom, who knows which library, how files look.

mod floors;
mod tidy;
