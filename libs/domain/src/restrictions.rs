//! How far a key reaches: one folder, or listed things only.
//!
//! Scopes say what may be done, the reach says to which things. Both narrow; neither ever widens.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::FieldError;
use crate::scopes::Resource;

/// Kinds of things a key can be kept to. What belongs to one of them (an entry to its page, a submission to its
/// form, a delivery to its webhook) follows it.
pub const LISTABLE: [Resource; 9] = [
    Resource::Pages,
    Resource::Subdomains,
    Resource::Domains,
    Resource::Folders,
    Resource::Forms,
    Resource::Webhooks,
    Resource::Analytics,
    Resource::Automations,
    Resource::Keys,
];

/// Kinds of things that lie in folders. A webhook lies where the forms lie it is told of.
const IN_FOLDERS: [Resource; 5] =
    [Resource::Pages, Resource::Forms, Resource::Webhooks, Resource::Analytics, Resource::Automations];

/// Most ids of one kind: a key is looked up on every call.
pub const IDS_MAX: usize = 1_000;

/// What a key may touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restrictions {
    /// The only folder, if it is kept to one.
    pub folder_id: Option<Uuid>,
    /// The only things of a kind; a kind that is not named is not narrowed.
    pub ids: BTreeMap<Resource, BTreeSet<Uuid>>,
}

/// Why something is out of reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestrictionError {
    /// It lies in another folder, or in none.
    Folder,
    /// It is not among the listed ones.
    Ids,
}

impl Restrictions {
    /// Reads what an API call writes: kinds by their words, with lists of ids.
    ///
    /// # Errors
    /// Complaints by path, such as `resourceIds.cats`.
    pub fn read(
        folder_id: Option<Uuid>,
        resource_ids: &BTreeMap<String, Vec<Uuid>>,
    ) -> Result<Self, Vec<FieldError>> {
        let (mut ids, mut errors) = (BTreeMap::new(), Vec::new());
        for (word, listed) in resource_ids {
            let path = format!("resourceIds.{word}");
            match LISTABLE.into_iter().find(|resource| resource.as_str() == word) {
                None => {
                    let words = LISTABLE.map(Resource::as_str).join(", ");
                    let message = format!("{path} can't be narrowed to ids; these can: {words}");
                    errors.push(FieldError::new(path, "unknown_resource", message));
                }
                Some(_) if listed.len() > IDS_MAX => {
                    let message = format!("{path} takes at most {IDS_MAX} ids");
                    errors.push(FieldError::new(path, "too_many", message));
                }
                Some(resource) => drop(ids.insert(resource, listed.iter().copied().collect())),
            }
        }
        if errors.is_empty() { Ok(Self { folder_id, ids }) } else { Err(errors) }
    }

    /// The only things of a kind, if there is such a list.
    pub fn ids_of(&self, resource: Resource) -> Option<&BTreeSet<Uuid>> {
        self.ids.get(&resource)
    }

    /// Whether something may be touched: by its kind, id and folder.
    ///
    /// # Errors
    /// Why it may not.
    pub fn allows(
        &self,
        resource: Resource,
        id: Uuid,
        folder_id: Option<Uuid>,
    ) -> Result<(), RestrictionError> {
        if self.ids_of(resource).is_some_and(|ids| !ids.contains(&id)) {
            return Err(RestrictionError::Ids);
        }
        let Some(own) = self.folder_id else { return Ok(()) };
        let inside = match resource {
            Resource::Folders => id == own,
            _ if IN_FOLDERS.contains(&resource) => folder_id == Some(own),
            // Subdomains are where a folder's pages are served; domains and the rest are the whole account's.
            Resource::Subdomains | Resource::Keys => true,
            _ => false,
        };
        if inside { Ok(()) } else { Err(RestrictionError::Folder) }
    }

    /// Whether a new thing of this kind may be made: it would be on no list.
    ///
    /// # Errors
    /// Why not.
    pub fn allows_new(&self, resource: Resource) -> Result<(), RestrictionError> {
        if self.ids.contains_key(&resource) { Err(RestrictionError::Ids) } else { Ok(()) }
    }

    /// Whether what is the whole account's may be changed.
    ///
    /// # Errors
    /// Why not.
    pub fn allows_account(&self) -> Result<(), RestrictionError> {
        if self.folder_id.is_some() { Err(RestrictionError::Folder) } else { Ok(()) }
    }

