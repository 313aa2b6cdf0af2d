//! Analytics sites: whose visits are counted, and under which token.

mod read;
mod update;

pub use read::{
    NewSite, Site, SiteOwner, TrackerTag, find_owner_by_token, find_site, find_tag, insert_site,
    list_existing, list_owners, list_sites,
};
pub use update::{SiteChange, delete_site, update_site};
