//! Restrictions of an API key to one folder, or to listed resources.
//!
//! Scopes say what a key may do, restrictions say to which resources. Both narrow; neither ever widens.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::FieldError;
use crate::scopes::Resource;

/// Kinds of resources that a key can be restricted to by id. A resource that belongs to one of them (an entry to its
/// page, a submission to its form, a delivery to its webhook) is restricted with it.
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

/// Kinds of resources that lie in folders. A webhook lies in the folder of its forms.
const IN_FOLDERS: [Resource; 5] =
    [Resource::Pages, Resource::Forms, Resource::Webhooks, Resource::Analytics, Resource::Automations];

/// Maximum number of ids of one kind, because every call loads the key.
pub const IDS_MAX: usize = 1_000;

/// The restrictions of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restrictions {
    /// The only allowed folder; `None` for all.
    pub folder_id: Option<Uuid>,
    /// The only allowed resources of a kind; a kind without an entry is not restricted.
    pub ids: BTreeMap<Resource, BTreeSet<Uuid>>,
}

/// Which restriction a resource violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestrictionError {
    /// It lies in another folder, or in none.
    Folder,
    /// It is not among the listed ids.
    Ids,
}

impl Restrictions {
    /// Parses the restrictions of an API call: names of kinds, with lists of ids. Errors have paths such as
    /// `resourceIds.cats`.
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

    /// Returns the allowed ids of a kind; `None` if it is not restricted.
    pub fn ids_of(&self, resource: Resource) -> Option<&BTreeSet<Uuid>> {
        self.ids.get(&resource)
    }

    /// Checks whether the key may access a resource, by its kind, id and folder.
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
            // A folder's pages are served on subdomains; domains and the rest belong to the whole account.
            Resource::Subdomains | Resource::Keys => true,
            _ => false,
        };
        if inside { Ok(()) } else { Err(RestrictionError::Folder) }
    }

    /// Checks whether the key may create a resource of this kind: a new one would be on no list.
    pub fn allows_new(&self, resource: Resource) -> Result<(), RestrictionError> {
        if self.ids.contains_key(&resource) { Err(RestrictionError::Ids) } else { Ok(()) }
    }

    /// Checks whether the key may change resources that belong to the whole account.
    pub fn allows_account(&self) -> Result<(), RestrictionError> {
        if self.folder_id.is_some() { Err(RestrictionError::Folder) } else { Ok(()) }
    }

    /// Returns whether `other` allows everything that these restrictions allow. A child key must satisfy it.
    pub fn is_subset_of(&self, other: &Self) -> bool {
        let folder = other.folder_id.is_none() || self.folder_id == other.folder_id;
        let listed = |(resource, allowed): (&Resource, &BTreeSet<Uuid>)| {
            self.ids.get(resource).is_some_and(|ids| ids.is_subset(allowed))
        };
        folder && other.ids.iter().all(listed)
    }

    /// Returns the restrictions of a child key that requests these: it inherits what they leave open.
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
        fn a_child_accesses_nothing_that_its_parent_may_not(
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
        fn a_child_without_restrictions_inherits_all(parent in any_restrictions()) {
            let child = Restrictions::default().inherit_from(&parent);
            prop_assert!(child.is_subset_of(&parent) && parent.is_subset_of(&child));
        }
    }

    #[test]
    fn a_folder_covers_its_contents_and_no_more() {
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
    fn a_list_of_one_kind_does_not_restrict_another() {
        let wanted = [("forms".to_owned(), vec![id(1)])].into_iter().collect();
        let restrictions = Restrictions::read(None, &wanted).unwrap();
        assert_eq!(restrictions.allows(Resource::Forms, id(2), None), Err(RestrictionError::Ids));
        assert_eq!(restrictions.allows(Resource::Pages, id(2), None), Ok(()));
        assert_eq!(restrictions.allows_new(Resource::Forms), Err(RestrictionError::Ids));
    }

    #[test]
    fn unknown_kinds_are_named() {
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
