//! Checks a caller's restrictions. Resources of other accounts are 404. Resources of the same account outside the key's
//! folder or ids are 403, whether their ids come from the path, the query or the body.

use std::collections::{BTreeMap, BTreeSet};

use domain::restrictions::RestrictionError;
use domain::scopes::Resource;
use store::resources::ResourceFolder;
use store::subdomains::Subdomain;
use store::webhooks::Webhook;
use store::{Conn, ListFilter};
use uuid::Uuid;
use web::{Code, PaginationQuery, Problem};

use crate::call::Call;

impl<S> Call<S> {
    /// Checks that the caller may access a resource.
    pub async fn check_id(&self, conn: &mut Conn, kind: Resource, id: Uuid) -> Result<(), Problem> {
        self.check_ids(conn, kind, &[id]).await
    }

    /// Checks that the caller may access all of these resources.
    pub async fn check_ids(&self, conn: &mut Conn, kind: Resource, ids: &[Uuid]) -> Result<(), Problem> {
        let places = store::resources::list_resource_folders(conn, self.account_id, kind, ids).await?;
        if let ([_], [one]) = (ids, places.as_slice()) {
            self.activity.record_checked(kind, one.id, &one.name);
        }
        let folders: BTreeMap<Uuid, Option<Uuid>> =
            places.into_iter().map(|place| (place.id, place.folder_id)).collect();
        for id in ids {
            let folder_id = folders.get(id).ok_or_else(|| Problem::not_found(noun(kind)))?;
            self.restrictions().allows(kind, *id, *folder_id).map_err(|reason| forbidden(reason, kind))?;
        }
        Ok(())
    }

    /// Returns those of the resources that the caller may access.
    pub async fn list_allowed(
        &self,
        conn: &mut Conn,
        kind: Resource,
        ids: &[Uuid],
    ) -> Result<BTreeSet<Uuid>, Problem> {
        let places = store::resources::list_resource_folders(conn, self.account_id, kind, ids).await?;
        let covered =
            |place: &ResourceFolder| self.restrictions().allows(kind, place.id, place.folder_id).is_ok();
        Ok(places.into_iter().filter(covered).map(|place| place.id).collect())
    }

    /// Checks that the caller may access a resource that is already deleted and was in this folder.
    pub fn check_in_folder(&self, kind: Resource, id: Uuid, folder_id: Option<Uuid>) -> Result<(), Problem> {
        self.restrictions().allows(kind, id, folder_id).map_err(|reason| forbidden(reason, kind))
    }

    /// Checks that the caller may create a resource of this kind in the requested folder. Returns that folder, or by
    /// default the folder that the key is restricted to.
    pub async fn new_resource_folder(
        &self,
        conn: &mut Conn,
        kind: Resource,
        requested: Option<Uuid>,
    ) -> Result<Option<Uuid>, Problem> {
        self.check_new(kind)?;
        let Some(folder_id) = requested else { return Ok(self.restrictions().folder_id) };
        self.check_id(conn, Resource::Folders, folder_id).await?;
        Ok(Some(folder_id))
    }

    /// Returns the requested subdomain, by default the account's first. The caller must be allowed to access it.
    pub async fn subdomain(&self, conn: &mut Conn, requested: Option<Uuid>) -> Result<Subdomain, Problem> {
        let found = store::subdomains::find_subdomain(conn, self.account_id, requested).await?;
        let found = found.ok_or_else(|| Problem::not_found("subdomain"))?;
        let covered = self.restrictions().allows(Resource::Subdomains, found.id, None);
        covered.map_err(|reason| forbidden(reason, Resource::Subdomains))?;
        self.activity.record_checked(Resource::Subdomains, found.id, &found.name);
        Ok(found)
    }

    /// Checks that the caller may move resources into the requested folder, or out of all folders.
    pub async fn check_move(&self, conn: &mut Conn, requested: Option<Uuid>) -> Result<(), Problem> {
        match requested {
            Some(folder_id) => self.check_id(conn, Resource::Folders, folder_id).await,
            None => self.check_whole_account(Resource::Folders),
        }
    }

    /// Returns whether the caller may access every form that a webhook receives events of. Otherwise the webhook sends data of
    /// other forms, which the caller may neither see nor stop.
    pub async fn covers_forms_of(&self, conn: &mut Conn, webhook: &Webhook) -> Result<bool, Problem> {
        let restrictions = self.restrictions();
        if webhook.all_forms {
            return Ok(restrictions.folder_id.is_none() && restrictions.ids_of(Resource::Forms).is_none());
        }
        let allowed = self.list_allowed(conn, Resource::Forms, &webhook.form_ids).await?;
        Ok(webhook.form_ids.iter().all(|id| allowed.contains(id)))
    }

    /// Checks that the caller may create resources of this kind. A key restricted to ids may not.
    pub fn check_new(&self, kind: Resource) -> Result<(), Problem> {
        self.restrictions().allows_new(kind).map_err(|reason| forbidden(reason, kind))
    }

    /// Checks that the caller may access settings of the whole account. A key restricted to a folder may not.
    pub fn check_whole_account(&self, kind: Resource) -> Result<(), Problem> {
        self.restrictions().allows_account().map_err(|reason| forbidden(reason, kind))
    }

    /// Returns the filter of a list: the requested page of the resources that the caller may access.
    pub fn list_filter(&self, kind: Resource, pagination: &PaginationQuery) -> Result<ListFilter, Problem> {
        let (limit, after) = pagination.read()?;
        let ids = self.restrictions().ids_of(kind).map(|ids| ids.iter().copied().collect());
        let newest_first = pagination.is_newest_first();
        Ok(ListFilter { folder_id: self.restrictions().folder_id, ids, after, newest_first, limit })
    }

    /// Returns the filter of the newest resources that the caller may access.
    pub fn newest_filter(&self, kind: Resource, limit: i64) -> ListFilter {
        let ids = self.restrictions().ids_of(kind).map(|ids| ids.iter().copied().collect());
        let folder_id = self.restrictions().folder_id;
        ListFilter { folder_id, ids, after: None, newest_first: true, limit }
    }

    /// As [`Call::list_filter`], for a list that the request may limit to one folder.
    pub async fn list_filter_in(
        &self,
        conn: &mut Conn,
        kind: Resource,
        pagination: &PaginationQuery,
        folder_id: Option<Uuid>,
    ) -> Result<ListFilter, Problem> {
        let filter = self.list_filter(kind, pagination)?;
        let Some(folder_id) = folder_id else { return Ok(filter) };
        self.check_id(conn, Resource::Folders, folder_id).await?;
        Ok(ListFilter { folder_id: Some(folder_id), ..filter })
    }
}

fn forbidden(reason: RestrictionError, kind: Resource) -> Problem {
    let noun = noun(kind);
    match reason {
        RestrictionError::Folder => Problem::new(
            Code::FolderForbidden,
            format!("this API key is restricted to one folder, and this concerns a {noun} outside it"),
        ),
        RestrictionError::Ids => Problem::new(
            Code::InsufficientScope,
            format!("this API key is restricted to certain {}, and this is not one of them", kind.as_str()),
        ),
    }
}

/// The singular noun of a resource kind.
fn noun(kind: Resource) -> &'static str {
    match kind {
        Resource::Analytics => "analytics site",
        other => other.as_str().trim_end_matches('s'),
    }
}