    /// Whether nothing here is out of `other`'s reach: what a child key must satisfy, in every dimension.
    pub fn is_subset_of(&self, other: &Self) -> bool {
        let folder = other.folder_id.is_none() || self.folder_id == other.folder_id;
        let listed = |(resource, allowed): (&Resource, &BTreeSet<Uuid>)| {
            self.ids.get(resource).is_some_and(|ids| ids.is_subset(allowed))
        };
        folder && other.ids.iter().all(listed)
    }

    /// What a child key reaches that asks for `folder_id` and `ids`: what it leaves open, it inherits.
    #[must_use]
    pub fn inherit_from(mut self, parent: &Self) -> Self {
        self.folder_id = self.folder_id.or(parent.folder_id);
        for (resource, ids) in &parent.ids {
            self.ids.entry(*resource).or_insert_with(|| ids.clone());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, btree_set};
    use proptest::prelude::*;

    use super::*;

    fn id(number: u8) -> Uuid {
        Uuid::from_u128(u128::from(number))
    }

    fn any_restrictions() -> impl Strategy<Value = Restrictions> {
        let ids =
            btree_map(prop::sample::select(&LISTABLE[..]), btree_set((0u8..4).prop_map(id), 0..4), 0..3);
        (prop::option::of((0u8..3).prop_map(id)), ids)
            .prop_map(|(folder_id, ids)| Restrictions { folder_id, ids })
    }

    proptest! {
        #[test]
        fn a_child_touches_nothing_its_parent_may_not(
            child in any_restrictions(), parent in any_restrictions(), at in 0usize..9, thing in 0u8..4, folder in prop::option::of(0u8..3),
        ) {
            let (resource, thing, folder) = (LISTABLE[at], id(thing), folder.map(id));
            if child.is_subset_of(&parent) && child.allows(resource, thing, folder).is_ok() {
                prop_assert_eq!(parent.allows(resource, thing, folder), Ok(()));
            }
            if child.is_subset_of(&parent) && child.allows_new(resource).is_ok() {
                prop_assert_eq!(parent.allows_new(resource), Ok(()));
            }
        }

        #[test]
        fn what_asks_for_nothing_inherits_everything(parent in any_restrictions()) {
            let child = Restrictions::default().inherit_from(&parent);
            prop_assert!(child.is_subset_of(&parent) && parent.is_subset_of(&child));
        }
    }

    #[test]
    fn a_folder_holds_what_lies_in_it_and_no_more() {
        let restrictions = Restrictions { folder_id: Some(id(1)), ids: BTreeMap::new() };
        assert_eq!(restrictions.allows(Resource::Pages, id(9), Some(id(1))), Ok(()));
        assert_eq!(restrictions.allows(Resource::Pages, id(9), None), Err(RestrictionError::Folder));
        assert_eq!(restrictions.allows(Resource::Forms, id(9), Some(id(2))), Err(RestrictionError::Folder));
        assert_eq!(restrictions.allows(Resource::Folders, id(1), None), Ok(()));
        assert_eq!(restrictions.allows(Resource::Folders, id(2), None), Err(RestrictionError::Folder));
        assert_eq!(restrictions.allows(Resource::Domains, id(9), None), Err(RestrictionError::Folder));
        assert_eq!(restrictions.allows_account(), Err(RestrictionError::Folder));
        assert_eq!(restrictions.allows_new(Resource::Pages), Ok(()));
    }

    #[test]
    fn a_list_of_one_kind_says_nothing_of_another() {
        let wanted = [("forms".to_owned(), vec![id(1)])].into_iter().collect();
        let restrictions = Restrictions::read(None, &wanted).unwrap();
        assert_eq!(restrictions.allows(Resource::Forms, id(2), None), Err(RestrictionError::Ids));
        assert_eq!(restrictions.allows(Resource::Pages, id(2), None), Ok(()));
        assert_eq!(restrictions.allows_new(Resource::Forms), Err(RestrictionError::Ids));
    }

    #[test]
    fn kinds_that_are_not_known_are_named() {
        for word in ["cats", "account", "submissions", "Forms", ""] {
            let errors =
                Restrictions::read(None, &[(word.to_owned(), vec![])].into_iter().collect()).unwrap_err();
            assert_eq!(errors[0].field, format!("resourceIds.{word}"));
        }
        let many = (0..=IDS_MAX).map(|n| Uuid::from_u128(n as u128)).collect();
        let errors =
            Restrictions::read(None, &[("forms".to_owned(), many)].into_iter().collect()).unwrap_err();
        assert_eq!(errors[0].code, "too_many");
    }
}
