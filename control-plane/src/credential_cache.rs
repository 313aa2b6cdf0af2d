//! Caches credentials by fingerprint.
//!
//! Its max age bounds how long a revoked key still works on other replicas, even without Redis. It also limits `_meta` to
//! one indexed read per max age.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::{Bounds, StaleOnErrorCache};
use chrono::{DateTime, TimeDelta, Utc};
use domain::keys::{self, KeyKind, Pepper};
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
    pepper: Pepper,
    session_idle_timeout: TimeDelta,
    cache: StaleOnErrorCache<[u8; 32], Option<Arc<Caller>>>,
}

impl CredentialCache {
    /// Entries are fresh for `max_age`. Each use of a session extends it by `session_idle_timeout`.
    pub fn new(db: store::Db, pepper: Pepper, max_age: Duration, session_idle_timeout: TimeDelta) -> Self {
        let bounds = Bounds { max_bytes: 64 << 20, max_age, retry_interval: max_age };
        let cache = StaleOnErrorCache::new(bounds, |_, _| ENTRY_BYTES);
        Self { db, pepper, session_idle_timeout, cache }
    }

    /// Returns the stored form of a new key.
    pub fn secret(&self, kind: KeyKind, key: &str) -> Secret {
        let fingerprint = self.pepper.fingerprint(key);
        Secret { fingerprint, shown_prefix: keys::shown_prefix(kind, key) }
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
        keys::kind_of(key).ok_or_else(unknown)?;
        let fingerprint = self.pepper.fingerprint(key);
        let look_up = async |conn: &mut Conn| store::credentials::find_by_key(conn, &fingerprint, now).await;
        let caller = self.look_up(fingerprint, now, look_up).await?.ok_or_else(unknown)?;
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
        let look_up =
            async |conn: &mut Conn| store::credentials::find_by_session(conn, &token_hash, now).await;
        let caller = self.look_up(token_hash, now, look_up).await?;
        let is_valid = |caller: &Arc<Caller>| match caller.credential {
            Credential::Session { expires_at, .. } => expires_at > now,
            Credential::Key { .. } => false,
        };
        caller.filter(is_valid).ok_or_else(|| {
            let detail = "this session has ended, or it has no account yet";
            Problem::new(Code::Unauthenticated, detail).hint("sign in at /login")
        })
    }

    async fn look_up(
        &self,
        fingerprint: [u8; 32],
        now: DateTime<Utc>,
        query: impl AsyncFnOnce(&mut Conn) -> Result<Option<Caller>, store::Error>,
    ) -> Result<Option<Arc<Caller>>, Problem> {
        // Most calls return here. The slow path is boxed below, because moving its large future took a quarter of the
        // time of GET /api/account.
        if let Some(caller) = self.cache.peek(&fingerprint, Instant::now()) {
            return Ok(caller);
        }
        let look_up = Box::pin(async {
            let mut conn = store::acquire(&self.db).await?;
            let caller = query(&mut conn).await?;
            if let Some(caller) = &caller {
                self.record_use(&mut conn, &caller.credential, now).await;
            }
            Ok::<_, store::Error>(caller.map(Arc::new))
        });
        let lookup = Box::pin(self.cache.get(&fingerprint, Instant::now(), look_up)).await?;
        if lookup.stale {
            return Err(
                Problem::new(Code::Unavailable, "credentials can't be verified right now").retry_after(2)
            );
        }
        Ok(lookup.value)
    }

    /// Records the use of a credential, at most once per minute. A failure does not fail the call.
    async fn record_use(&self, conn: &mut Conn, credential: &Credential, now: DateTime<Utc>) {
        let recorded = match credential {
            Credential::Key { id, last_used_at, .. } => {
                if last_used_at.is_some_and(|at| now - at < TimeDelta::minutes(1)) {
                    return;
                }
                store::keys::update_last_used(conn, *id, now).await
            }
            Credential::Session { id, last_seen_at, ends_at, .. } => {
                if !sessions::must_record_use(now, *last_seen_at) {
                    return;
                }
                let expires_at = sessions::expiry(now, self.session_idle_timeout, *ends_at);
                store::sessions::update_seen(conn, *id, now, expires_at).await
            }
        };
        if let Err(error) = recorded {
            tracing::warn!(%error, "failed to record the use of a credential");
        }
    }

    /// Removes rotated or revoked keys, and sessions that ended or switched accounts. Other replicas drop them within the
    /// max age.
    pub fn invalidate(&self, fingerprints: &[impl AsRef<[u8]>]) {
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
