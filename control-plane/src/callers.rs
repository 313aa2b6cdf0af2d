//! Who calls: a credential's fingerprint looked up, and remembered for a second.
//!
//! The second is the promise that revocation holds everywhere within one, whatever Redis does; it also
//! makes `_meta` cost at most one indexed read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::{Bounds, Fresh};
use chrono::{DateTime, TimeDelta, Utc};
use domain::keys::{self, KeyKind};
use http::header;
use http::request::Parts;
use store::callers::{Caller, Credential};
use store::keys::Secret;
use uuid::Uuid;
use web::{Code, Problem};

/// Bytes an entry takes, about.
const ENTRY_BYTES: u32 = 1_024;

/// The look-up of callers.
pub struct Callers {
    db: store::Db,
    pepper: Vec<u8>,
    known: Fresh<[u8; 32], Option<Arc<Caller>>>,
}

impl Callers {
    /// Look-ups in `db`, remembered for `remember`.
    pub fn new(db: store::Db, pepper: &str, remember: Duration) -> Self {
        let bounds = Bounds { max_bytes: 64 << 20, fresh_for: remember, retry_after: remember };
        Self { db, pepper: pepper.as_bytes().to_vec(), known: Fresh::new(bounds, |_, _| ENTRY_BYTES) }
    }

    /// What is stored of a new key.
    pub fn secret(&self, kind: KeyKind, key: &str) -> Secret {
        let fingerprint = keys::fingerprint(&self.pepper, key);
        Secret { fingerprint, shown_prefix: keys::shown_prefix(kind, key) }
    }

    /// Who makes a request.
    ///
    /// # Errors
    /// It carries no credential, or one that is not valid.
    pub async fn of(&self, parts: &Parts, now: DateTime<Utc>) -> Result<Arc<Caller>, Problem> {
        let caller = self.find(bearer(parts)?, now).await?.ok_or_else(|| {
            Problem::new(
                Code::Unauthenticated,
                "this API key is not valid: mistyped, revoked, or its trial has ended",
            )
            .hint("get a new one with POST /api/trial")
        })?;
        let Credential::Key { expires_at, .. } = caller.credential;
        if expires_at.is_some_and(|at| at <= now) {
            return Err(Problem::new(Code::KeyExpired, "this API key has expired; make or rotate one"));
        }
        Ok(caller)
    }

    /// Who calls with `key`; none for a key that is malformed, unknown or revoked.
    ///
    /// # Errors
    /// Postgres is away: what was remembered is too old to be trusted.
    pub async fn find(&self, key: &str, now: DateTime<Utc>) -> Result<Option<Arc<Caller>>, Problem> {
        if keys::recognise(key).is_none() {
            return Ok(None);
        }
        let fingerprint = keys::fingerprint(&self.pepper, key);
        let look_up = async {
            let mut conn = store::acquire(&self.db).await?;
            let caller = store::callers::find_by_key(&mut conn, &fingerprint, now).await?;
            if let Some(caller) = &caller {
                note_use(&mut conn, &caller.credential, now).await;
            }
            Ok::<_, store::Error>(caller.map(Arc::new))
        };
        let served = self.known.get(&fingerprint, Instant::now(), look_up).await?;
        if served.stale {
            return Err(Problem::new(Code::Unavailable, "keys can't be checked right now").retry_after(2));
        }
        Ok(served.value)
    }

    /// Asks again about keys that were rotated or revoked: here at once, elsewhere within the second.
    pub fn forget(&self, fingerprints: &[Vec<u8>]) {
        for fingerprint in fingerprints.iter().filter_map(|bytes| <[u8; 32]>::try_from(bytes.as_slice()).ok())
        {
            self.known.remove(&fingerprint);
        }
    }

    /// Asks again about everybody who calls for an account.
    pub fn forget_account(&self, account_id: Uuid) {
        self.known
            .remove_where(|_, caller| caller.as_ref().is_some_and(|caller| caller.account.id == account_id));
    }
}

fn bearer(parts: &Parts) -> Result<&str, Problem> {
    let header = parts.headers.get(header::AUTHORIZATION);
    let header = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, key) = header.split_once(' ').unwrap_or((header, ""));
    if !scheme.eq_ignore_ascii_case("bearer") || key.trim().is_empty() {
        let detail = "this call needs an API key in its `Authorization: Bearer <key>` header";
        return Err(Problem::new(Code::Unauthenticated, detail).hint("get one with POST /api/trial"));
    }
    Ok(key.trim())
}

/// Notes that a key was used, at most once a minute. Should it fail, the call goes on.
async fn note_use(conn: &mut store::Conn, credential: &Credential, now: DateTime<Utc>) {
    let Credential::Key { id, last_used_at, .. } = credential;
    if last_used_at.is_some_and(|at| now - at < TimeDelta::minutes(1)) {
        return;
    }
    if let Err(error) = store::keys::update_last_used(conn, *id, now).await {
        tracing::warn!(%error, "a key's last use could not be noted");
    }
}
