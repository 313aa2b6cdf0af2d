//! `Idempotency-Key` on submissions: what is sent again is answered again, and stored once.
//!
//! The answer is kept in the transaction that stores the submission: there is no moment at which a kill leaves the
//! one without the other. Refusals aren't kept: what was wrong may be mended and sent under the same key.

use chrono::{DateTime, Utc};
use domain::FieldError;
use domain::encryption::{MasterKey, NONCE_BYTES};
use domain::idempotency::{CallId, is_key};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use store::idempotency::Claim;
use uuid::Uuid;
use web::{Code, Problem};

use super::body::Sent;
use crate::state::EdgeState;

const HEADER: &str = "idempotency-key";

/// What a program is answered.
pub(super) struct Receipt(pub(super) String);

/// A call under a key of its caller's.
pub(super) struct Call(CallId);

/// What is kept of one.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Of what was sent.
    digest: [u8; 32],
    body: String,
}

impl Call {
    /// The call as its headers name it; none if they don't.
    ///
    /// # Errors
    /// A problem: the key is none.
    pub(super) fn read(
        master_key: &MasterKey,
        form_id: Uuid,
        headers: &HeaderMap,
    ) -> Result<Option<Self>, Problem> {
        let mut keys = headers.get_all(HEADER).iter();
        let Some(key) = keys.next() else { return Ok(None) };
        let key = Some(key).filter(|key| is_key(key.as_bytes())).and_then(|key| key.to_str().ok());
        let key = key.filter(|_| keys.next().is_none()).ok_or_else(|| {
            let message = "Idempotency-Key must be one text of 1 to 255 visible ASCII characters";
            Problem::validation(vec![FieldError::new("Idempotency-Key", "format", message)])
        })?;
        // Visitors have no credential: whoever knows form and key means the same call.
        Ok(Some(Self(CallId::new(master_key, "visitor", &form_id.to_string(), key))))
    }

    /// What was answered to this call after `after`, if it was made; else it is this transaction's to make.
    ///
    /// # Errors
    /// A problem: another is at it right now, or it was made with something else.
    pub(super) async fn look(
        &self,
        conn: &mut store::Conn,
        account_id: Uuid,
        sent: &Sent,
        after: DateTime<Utc>,
    ) -> Result<Option<Receipt>, Problem> {
        match store::idempotency::lock_call(conn, account_id, &self.0.fingerprint(), after).await? {
            Claim::Granted => Ok(None),
            Claim::InFlight => {
                let detail = "a submission with this Idempotency-Key is being stored right now";
                Err(Problem::new(Code::Conflict, detail).retry_after(1))
            }
            Claim::Completed(sealed) => self.open(&sealed, sent).map(Some),
        }
    }

    /// What was answered to this call, if it was made; it is nobody's to make then.
    ///
    /// # Errors
    /// A problem: it was made with something else, or Postgres is away.
    pub(super) async fn find(
        &self,
        edge: &EdgeState,
        account_id: Uuid,
        sent: &Sent,
    ) -> Result<Option<Receipt>, Problem> {
        let after = self.answered_after(edge, edge.clock.now());
        let fingerprint = self.0.fingerprint();
        let find = async |conn: &mut store::Conn| {
            Ok(store::idempotency::find_response(conn, account_id, &fingerprint, after).await?)
        };
        let sealed = edge.ask(find).await?;
        sealed.map(|sealed| self.open(&sealed, sent)).transpose()
    }

    /// Since when answers are kept.
    pub(super) fn answered_after(&self, edge: &EdgeState, now: DateTime<Utc>) -> DateTime<Utc> {
        now - edge.form_rules.answers_kept_for
    }

    /// A kept answer, if it is one to what was sent now.
    fn open(&self, sealed: &[u8], sent: &Sent) -> Result<Receipt, Problem> {
        let kept: Kept = serde_json::from_slice(&self.0.open(sealed)?).map_err(|error| {
            tracing::error!(%error, "a kept answer is of another version");
            Problem::new(Code::Internal, "the first answer to this Idempotency-Key can't be read any more")
        })?;
        if kept.digest == sent.digest {
            return Ok(Receipt(kept.body));
        }
        let detail = "this Idempotency-Key was used for another submission of this form";
        Err(Problem::new(Code::IdempotencyMismatch, detail)
            .hint("use a new key for a new submission, and the same key only to send the same one again"))
    }

    /// Keeps the answer, if the transaction is committed.
    ///
    /// # Errors
    /// A problem of the database's.
    pub(super) async fn keep(
        &self,
        conn: &mut store::Conn,
        account_id: Uuid,
        sent: &Sent,
        receipt: &Receipt,
        nonce: [u8; NONCE_BYTES],
        now: DateTime<Utc>,
    ) -> Result<(), Problem> {
        let kept = Kept { digest: sent.digest, body: receipt.0.clone() };
        let text =
            serde_json::to_vec(&kept).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        let sealed = self.0.seal(nonce, &text);
        store::idempotency::insert_response(conn, account_id, &self.0.fingerprint(), &sealed, now).await?;
        Ok(())
    }
}
