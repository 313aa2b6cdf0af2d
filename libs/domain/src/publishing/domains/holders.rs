//! Which of several accounts that added the same domain holds it, and how long it is served.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

/// How long a domain is served after everything last stood. An owner who breaks a record by mistake keeps the site, and a
/// forgotten domain does not stay with an account forever.
pub const SERVED_FOR: TimeDelta = TimeDelta::days(7);

/// One account's row of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub id: Uuid,
    /// The text that proves ownership.
    pub challenge: String,
    /// Whether it holds the domain now.
    pub is_holder: bool,
    pub created_at: DateTime<Utc>,
}

/// Returns the claim that may hold the domain, given the texts in DNS. The holder stays while its text stands, or while no
/// other's does. Otherwise the oldest claim with a standing text takes the domain at once.
pub fn holder(claims: &[Claim], txt: &[String]) -> Option<Uuid> {
    let stands = |claim: &&Claim| txt.contains(&claim.challenge);
    let current = claims.iter().find(|claim| claim.is_holder);
    let proven = claims.iter().filter(stands).min_by_key(|claim| (claim.created_at, claim.id));
    let holder = current.filter(stands).or(proven).or(current);
    holder.map(|claim| claim.id)
}

/// Returns whether a domain is served.
pub fn is_served(verified_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    verified_at.is_some_and(|at| now - at < SERVED_FOR)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(number: u128, is_holder: bool) -> Claim {
        let created_at = DateTime::from_timestamp_nanos(i64::try_from(number).unwrap());
        Claim { id: Uuid::from_u128(number), challenge: format!("c{number}"), is_holder, created_at }
    }

    #[test]
    fn another_accounts_text_moves_a_domain_unless_the_holders_stands() {
        let claims = [claim(1, true), claim(2, false), claim(3, false)];
        for (txt, expected) in
            [(vec![], 1), (vec!["c2"], 2), (vec!["c3", "c2"], 2), (vec!["c1", "c2"], 1), (vec!["x"], 1)]
        {
            let txt: Vec<String> = txt.into_iter().map(str::to_owned).collect();
            assert_eq!(holder(&claims, &txt), Some(Uuid::from_u128(expected)), "{txt:?}");
        }
        assert_eq!(holder(&claims[1..], &[]), None, "a domain is not held without a text");
    }

    proptest! {
        #[test]
        fn a_new_holder_has_its_text_in_dns(
            holding in proptest::option::of(0_u128..6),
            standing in proptest::collection::vec(0_u128..6, 0..6),
        ) {
            let claims: Vec<_> = (0..6).map(|number| claim(number, holding == Some(number))).collect();
            let txt: Vec<_> = standing.iter().map(|number| format!("c{number}")).collect();
            let chosen = holder(&claims, &txt).map(|id| id.as_u128());
            let proves = |number: u128| standing.contains(&number);
            match (chosen, holding) {
                (Some(chosen), Some(before)) if chosen != before => {
                    prop_assert!(proves(chosen) && !proves(before));
                }
                (Some(chosen), None) => prop_assert!(proves(chosen)),
                (None, before) => prop_assert!(before.is_none() && standing.is_empty()),
                _ => {}
            }
        }
    }

    #[test]
    fn a_domain_is_served_for_a_week_after_it_was_verified() {
        let now = DateTime::UNIX_EPOCH;
        assert!(!is_served(None, now));
        assert!(is_served(Some(now - TimeDelta::hours(7 * 24 - 1)), now));
        assert!(!is_served(Some(now - TimeDelta::hours(7 * 24)), now));
    }
}
