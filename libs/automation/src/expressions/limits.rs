//! Limits of expressions.

/// Maximum length of one expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 8 << 10;
/// Maximum number of operations of one evaluation.
pub const OPERATIONS_MAX: u64 = 20_000;
/// Maximum length of a text during an evaluation, in bytes.
pub const TEXT_BYTES_MAX: usize = 256 << 10;
/// Maximum number of elements of a list or object during an evaluation, including nested ones.
pub const ELEMENTS_MAX: usize = 10_000;
/// Maximum nesting of an expression.
pub const DEPTH_MAX: usize = 32;
/// Maximum nesting of a value of a run. JSON is read back only up to 128 levels, and the log wraps values in some.
pub const VALUE_DEPTH_MAX: usize = 100;
