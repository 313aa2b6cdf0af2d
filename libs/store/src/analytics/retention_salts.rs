//! The salts behind longer-lived visitor ids: one per site and stretch of time, destroyed when that is over.

use chrono::{DateTime, NaiveDate, Utc};
use domain::visitors::SALT_BYTES;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// A site's salt about to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewSalt {
    /// The first day of the stretch it serves, where the site is.
    pub epoch: NaiveDate,
    /// When it must be gone.
    pub ends_at: DateTime<Utc>,
    /// It, if there is none yet.
    pub salt: [u8; SALT_BYTES],
}

/// The salt of a site's stretch of time. `fresh` becomes it if there is none yet, and those of stretches before are
/// destroyed then. One that is there ends when `fresh` would: the owner may have chosen another lifetime since. None if
/// the site is gone.
pub async fn get_site_salt(
    conn: &mut Conn,
    site_id: Uuid,
    fresh: &NewSalt,
) -> Result<Option<[u8; SALT_BYTES]>, Error> {
    // Statements apart: within one, another's row, committed meanwhile, would not be seen.
    let made = query!(
        "insert into retention_salts (site_id, epoch, ends_at, salt)
         select id, $2, $3, $4 from analytics_sites where id = $1
         on conflict (site_id, epoch) do update set ends_at = excluded.ends_at
         where retention_salts.ends_at <> excluded.ends_at",
        site_id,
        fresh.epoch,
        fresh.ends_at,
        &fresh.salt,
    )
    .execute(&mut *conn)
    .await?;
    if made.rows_affected() > 0 {
        query!("delete from retention_salts where site_id = $1 and epoch < $2", site_id, fresh.epoch)
            .execute(&mut *conn)
            .await?;
    }
    let salt = query_scalar!(
        "select salt from retention_salts where site_id = $1 and epoch = $2",
        site_id,
        fresh.epoch,
    )
    .fetch_optional(conn)
    .await?;
    let unreadable = |salt: Vec<u8>| Error::Unreadable {
        table: "retention_salts",
        column: "salt",
        value: format!("{} bytes", salt.len()),
    };
    salt.map(|salt| salt.try_into().map_err(unreadable)).transpose()
}

/// Destroys the salts that have served.
pub async fn delete_ended_salts(conn: &mut Conn, now: DateTime<Utc>) -> Result<(), Error> {
    query!("delete from retention_salts where ends_at <= $1", now).execute(conn).await?;
    Ok(())
}
