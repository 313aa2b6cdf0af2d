//! Who calls: a credential's fingerprint looked up, and remembered for a second.
//!
//! The second is the promise that revocation holds everywhere within one, whatever Redis does; it also
//! makes `_meta` cost at most one indexed read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::{Bounds, StaleOnErrorCache};
use chrono::{DateTime, TimeDelta, Utc};
use domain::keys::{self, KeyKind, Pepper};
use domain::sessions;
use store::Conn;
use store::callers::{Caller, Credential};
use store::keys::Secret;
use uuid::Uuid;
use web::{Code, Problem};

/// Bytes an entry takes, about.
const ENTRY_BYTES: u32 = 1_024;

/// The look-up of callers.
pub struct CredentialCache {
    db: store::Db,
    pepper: Pepper,
    session_idle: TimeDelta,
    known: StaleOnErrorCache<[u8; 32], Option<Arc<Caller>>>,
}

impl CredentialCache {
    /// Look-ups in `db`, remembered for `remember`. A session in use goes on for `session_idle`.
    pub fn new(db: store::Db, pepper: Pepper, max_age: Duration, session_idle: TimeDelta) -> Self {
        let bounds = Bounds { max_bytes: 64 << 20, max_age, retry_interval: max_age };
        let known = StaleOnErrorCache::new(bounds, |_, _| ENTRY_BYTES);
        Self { db, pepper, session_idle, known }
    }

    /// What is stored of a new key.
    pub fn secret(&self, kind: KeyKind, key: &str) -> Secret {
        let fingerprint = self.pepper.fingerprint(key);
        Secret { fingerprint, shown_prefix: keys::shown_prefix(kind, key) }
    }

    /// Who calls with `key`.
    ///
    /// # Errors
    /// The key is malformed, unknown, revoked or expired; or Postgres is away, and what was remembered is too old to
    /// be trusted.
    pub async fn by_key(&self, key: &str, now: DateTime<Utc>) -> Result<Arc<Caller>, Problem> {
        let unknown = || {
            let detail = "this API key is not valid: mistyped, revoked, or its trial has ended";
            Problem::new(Code::Unauthenticated, detail).hint("get a new one with POST /api/trial")
        };
        // A typo is known by the key's checksum: nobody needs to be asked.
        keys::recognise(key).ok_or_else(unknown)?;
        let fingerprint = self.pepper.fingerprint(key);
        let look_up = async |conn: &mut Conn| store::callers::find_by_key(conn, &fingerprint, now).await;
        let caller = self.look_up(fingerprint, now, look_up).await?.ok_or_else(unknown)?;
        match caller.credential {
            Credential::Key { expires_at: Some(at), .. } if at <= now => {
                Err(Problem::new(Code::KeyExpired, "this API key has expired; make or rotate one"))
            }
            _ => Ok(caller),
        }
    }

    /// Who calls from a browser somebody has signed in with; `token_hash` is that of its cookie.
    ///
    /// # Errors
    /// The session has ended or works on no account; or Postgres is away.
    pub async fn by_session(&self, token_hash: [u8; 32], now: DateTime<Utc>) -> Result<Arc<Caller>, Problem> {
        let look_up = async |conn: &mut Conn| store::callers::find_by_session(conn, &token_hash, now).await;
        let caller = self.look_up(token_hash, now, look_up).await?;
        let goes_on = |caller: &Arc<Caller>| match caller.credential {
            Credential::Session { expires_at, .. } => expires_at > now,
            Credential::Key { .. } => false,
        };
        caller.filter(goes_on).ok_or_else(|| {
            let detail = "nobody is signed in here any more, or the sign-in has no account yet";
            Problem::new(Code::Unauthenticated, detail).hint("sign in at /login")
        })
    }

    async fn look_up(
        &self,
        fingerprint: [u8; 32],
        now: DateTime<Utc>,
        ask: impl AsyncFnOnce(&mut Conn) -> Result<Option<Caller>, store::Error>,
    ) -> Result<Option<Arc<Caller>>, Problem> {
        // Most calls end here, and must not carry the future of the slow path about with them: moving it took a
        // quarter of the time of GET /api/account.
        if let Some(known) = self.known.peek(&fingerprint, Instant::now()) {
            return Ok(known);
        }
        let look_up = Box::pin(async {
            let mut conn = store::acquire(&self.db).await?;
            let caller = ask(&mut conn).await?;
            if let Some(caller) = &caller {
                self.record_use(&mut conn, &caller.credential, now).await;
            }
            Ok::<_, store::Error>(caller.map(Arc::new))
        });
        let served = Box::pin(self.known.get(&fingerprint, Instant::now(), look_up)).await?;
        if served.stale {
            return Err(
                Problem::new(Code::Unavailable, "credentials can't be checked right now").retry_after(2)
            );
        }
        Ok(served.value)
    }

    /// Notes that a credential is in use, at most once a minute. Should it fail, the call goes on.
    async fn record_use(&self, conn: &mut Conn, credential: &Credential, now: DateTime<Utc>) {
        let noted = match credential {
            Credential::Key { id, last_used_at, .. } => {
                if last_used_at.is_some_and(|at| now - at < TimeDelta::minutes(1)) {
                    return;
                }
                store::keys::update_last_used(conn, *id, now).await
            }
            Credential::Session { id, last_seen_at, ends_at, .. } => {
                if !sessions::is_to_be_noted(now, *last_seen_at) {
                    return;
                }
                let expires_at = sessions::expiry(now, self.session_idle, *ends_at);
                store::sessions::update_seen(conn, *id, now, expires_at).await
            }
        };
        if let Err(error) = noted {
            tracing::warn!(%error, "that a credential is in use could not be noted");
        }
    }

    /// Asks again about keys that were rotated or revoked, and sessions that have ended or turned to another account:
    /// here at once, elsewhere within the second.
    pub fn invalidate(&self, fingerprints: &[impl AsRef<[u8]>]) {
        for bytes in fingerprints {
            if let Ok(fingerprint) = bytes.as_ref().try_into() {
                self.known.remove(&fingerprint);
            }
        }
    }

    /// Asks again about everybody who calls for an account.
    pub fn invalidate_account(&self, account_id: Uuid) {
        self.known
            .remove_where(|_, caller| caller.as_ref().is_some_and(|caller| caller.account.id == account_id));
    }
}
