//! Types that every area uses.

pub mod base62;
pub mod cursor;
pub mod field_error;
pub mod list_budget;
pub mod member_order;
pub mod parser_messages;
pub mod timestamps;
pub mod transient;
pub mod units;
pub mod url_escapes;
