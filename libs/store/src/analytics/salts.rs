//! The daily salts of visitor ids: shared by all collectors, and gone after two days.

use chrono::NaiveDate;
use domain::visitors::SALT_BYTES;
use sqlx::{query, query_scalar};

use crate::{Conn, Error};

/// The salt of a day. `fresh` becomes it if there is none yet; collectors that ask at the same moment agree on
/// whichever came first.
pub async fn get_salt(
    conn: &mut Conn,
    day: NaiveDate,
    fresh: &[u8; SALT_BYTES],
) -> Result<[u8; SALT_BYTES], Error> {
    // Two statements: within one, the other's row, committed meanwhile, would not be seen.
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
