//! Pages: content that an account publishes and the edge serves.

mod delete;
mod paths;
mod read;
mod schedule;
mod upsert;
mod write;

pub use delete::delete_page;
pub use paths::{PagePath, update_paths};
pub use read::{
    Document, Page, PageFilter, PageSummary, SlugMatch, find_id_by_slug, find_location, find_page,
    find_short_address, list_by_slugs, list_pages,
};
pub use schedule::{find_next_due, publish_due};
pub use upsert::{PageUpsert, UpsertOutcome, compare_pages, upsert_page, upsert_pages};
pub use write::{NewPage, PageChange, insert_page, lock_page, update_page};
