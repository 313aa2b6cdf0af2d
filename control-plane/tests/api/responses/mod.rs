//! What clients and people read in responses: messages about wrong input, limits in words, the order and the rows of lists, and
//! the headers of HTTP.

mod http_headers;
mod list_order;
mod messages;
