//! Redirects from one domain of an account to another, such as from `www.` to the bare name.

use std::collections::HashMap;

use uuid::Uuid;

/// Returns whether a redirect from `from` to `to` would lead back to `from`, given the account's other redirects.
pub fn leads_back(from: Uuid, to: Uuid, redirects: &HashMap<Uuid, Uuid>) -> bool {
    let steps = std::iter::successors(Some(to), |at| redirects.get(at).copied());
    // A loop that does not contain `from` can't be stored, but it must not hang this either.
    steps.take(redirects.len() + 1).any(|at| at == from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn accepted_redirects_never_form_a_loop(pairs in proptest::collection::vec((0_u128..8, 0_u128..8), 0..40)) {
            let mut redirects = HashMap::new();
            for (from, to) in pairs {
                let (from, to) = (Uuid::from_u128(from), Uuid::from_u128(to));
                if !leads_back(from, to, &redirects) {
                    redirects.insert(from, to);
                }
            }
            for start in redirects.keys() {
                let steps = std::iter::successors(redirects.get(start).copied(), |at| redirects.get(at).copied());
                prop_assert!(steps.take(10).count() < 9, "{redirects:?}");
            }
        }
    }

    #[test]
    fn a_domain_cannot_redirect_to_itself() {
        let id = Uuid::from_u128(1);
        assert!(leads_back(id, id, &HashMap::new()));
    }
}
