//! Who calls: a key's fingerprint looked up, and remembered for a second.
//!
//! The second is the promise that revocation holds everywhere within one, whatever Redis does; it also
//! makes `_meta` cost at most one indexed read.

use std::time::{Duration, Instant};

use cache::{Bounds, Fresh};
use domain::keys;
use store::keys::Caller;
use web::{Code, Problem};

/// The look-up of callers.
pub struct Callers {
    db: store::Db,
    pepper: Vec<u8>,
    known: Fresh<[u8; 32], Option<Caller>>,
}

impl Callers {
    /// Look-ups in `db`, remembered for `remember`.
    pub fn new(db: store::Db, pepper: &str, remember: Duration) -> Self {
        let bounds = Bounds { max_bytes: 32 << 20, fresh_for: remember, retry_after: remember };
        Self { db, pepper: pepper.as_bytes().to_vec(), known: Fresh::new(bounds, |_, _| 256) }
    }

    /// The fingerprint under which a key is stored.
    pub fn fingerprint(&self, key: &str) -> [u8; 32] {
        keys::fingerprint(&self.pepper, key)
    }

    /// Who calls with `key`; none for a key that is malformed, unknown or revoked.
    ///
    /// # Errors
    /// Postgres is away: what was remembered is too old to be trusted.
    pub async fn find(&self, key: &str) -> Result<Option<Caller>, Problem> {
        if keys::recognise(key).is_none() {
            return Ok(None);
        }
        let fingerprint = self.fingerprint(key);
        let look_up = async {
            let mut conn = store::acquire(&self.db).await?;
            store::keys::find_caller(&mut conn, &fingerprint).await
        };
        let served = self.known.get(&fingerprint, Instant::now(), look_up).await?;
        if served.stale {
            return Err(Problem::new(Code::Unavailable, "keys can't be checked right now").retry_after(2));
        }
        Ok(served.value)
    }
}
