//! Salts of longer-lived visitor ids: one per site and period, destroyed when the period ends.

use chrono::{DateTime, NaiveDate, Utc};
use domain::visitors::SALT_BYTES;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use super::salts::{Insertion, StoredSalt, read_salt};
use crate::{Conn, Error};

/// A site's period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub site_id: Uuid,
    /// Its first day in the site's time zone.
    pub epoch: NaiveDate,
    /// When its salt must be destroyed.
    pub ends_at: DateTime<Utc>,
}

/// Returns the salt of a period, or `None` if there is none yet or it was lost. It gets the end of `period`, because the owner
/// may have changed the lifetime.
pub async fn find_site_salt(conn: &mut Conn, period: &Period) -> Result<Option<[u8; SALT_BYTES]>, Error> {
    let salt = query_scalar!(
        "with changed as (
             update retention_salts set ends_at = $3 where site_id = $1 and epoch = $2 and ends_at <> $3
             returning site_id, epoch
         ), issued as (
             update issued_retention_salts i set ends_at = $3 from changed c
             where i.site_id = c.site_id and i.epoch = c.epoch
         )
         select salt from retention_salts where site_id = $1 and epoch = $2",
        period.site_id,
        period.epoch,
        period.ends_at,
    )
    .fetch_optional(conn)
    .await?;
    salt.map(|salt| read_salt("retention_salts", salt)).transpose()
}

/// Stores a salt of a period unless there is one, and returns the one that is stored, or `None` if the site no longer exists. A
/// new salt destroys those of earlier periods.
pub async fn insert_site_salt(
    conn: &mut Conn,
    period: &Period,
    salt: &[u8; SALT_BYTES],
) -> Result<Option<StoredSalt>, Error> {
    let Period { site_id, epoch, ends_at } = *period;
    let made = query!(
        r#"with stored as (
               insert into retention_salts (site_id, epoch, ends_at, salt)
               select id, $2, $3, $4 from analytics_sites where id = $1
               on conflict do nothing returning site_id, epoch, ends_at
           ), issued as (
               insert into issued_retention_salts (site_id, epoch, ends_at)
               select site_id, epoch, ends_at from stored on conflict do nothing returning site_id
           )
           select exists (select from stored) as "inserted!", exists (select from issued) as "was_never_issued!""#,
        site_id,
        epoch,
        ends_at,
        salt,
    )
    .fetch_one(&mut *conn)
    .await?;
    let insertion = Insertion::new(made.inserted, made.was_never_issued);
    if insertion != Insertion::None {
        query!("delete from retention_salts where site_id = $1 and epoch < $2", site_id, epoch)
            .execute(&mut *conn)
            .await?;
        query!("delete from issued_retention_salts where site_id = $1 and epoch < $2", site_id, epoch)
            .execute(&mut *conn)
            .await?;
    }
    // A separate statement: the first would not see a row that was committed meanwhile.
    let salt =
        query_scalar!("select salt from retention_salts where site_id = $1 and epoch = $2", site_id, epoch,)
            .fetch_optional(conn)
            .await?;
    let stored = |salt| Ok(StoredSalt { salt: read_salt("retention_salts", salt)?, insertion });
    salt.map(stored).transpose()
}

/// Destroys the salts of ended periods.
pub async fn delete_ended_salts(conn: &mut Conn, now: DateTime<Utc>) -> Result<(), Error> {
    query!("delete from retention_salts where ends_at <= $1", now).execute(&mut *conn).await?;
    query!("delete from issued_retention_salts where ends_at <= $1", now).execute(conn).await?;
    Ok(())
}
