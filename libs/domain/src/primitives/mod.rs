//! Types that every area uses.

pub mod base62;
pub mod cursor;
pub mod field_error;
pub mod list_budget;
pub mod timestamps;
pub mod transient;
pub mod url_escapes;
