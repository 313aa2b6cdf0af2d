//! The first subdomain of a new account, under a random name.

use chrono::{DateTime, Utc};
use domain::subdomains;
use store::{Conn, subdomain_names};
use uuid::Uuid;
use web::{Code, Problem};

use crate::App;

/// Inserts the first subdomain of an account and returns its name. Returns 503 if several random names of 2^35 in a row
/// were taken.
pub(crate) async fn insert(
    app: &App,
    conn: &mut Conn,
    account_id: Uuid,
    now: DateTime<Utc>,
) -> Result<String, Problem> {
    let suggest = || subdomains::suggest(app.rng.bytes());
    let name = subdomain_names::insert_first(conn, account_id, app.rng.uuid_v7(now), now, suggest).await?;
    name.ok_or_else(|| Problem::new(Code::Unavailable, "found no free site name; try again").retry_after(1))
}
