//! Expressions: rhai's expression mode with our own functions only.
//!
//! rhai's packages stay out: `sleep` blocks a thread under every limit, and `eval` evaluates data. An expression is
//! compiled once; what is evaluated is always the stored definition, never a value.

pub(crate) mod budget;
mod engine;
mod error;
mod expression;
mod functions;
mod limits;
mod paths;
mod rewrite;
mod truth;
pub(crate) mod values;
mod variables;

pub use budget::{last_operations, work};
pub use error::ExpressionError;
pub use expression::Expression;
pub use functions::{FUNCTIONS, Function};
pub use limits::{
    DEPTH_MAX, ELEMENTS_MAX, EXPRESSION_BYTES_MAX, OPERATIONS_MAX, TEXT_BYTES_MAX, VALUE_DEPTH_MAX,
};
pub use paths::Reference;
pub use truth::is_true;
pub use variables::Variables;

pub(crate) use error::shorten;
pub(crate) use functions::for_url;

#[cfg(test)]
mod tests;
