//! Daily salts of visitor ids, shared by all collectors and destroyed after two days.
//!
//! The tables of salts are unlogged: no backup, write-ahead log or standby has their rows, and a crash of Postgres empties them. A
//! logged table records which salts were made, without the salts, so that a lost one is told from one that is new.

use chrono::NaiveDate;
use domain::visitors::SALT_BYTES;
use sqlx::{query, query_scalar};

use crate::{Conn, Error};

/// A stored salt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredSalt {
    pub salt: [u8; SALT_BYTES],
    pub insertion: Insertion,
}

/// Whether a call inserted its salt. Of concurrent calls one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insertion {
    /// Another salt was stored before.
    None,
    /// It is the first salt of its day or period.
    First,
    /// An earlier salt of the same day or period was lost.
    AfterLoss,
}

impl Insertion {
    pub(super) fn new(inserted: bool, was_never_issued: bool) -> Self {
        match (inserted, was_never_issued) {
            (false, _) => Self::None,
            (true, true) => Self::First,
            (true, false) => Self::AfterLoss,
        }
    }
}

/// Returns the salt of a day, or `None` if there is none yet or it was lost.
pub async fn find_salt(conn: &mut Conn, day: NaiveDate) -> Result<Option<[u8; SALT_BYTES]>, Error> {
    let salt = query_scalar!("select salt from salts where day = $1", day).fetch_optional(conn).await?;
    salt.map(|salt| read_salt("salts", salt)).transpose()
}

/// Stores a salt of a day unless there is one, and returns the one that is stored.
pub async fn insert_salt(
    conn: &mut Conn,
    day: NaiveDate,
    salt: &[u8; SALT_BYTES],
) -> Result<StoredSalt, Error> {
    let made = query!(
        r#"with stored as (
               insert into salts (day, salt) values ($1, $2) on conflict do nothing returning day
           ), issued as (
               insert into issued_salts (day) select day from stored on conflict do nothing returning day
           )
           select exists (select from stored) as "inserted!", exists (select from issued) as "was_never_issued!""#,
        day,
        salt,
    )
    .fetch_one(&mut *conn)
    .await?;
    // A separate statement: the first would not see a row that was committed meanwhile.
    let salt = query_scalar!("select salt from salts where day = $1", day).fetch_one(conn).await?;
    let insertion = Insertion::new(made.inserted, made.was_never_issued);
    Ok(StoredSalt { salt: read_salt("salts", salt)?, insertion })
}

/// Destroys the salts of all days before `day`.
pub async fn delete_salts_before(conn: &mut Conn, day: NaiveDate) -> Result<(), Error> {
    query!("delete from salts where day < $1", day).execute(&mut *conn).await?;
    query!("delete from issued_salts where day < $1", day).execute(conn).await?;
    Ok(())
}

pub(super) fn read_salt(table: &'static str, salt: Vec<u8>) -> Result<[u8; SALT_BYTES], Error> {
    let unreadable =
        |salt: Vec<u8>| Error::Unreadable { table, column: "salt", value: format!("{} bytes", salt.len()) };
    salt.try_into().map_err(unreadable)
}
