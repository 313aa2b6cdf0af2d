//! The first account of a person who signs in without a trial. It is claimed from the start.

use chrono::{DateTime, Utc};
use contract::Change;
use store::{Conn, claims, identities};
use uuid::Uuid;
use web::Problem;

use crate::{App, initial_subdomain};

/// An account that was just inserted.
pub(super) struct FirstAccount {
    pub(super) id: Uuid,
    /// To publish when the transaction commits.
    pub(super) change: Change,
}

/// Inserts a free account with its initial subdomain for an identity. The caller must hold the identity's row lock and
/// have found no account, so that two sign-ins at once make one.
pub(super) async fn insert(
    app: &App,
    conn: &mut Conn,
    identity_id: Uuid,
    now: DateTime<Utc>,
) -> Result<FirstAccount, Problem> {
    let id = app.rng.uuid_v7(now);
    claims::insert_claimed(conn, id, now).await?;
    identities::insert_account(conn, id, identity_id, None, now).await?;
    let host = initial_subdomain::insert(app, conn, id, now).await?;
    Ok(FirstAccount { id, change: Change::Host { host } })
}
