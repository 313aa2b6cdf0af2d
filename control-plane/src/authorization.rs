//! To which things a call may reach: another account's are not found, the same account's outside the key's
//! restrictions are forbidden, wherever their ids stand: in the path, the query or the body.

use std::collections::{BTreeMap, BTreeSet};

use domain::reach::OutOfReach;
use domain::scopes::Resource;
use store::subdomains::Subdomain;
use store::things::Place;
use store::{Conn, Part};
use uuid::Uuid;
use web::{Code, Paging, Problem};

use crate::call::Call;

impl<S> Call<S> {
    /// The thing in the path may be touched.
    ///
    /// # Errors
    /// It is not the account's, or out of the key's reach.
    pub async fn check_id(&self, conn: &mut Conn, kind: Resource, id: Uuid) -> Result<(), Problem> {
        self.check_ids(conn, kind, &[id]).await
    }

    /// The things named in the request may be touched.
    ///
    /// # Errors
    /// One is not the account's, or out of the key's reach.
    pub async fn check_ids(&self, conn: &mut Conn, kind: Resource, ids: &[Uuid]) -> Result<(), Problem> {
        let places = store::things::find_places(conn, self.account_id, kind, ids).await?;
        let folders: BTreeMap<Uuid, Option<Uuid>> =
            places.into_iter().map(|place| (place.id, place.folder_id)).collect();
        for id in ids {
            let folder_id = folders.get(id).ok_or_else(|| Problem::not_found(noun(kind)))?;
            self.restrictions().covers(kind, *id, *folder_id).map_err(|why| forbidden(why, kind))?;
        }
        Ok(())
    }

    /// Those of the things that may be touched; the others are as if they were not there.
    ///
    /// # Errors
    /// The database's.
    pub async fn list_allowed(
        &self,
        conn: &mut Conn,
        kind: Resource,
        ids: &[Uuid],
    ) -> Result<BTreeSet<Uuid>, Problem> {
        let places = store::things::find_places(conn, self.account_id, kind, ids).await?;
        let covered = |place: &Place| self.restrictions().covers(kind, place.id, place.folder_id).is_ok();
        Ok(places.into_iter().filter(covered).map(|place| place.id).collect())
    }

    /// What was a thing of this kind, and lay there, may be touched.
    ///
    /// # Errors
    /// It is out of the key's reach.
    pub fn check_in_folder(&self, kind: Resource, id: Uuid, folder_id: Option<Uuid>) -> Result<(), Problem> {
        self.restrictions().covers(kind, id, folder_id).map_err(|why| forbidden(why, kind))
    }

    /// A new thing of this kind may be made in the wanted folder; gives the folder it is to lie in, which is the
    /// key's own unless told otherwise.
    ///
    /// # Errors
    /// The folder is not the account's, or the key may not make such a thing there.
    pub async fn new_resource_folder(
        &self,
        conn: &mut Conn,
        kind: Resource,
        wanted: Option<Uuid>,
    ) -> Result<Option<Uuid>, Problem> {
        self.check_new(kind)?;
        let Some(folder_id) = wanted else { return Ok(self.restrictions().folder_id) };
        self.check_id(conn, Resource::Folders, folder_id).await?;
        Ok(Some(folder_id))
    }

    /// The subdomain that is named, or else the account's first, which must be within reach as well.
    ///
    /// # Errors
    /// It is not the account's, or out of the key's reach.
    pub async fn subdomain(&self, conn: &mut Conn, wanted: Option<Uuid>) -> Result<Subdomain, Problem> {
        let found = store::subdomains::find_subdomain(conn, self.account_id, wanted).await?;
        let found = found.ok_or_else(|| Problem::not_found("subdomain"))?;
        let covered = self.restrictions().covers(Resource::Subdomains, found.id, None);
        covered.map_err(|why| forbidden(why, Resource::Subdomains))?;
        Ok(found)
    }

    /// A thing may be moved into the wanted folder, or out of all.
    ///
    /// # Errors
    /// The folder is not the account's, or out of the key's reach.
    pub async fn check_move(&self, conn: &mut Conn, wanted: Option<Uuid>) -> Result<(), Problem> {
        match wanted {
            Some(folder_id) => self.check_id(conn, Resource::Folders, folder_id).await,
            None => self.check_whole_account(Resource::Folders),
        }
    }

    /// A new thing of this kind may be made.
    ///
    /// # Errors
    /// The key is kept to listed ones.
    pub fn check_new(&self, kind: Resource) -> Result<(), Problem> {
        self.restrictions().covers_new(kind).map_err(|why| forbidden(why, kind))
    }

    /// What is the whole account's may be changed.
    ///
    /// # Errors
    /// The key is kept to a folder.
    pub fn check_whole_account(&self, kind: Resource) -> Result<(), Problem> {
        self.restrictions().covers_account().map_err(|why| forbidden(why, kind))
    }

    /// The part of a listing that is asked for and may be seen.
    ///
    /// # Errors
    /// The paging can't be read.
    pub fn list_filter(&self, kind: Resource, paging: &Paging) -> Result<Part, Problem> {
        let (limit, after) = paging.read()?;
        let ids = self.restrictions().ids_of(kind).map(|ids| ids.iter().copied().collect());
        Ok(Part { folder_id: self.restrictions().folder_id, ids, after, limit })
    }

    /// The same of a listing that may be asked for one folder's things alone.
    ///
    /// # Errors
    /// The paging can't be read; or the folder is not the account's, or out of the key's reach.
    pub async fn list_filter_in(
        &self,
        conn: &mut Conn,
        kind: Resource,
        paging: &Paging,
        folder_id: Option<Uuid>,
    ) -> Result<Part, Problem> {
        let part = self.list_filter(kind, paging)?;
        let Some(folder_id) = folder_id else { return Ok(part) };
        self.check_id(conn, Resource::Folders, folder_id).await?;
        Ok(Part { folder_id: Some(folder_id), ..part })
    }
}

fn forbidden(why: OutOfReach, kind: Resource) -> Problem {
    let noun = noun(kind);
    match why {
        OutOfReach::Folder => Problem::new(
            Code::FolderForbidden,
            format!("this API key is kept to one folder, and this concerns a {noun} that is not in it"),
        ),
        OutOfReach::Ids => Problem::new(
            Code::InsufficientScope,
            format!("this API key is kept to listed {}, and this is none of them", kind.word()),
        ),
    }
}

/// One thing of a kind, as people call it.
fn noun(kind: Resource) -> &'static str {
    match kind {
        Resource::Analytics => "analytics site",
        other => other.word().trim_end_matches('s'),
    }
}
