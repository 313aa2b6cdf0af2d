//! Uploads: the signed URLs that the edge verifies ([`Uploads`]), and files that forms of the console carry ([`receive`]).

mod receive;
mod signed_urls;

pub(crate) use receive::receive;
pub(crate) use signed_urls::UploadHeaders;
pub use signed_urls::Uploads;
