//! Checks that several endpoints of pages share.

use domain::FieldError;
use domain::pages::BATCH_MAX;
use store::subdomains::Subdomain;
use web::{Code, Problem};

/// The error for a slug that the site already has.
pub(super) fn slug_taken(subdomain: &Subdomain, slug: &str) -> Problem {
    Problem::new(Code::SlugTaken, format!("the site {} already has a page `{slug}`", subdomain.name))
}

/// Checks that a batch has at least one page and at most the maximum.
pub(in crate::api) fn check_count(field: &'static str, count: usize) -> Result<(), Problem> {
    if (1..=BATCH_MAX).contains(&count) {
        return Ok(());
    }
    let message = format!("{field} must have 1 to {BATCH_MAX} items, not {count}");
    Err(Problem::validation(vec![FieldError::new(field, "count", message)]))
}
