//! Daily salts of visitor ids, shared by all collectors and destroyed after two days.

use chrono::NaiveDate;
use domain::visitors::SALT_BYTES;
use sqlx::{query, query_scalar};

use crate::{Conn, Error};

/// Returns the salt of a day. Stores `fresh` if there is none yet; concurrent collectors all get the one stored first.
pub async fn get_salt(
    conn: &mut Conn,
    day: NaiveDate,
    fresh: &[u8; SALT_BYTES],
) -> Result<[u8; SALT_BYTES], Error> {
    // Separate statements: a single one would not see a row that was committed meanwhile.
    query!("insert into salts (day, salt) values ($1, $2) on conflict do nothing", day, fresh)
        .execute(&mut *conn)
        .await?;
    let salt = query_scalar!("select salt from salts where day = $1", day).fetch_one(conn).await?;
    let unreadable = |salt: Vec<u8>| Error::Unreadable {
        table: "salts",
        column: "salt",
        value: format!("{} bytes", salt.len()),
    };
    salt.try_into().map_err(unreadable)
}

/// Destroys the salts of all days before `day`.
pub async fn delete_salts_before(conn: &mut Conn, day: NaiveDate) -> Result<(), Error> {
    query!("delete from salts where day < $1", day).execute(conn).await?;
    Ok(())
}
