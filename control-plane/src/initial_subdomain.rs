//! The site every account begins with, under a name nobody can guess from another's.

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use domain::subdomains;
use store::usage::{self, Counter};
use store::{Conn, names};
use uuid::Uuid;
use web::{Code, Problem};

use crate::App;

/// Gives a new account its site; gives the site's name.
///
/// # Errors
/// Several names in a row were taken, of 2^35; or Postgres is away.
pub(crate) async fn insert(
    app: &App,
    conn: &mut Conn,
    account_id: Uuid,
    now: DateTime<Utc>,
) -> Result<String, Problem> {
    usage::take(conn, account_id, Counter::Subdomains, Plan::Free.limits().subdomains).await?;
    let suggest = || subdomains::suggest(app.rng.bytes());
    let name = names::insert_suggested(conn, account_id, app.rng.uuid_v7(now), now, suggest).await?;
    name.ok_or_else(|| {
        Problem::new(Code::Unavailable, "no free site name was found; try again").retry_after(1)
    })
}
