//! Inserts analytics sites. Several operations create them, each in a transaction of its own.

use contract::Change;
use domain::scopes::Resource;
use domain::sites;
use store::Conn;
use store::sites::{NewSite, Site};
use uuid::Uuid;
use web::{Code, Problem};

use super::views::find;
use crate::App;
use crate::call::Call;

/// The settings of an analytics site to create.
#[derive(Debug)]
pub(in crate::api) struct AnalyticsSiteInput {
    pub(in crate::api) name: String,
    pub(in crate::api) domain: Option<String>,
    /// The subdomain with pages to count.
    pub(in crate::api) subdomain_id: Option<Uuid>,
    pub(in crate::api) folder_id: Option<Uuid>,
    pub(in crate::api) hash_routing: bool,
}

/// Checks that the caller may see the visits of all pages of a subdomain. A key restricted to some pages may not.
pub(in crate::api) async fn check_subdomain<S>(
    call: &Call<S>,
    conn: &mut Conn,
    subdomain_id: Uuid,
) -> Result<(), Problem> {
    call.check_id(conn, Resource::Subdomains, subdomain_id).await?;
    call.check_whole_account(Resource::Subdomains)?;
    call.check_new(Resource::Pages)
}

impl AnalyticsSiteInput {
    /// Inserts a site with valid settings, which the caller must have counted. Returns it, and the change to publish.
    pub(in crate::api) async fn insert<S>(
        self,
        call: &Call<S>,
        app: &App,
        tx: &mut store::Tx,
    ) -> Result<(Site, Change), Problem> {
        let new = NewSite {
            id: app.rng.uuid_v7(call.now),
            site_token: sites::token(&app.rng.bytes()),
            name: self.name.trim().to_owned(),
            domain: self.domain.as_deref().map(sites::normal_domain),
            subdomain_id: self.subdomain_id,
            folder_id: self.folder_id,
            hash_routing: self.hash_routing,
            created_at: call.now,
        };
        if !store::sites::insert_site(tx, call.account_id, &new).await? {
            return Err(Problem::new(Code::Conflict, "this subdomain already has an analytics site"));
        }
        let site = find(call, tx, new.id).await?;
        Ok((site, Change::AnalyticsSite { site_token: new.site_token, subdomain_id: new.subdomain_id }))
    }
}
