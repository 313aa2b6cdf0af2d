//! Salts of longer-lived visitor ids: one per site and period, destroyed when the period ends.

use chrono::{DateTime, NaiveDate, Utc};
use domain::visitors::SALT_BYTES;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// A salt to store.
#[derive(Debug, Clone, Copy)]
pub struct NewSalt {
    /// The first day of its period in the site's time zone.
    pub epoch: NaiveDate,
    /// When it must be destroyed.
    pub ends_at: DateTime<Utc>,
    /// Used only if the period has no salt yet.
    pub salt: [u8; SALT_BYTES],
}

/// Returns the salt of a site's period, or `None` if the site no longer exists. If there is none yet, stores `fresh`
/// and destroys the salts of earlier periods. An existing salt gets the end of `fresh`, because the owner may have
/// changed the lifetime.
pub async fn get_site_salt(
    conn: &mut Conn,
    site_id: Uuid,
    fresh: &NewSalt,
) -> Result<Option<[u8; SALT_BYTES]>, Error> {
    // Separate statements: a single one would not see a row that was committed meanwhile.
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

/// Destroys the salts of ended periods.
pub async fn delete_ended_salts(conn: &mut Conn, now: DateTime<Utc>) -> Result<(), Error> {
    query!("delete from retention_salts where ends_at <= $1", now).execute(conn).await?;
    Ok(())
}
