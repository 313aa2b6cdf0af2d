//! Scopes of API keys: 16 resources × 4 actions, which are exactly the 64 bits of a `u64`.

use std::fmt;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $(#[doc = concat!("`", $word, "`")] $variant),+ }

        impl $name {
            /// Every value, in the order of the bits.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name in scopes.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Parses the result of [`Self::as_str`].
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|item| item.as_str() == text)
            }
        }
    };
}

words! {
    /// A kind of resource.
    Resource {
        Pages = "pages", Entries = "entries", Assets = "assets", Deploys = "deploys",
        Subdomains = "subdomains", Domains = "domains", Folders = "folders", Forms = "forms",
        Submissions = "submissions", Workflows = "workflows", Webhooks = "webhooks", Deliveries = "deliveries",
        Analytics = "analytics", Automations = "automations", Keys = "keys", Account = "account",
    }
}

words! {
    /// An action on a resource.
    Action { Read = "read", Create = "create", Update = "update", Delete = "delete" }
}

/// Regular expression of a scope.
pub const PATTERN: &str = r"^(\*|(\*|pages|entries|assets|deploys|subdomains|domains|folders|forms|submissions|workflows|webhooks|deliveries|analytics|automations|keys|account):(\*|read|create|update|delete))$";

/// One permission, written `pages:read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope {
    pub resource: Resource,
    pub action: Action,
}

impl Scope {
    /// Creates the scope `resource:action`.
    pub const fn new(resource: Resource, action: Action) -> Self {
        Self { resource, action }
    }

    fn bit(self) -> u64 {
        1 << (self.resource as u32 * 4 + self.action as u32)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.resource.as_str(), self.action.as_str())
    }
}

/// A set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeSet(u64);

impl ScopeSet {
    /// Every permission; the default of a new key.
    pub const FULL: Self = Self(u64::MAX);

    /// Parses `pages:read`, `pages:*`, `*:read`, `*:*` and `*`. The error is the first invalid scope.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, &'a str> {
        texts.into_iter().try_fold(Self::default(), |set, text| Ok(Self(set.0 | bits(text).ok_or(text)?)))
    }

    /// Returns whether the set contains `scope`.
    pub fn allows(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Returns whether `other` contains every permission of this set. A child key must satisfy it.
    pub fn is_subset_of(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the shortest list of scopes that [`ScopeSet::parse`] parses to this set.
    pub fn words(self) -> Vec<String> {
        if self == Self::FULL {
            return vec!["*".to_owned()];
        }
        let of = |resource: Resource| {
            let scopes: Vec<_> = Action::ALL.iter().map(|action| Scope::new(resource, *action)).collect();
            if scopes.iter().all(|scope| self.allows(*scope)) {
                return vec![format!("{}:*", resource.as_str())];
            }
            scopes.into_iter().filter(|scope| self.allows(*scope)).map(|scope| scope.to_string()).collect()
        };
        Resource::ALL.iter().copied().flat_map(of).collect()
    }
}

fn bits(text: &str) -> Option<u64> {
    let (resource, action) = if text == "*" { ("*", "*") } else { text.split_once(':')? };
    let resources = one_or_all(resource, Resource::parse, Resource::ALL)?;
    let actions = one_or_all(action, Action::parse, Action::ALL)?;
    let pairs =
        resources.iter().flat_map(|resource| actions.iter().map(|action| Scope::new(*resource, *action)));
    Some(pairs.fold(0, |bits, scope| bits | scope.bit()))
}

fn one_or_all<T: Copy>(word: &str, one: fn(&str) -> Option<T>, all: &[T]) -> Option<Vec<T>> {
    if word == "*" { Some(all.to_vec()) } else { one(word).map(|item| vec![item]) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn there_are_sixteen_resources_and_four_actions() {
        assert_eq!((Resource::ALL.len(), Action::ALL.len()), (16, 4));
    }

    #[test]
    fn a_wildcard_replaces_either_part() {
        let read_all = ScopeSet::parse(["*:read"]).unwrap();
        assert!(read_all.allows(Scope::new(Resource::Keys, Action::Read)));
        assert!(!read_all.allows(Scope::new(Resource::Keys, Action::Delete)));
        assert_eq!(ScopeSet::parse(["*"]), ScopeSet::parse(["*:*"]));
        assert_eq!(ScopeSet::parse(["pages:*"]).unwrap().words(), ["pages:*"]);
    }

    #[test]
    fn unknown_scopes_are_named() {
        for wrong in ["pages", "pages:", "pages:write", "cats:read", ":", "Pages:read", "pages:read:x"] {
            assert_eq!(ScopeSet::parse(["forms:read", wrong]), Err(wrong));
        }
    }

    proptest! {
        #[test]
        fn scopes_round_trip(bits: u64) {
            let set = ScopeSet(bits);
            let words = set.words();
            prop_assert_eq!(ScopeSet::parse(words.iter().map(String::as_str)), Ok(set));
        }

        #[test]
        fn a_subset_allows_nothing_that_its_superset_forbids(part: u64, whole: u64) {
            let (part, whole) = (ScopeSet(part), ScopeSet(whole));
            let scopes = || Resource::ALL.iter().flat_map(|r| Action::ALL.iter().map(|a| Scope::new(*r, *a)));
            let slow = scopes().all(|scope| !part.allows(scope) || whole.allows(scope));
            prop_assert_eq!(part.is_subset_of(whole), slow);
        }
    }
}
