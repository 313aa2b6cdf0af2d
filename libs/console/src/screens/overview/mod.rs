//! The overview: what needs the viewer, today's visitors, the newest submissions and the usage.

mod needs;
mod show;

pub(crate) use show::show;
