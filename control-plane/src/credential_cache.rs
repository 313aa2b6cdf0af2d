//! Caches credentials by fingerprint.
//!
//! During a rotation of the pepper a key is found under each of its fingerprints, and its recorded use stores it under that of
//! the first pepper: once a minute at most, so that replicas with different first peppers don't write more than without.
//!
//! Its max age bounds how long a revoked key still works on other replicas, even without Redis. It also limits `_meta` to
//! one indexed read per max age.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::{Bounds, StaleOnErrorCache};
use chrono::{DateTime, TimeDelta, Utc};
use domain::keys::{self, KeyKind};
use domain::peppers::Peppers;
use domain::sessions;
use store::Conn;
use store::credentials::{Caller, Credential};
use store::keys::Secret;
use uuid::Uuid;
use web::{Code, Problem};

/// Approximate size of an entry.
const ENTRY_BYTES: u32 = 1_024;

/// Looks up the callers of API keys and sessions, and caches them.
pub struct CredentialCache {
    db: store::Db,
    peppers: Peppers,
    session_idle_timeout: TimeDelta,
    cache: StaleOnErrorCache<[u8; 32], Option<Arc<Caller>>>,
}

impl CredentialCache {
    /// Entries are fresh for `max_age`. Each use of a session extends it by `session_idle_timeout`.
    pub fn new(db: store::Db, peppers: Peppers, max_age: Duration, session_idle_timeout: TimeDelta) -> Self {
        let bounds = Bounds { max_bytes: 64 << 20, max_age, retry_interval: max_age };
        let cache = StaleOnErrorCache::new(bounds, |_, _| ENTRY_BYTES);
        Self { db, peppers, session_idle_timeout, cache }
    }

    /// Returns the stored form of a new key.
    pub fn secret(&self, kind: KeyKind, key: &str) -> Secret {
        Secret::new(&self.peppers, kind, key)
    }

    /// Returns the caller of an API key.
    ///
    /// # Errors
    /// 401 if the key is malformed, unknown, revoked or expired; 503 if Postgres is unavailable and the cached entry is
    /// stale.
    pub async fn by_key(&self, key: &str, now: DateTime<Utc>) -> Result<Arc<Caller>, Problem> {
        let unknown = || {
            let detail = "this API key is not valid: mistyped, revoked, or its trial has ended";
            Problem::new(Code::Unauthenticated, detail).hint("get a new one with POST /api/trial")
        };
        // The checksum detects typing errors without a query.
        let kind = keys::kind_of(key).ok_or_else(unknown)?;
        let look_up = async |conn: &mut Conn| {
            // The key may be stored under any of the peppers.
            let caller = store::credentials::find_by_key(conn, &self.peppers.fingerprints(key), now).await?;
            if let Some(Credential::Key { id, last_used_at, stored, .. }) = caller.as_ref().map(credential)
                && last_used_at.is_none_or(|at| now - at >= TimeDelta::minutes(1))
            {
                let secret = self.secret(kind, key);
                log_failure(store::keys::update_used(conn, id, &stored, &secret, now).await);
            }
            Ok(caller)
        };
        let caller = self.look_up(self.peppers.fingerprint(key), look_up).await?.ok_or_else(unknown)?;
        match caller.credential {
            Credential::Key { expires_at: Some(at), .. } if at <= now => {
                Err(Problem::new(Code::KeyExpired, "this API key has expired; make or rotate one"))
            }
            _ => Ok(caller),
        }
    }

    /// Returns the caller of a session; `token_hash` is the hash of its cookie's token.
    ///
    /// # Errors
    /// 401 if the session has ended or has no account; 503 as in [`CredentialCache::by_key`].
    pub async fn by_session(&self, token_hash: [u8; 32], now: DateTime<Utc>) -> Result<Arc<Caller>, Problem> {
        let look_up = async |conn: &mut Conn| {
            let caller = store::credentials::find_by_session(conn, &token_hash, now).await?;
            if let Some(Credential::Session { id, last_seen_at, ends_at, .. }) =
                caller.as_ref().map(credential)
                && sessions::must_record_use(now, last_seen_at)
            {
                let expires_at = sessions::expiry(now, self.session_idle_timeout, ends_at);
                log_failure(store::sessions::update_seen(conn, id, now, expires_at).await);
            }
            Ok(caller)
        };
        let caller = self.look_up(token_hash, look_up).await?;
        let is_valid = |caller: &Arc<Caller>| match caller.credential {
            Credential::Session { expires_at, .. } => expires_at > now,
            Credential::Key { .. } => false,
        };
        caller.filter(is_valid).ok_or_else(|| {
            let detail = "this session has ended, or it has no account yet";
            let hint = "sign in at /login, or create an account at /account";
            Problem::new(Code::Unauthenticated, detail).hint(hint)
        })
    }

    async fn look_up(
        &self,
        fingerprint: [u8; 32],
        query: impl AsyncFnOnce(&mut Conn) -> Result<Option<Caller>, store::Error>,
    ) -> Result<Option<Arc<Caller>>, Problem> {
        // Most calls return here. The slow path is boxed below, because moving its large future took a quarter of the
        // time of GET /api/account.
        if let Some(caller) = self.cache.peek(&fingerprint, Instant::now()) {
            return Ok(caller);
        }
        let look_up = Box::pin(async {
            let mut conn = store::acquire(&self.db).await?;
            Ok::<_, store::Error>(query(&mut conn).await?.map(Arc::new))
        });
        let lookup = Box::pin(self.cache.get(&fingerprint, Instant::now(), look_up)).await?;
        if lookup.stale {
            return Err(
                Problem::new(Code::Unavailable, "credentials can't be verified right now").retry_after(2)
            );
        }
        Ok(lookup.value)
    }

    /// Removes rotated or revoked keys, and sessions that ended or switched accounts. Other replicas drop them within the
    /// max age.
    pub fn invalidate(&self, fingerprints: &[impl AsRef<[u8]>]) {
        if self.peppers.is_rotating() {
            // A key is cached under the fingerprint by the first pepper, and may be stored under another.
            let is_one = |digest: &[u8; 32]| fingerprints.iter().any(|bytes| bytes.as_ref() == digest);
            let matches = |caller: &Arc<Caller>| caller.fingerprints.iter().any(is_one);
            self.cache.remove_where(|_, caller| caller.as_ref().is_some_and(matches));
            return;
        }
        for bytes in fingerprints {
            if let Ok(fingerprint) = bytes.as_ref().try_into() {
                self.cache.remove(&fingerprint);
            }
        }
    }

    /// Removes all callers of an account.
    pub fn invalidate_account(&self, account_id: Uuid) {
        self.cache
            .remove_where(|_, caller| caller.as_ref().is_some_and(|caller| caller.account.id == account_id));
    }
}

fn credential(caller: &Caller) -> Credential {
    caller.credential
}

/// A use that is not recorded does not fail the call.
fn log_failure(recorded: Result<(), store::Error>) {
    if let Err(error) = recorded {
        tracing::warn!(%error, "failed to record the use of a credential");
    }
}
