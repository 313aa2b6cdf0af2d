//! Analytics sites: their settings, their owners, and the token that their events carry.

mod read;
mod update;

pub use read::{
    NewSite, Site, SiteOwner, TrackerTag, find_owner_by_token, find_site, find_site_of_subdomain,
    insert_site, list_existing, list_owners, list_sites,
};
pub use update::{SiteChange, delete_site, update_site};
