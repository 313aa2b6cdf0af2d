//! Checks of a domain's settings.

use domain::FieldError;
use domain::domains::leads_back;
use domain::scopes::Resource;
use uuid::Uuid;
use web::Problem;

use super::views::Hsts;
use crate::call::Call;

/// Longest `maxAge`: two years.
const MAX_AGE_MAX: i64 = 63_072_000;

/// Rejects a `maxAge` out of range.
pub(super) fn check_hsts(hsts: Option<Hsts>) -> Result<(), Problem> {
    if hsts.is_none_or(|hsts| (0..=MAX_AGE_MAX).contains(&hsts.max_age)) {
        return Ok(());
    }
    let rule = "maxAge must be 0 to 63072000 seconds (two years)";
    Err(Problem::validation(vec![FieldError::new("hsts.maxAge", "range", rule)]))
}

/// Rejects a redirect to a domain that is not the account's, or that leads back to `from`. Locks the account's domains, also
/// without a redirect: what the caller reads and writes back must not have been changed in between.
pub(super) async fn check_redirect<S>(
    call: &Call<S>,
    conn: &mut store::Conn,
    from: Uuid,
    to: Option<Uuid>,
) -> Result<(), Problem> {
    let wrong = |code, rule: &str| Problem::validation(vec![FieldError::new("redirectTo", code, rule)]);
    let redirects = store::domains::list_redirects(conn, call.account_id).await?;
    let Some(to) = to else { return Ok(()) };
    if !redirects.contains_key(&to) && to != from {
        return Err(wrong("unknown", "redirectTo must be the id of another domain of this account"));
    }
    let redirects = redirects.into_iter().filter_map(|(from, to)| Some((from, to?))).collect();
    if leads_back(from, to, &redirects) {
        return Err(wrong("loop", "redirectTo must not lead back to this domain"));
    }
    call.check_id(conn, Resource::Domains, to).await
}
