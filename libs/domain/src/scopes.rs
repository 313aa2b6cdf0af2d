//! What a key may do: 16 resources × 4 actions, which is exactly the 64 bits of a `u64`.

use std::fmt;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $(#[doc = concat!("`", $word, "`")] $variant),+ }

        impl $name {
            /// Every one, in the order of their bits.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word used in scopes.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The one with that word.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|item| item.as_str() == text)
            }
        }
    };
}

words! {
    /// A kind of thing a key can be allowed to touch.
    Resource {
        Pages = "pages", Entries = "entries", Assets = "assets", Deploys = "deploys",
        Subdomains = "subdomains", Domains = "domains", Folders = "folders", Forms = "forms",
        Submissions = "submissions", Workflows = "workflows", Webhooks = "webhooks", Deliveries = "deliveries",
        Analytics = "analytics", Automations = "automations", Keys = "keys", Account = "account",
    }
}

words! {
    /// What may be done with it.
    Action { Read = "read", Create = "create", Update = "update", Delete = "delete" }
}

/// How a scope is written, as a regular expression.
pub const PATTERN: &str = r"^(\*|(\*|pages|entries|assets|deploys|subdomains|domains|folders|forms|submissions|workflows|webhooks|deliveries|analytics|automations|keys|account):(\*|read|create|update|delete))$";

/// One permission, written `pages:read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope {
    /// On what.
    pub resource: Resource,
    /// To do what.
    pub action: Action,
}

impl Scope {
    /// `resource:action`.
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
    /// Everything: what a new key has unless told otherwise.
    pub const FULL: Self = Self(u64::MAX);

    /// Reads `pages:read`, `pages:*`, `*:read`, `*:*` and `*`.
    ///
    /// # Errors
    /// The first text that names no scope.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, &'a str> {
        texts.into_iter().try_fold(Self::default(), |set, text| Ok(Self(set.0 | bits(text).ok_or(text)?)))
    }

    /// Whether `scope` is among them.
    pub fn allows(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether every permission here is also in `other`: what a child key must satisfy.
    pub fn is_subset_of(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The shortest list of words that [`ScopeSet::parse`] reads back.
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
    fn wildcards_stand_for_either_part() {
        let read_all = ScopeSet::parse(["*:read"]).unwrap();
        assert!(read_all.allows(Scope::new(Resource::Keys, Action::Read)));
        assert!(!read_all.allows(Scope::new(Resource::Keys, Action::Delete)));
        assert_eq!(ScopeSet::parse(["*"]), ScopeSet::parse(["*:*"]));
        assert_eq!(ScopeSet::parse(["pages:*"]).unwrap().words(), ["pages:*"]);
    }

    #[test]
    fn unknown_words_are_named() {
        for wrong in ["pages", "pages:", "pages:write", "cats:read", ":", "Pages:read", "pages:read:x"] {
            assert_eq!(ScopeSet::parse(["forms:read", wrong]), Err(wrong));
        }
    }

    proptest! {
        #[test]
        fn words_read_back_to_the_same_set(bits: u64) {
            let set = ScopeSet(bits);
            let words = set.words();
            prop_assert_eq!(ScopeSet::parse(words.iter().map(String::as_str)), Ok(set));
        }

        #[test]
        fn a_subset_allows_nothing_the_whole_does_not(part: u64, whole: u64) {
            let (part, whole) = (ScopeSet(part), ScopeSet(whole));
            let scopes = || Resource::ALL.iter().flat_map(|r| Action::ALL.iter().map(|a| Scope::new(*r, *a)));
            let slow = scopes().all(|scope| !part.allows(scope) || whole.allows(scope));
            prop_assert_eq!(part.is_subset_of(whole), slow);
        }
    }
}
