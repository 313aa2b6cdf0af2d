//! The master keys of stored secrets: which are in use, which are missing, and re-encryption under the first key. Serves
//! operators, so nothing here takes an account.

mod columns;

use std::fmt;
use std::time::Duration;

use domain::encryption::{DecryptError, MasterKey, NONCE_BYTES};

pub use columns::{KeyUse, SealedColumn, list_idempotency_key_uses, list_key_uses};

use crate::{Conn, Db, Error, acquire_detached};
use columns::{list_resealable, replace};

/// Timeout of the statements of [`report_unreadable`], which read whole columns.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Stored values that no configured key opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The column.
    pub column: SealedColumn,
    /// Number of its values with this key id.
    pub values: i64,
    /// The reason; it names the missing key.
    pub error: DecryptError,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, values, error } = self;
        write!(f, "{column} ({values} {}): {error}", if *values == 1 { "value" } else { "values" })
    }
}

/// Returns what `keys` don't open. Tries one value for each column and key id in use.
pub async fn find_unreadable(conn: &mut Conn, keys: &MasterKey) -> Result<Vec<Unreadable>, Error> {
    let mut unreadable = Vec::new();
    for column in SealedColumn::ALL {
        for key_use in list_key_uses(conn, column).await? {
            // Deleted meanwhile if there is none.
            let Some(sample) = key_use.sample else { continue };
            if let Err(error) = keys.open(column.purpose(), &sample) {
                unreadable.push(Unreadable { column, values: key_use.values, error });
            }
        }
    }
    Ok(unreadable)
}

/// Returns what `keys` don't open, as a text that names ids and columns. It is empty if they open everything.
pub async fn report_unreadable(db: &Db, keys: &MasterKey) -> Result<String, Error> {
    let mut conn = acquire_detached(db, REPORT_TIMEOUT).await?;
    let unreadable = find_unreadable(&mut conn, keys).await?;
    Ok(unreadable.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// The outcome of one step of re-encryption.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Where the next step begins; `None` at the end of the column.
    pub next: Option<String>,
    /// Number of values that the first key has sealed now.
    pub resealed: u64,
    /// Number of values that were locked or changed meanwhile. Another pass finds those that remain.
    pub postponed: u64,
    /// Rows with a value that no key opens, with the reason.
    pub unreadable: Vec<(String, DecryptError)>,
}

/// Re-encrypts up to `limit` values of a column after the row `after` that the first key of `keys` has not sealed. Each is
/// replaced only if it is unchanged, and locked rows are left out: no transaction of a service waits for this one
/// longer than the statement takes, and none can deadlock with it.
pub async fn reseal_batch(
    conn: &mut Conn,
    column: SealedColumn,
    keys: &MasterKey,
    nonce: impl Fn() -> [u8; NONCE_BYTES],
    after: Option<&str>,
    limit: u32,
) -> Result<Batch, Error> {
    let header = keys.sealing_id().header();
    let rows = list_resealable(conn, column, &header, after, i64::from(limit)).await?;
    let is_last = rows.len() < usize::try_from(limit).unwrap_or(usize::MAX);
    let next = rows.last().filter(|_| !is_last).map(|row| row.key.clone());
    let mut batch = Batch { next, ..Batch::default() };
    let (mut row_keys, mut old, mut new) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        match keys.open(column.purpose(), &row.sealed) {
            Ok(text) => {
                new.push(keys.seal(column.purpose(), nonce(), &text));
                row_keys.push(row.key);
                old.push(row.sealed);
            }
            Err(error) => batch.unreadable.push((row.key, error)),
        }
    }
    if !row_keys.is_empty() {
        batch.resealed = replace(conn, column, &row_keys, &old, &new).await?;
        batch.postponed = (row_keys.len() as u64).saturating_sub(batch.resealed);
    }
    Ok(batch)
}
