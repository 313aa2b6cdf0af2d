//! `Idempotency-Key` on submissions: a repeated call gets the first response and is stored once.
//!
//! The response is stored in the transaction of the submission, so no crash leaves one without the other. Rejected calls
//! are not stored, because a client may correct the submission and send it under the same key.

use chrono::{DateTime, Utc};
use domain::FieldError;
use domain::encryption::{MasterKey, NONCE_BYTES};
use domain::idempotency::{CallId, is_key};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::forms::OpenForm;
use store::idempotency::Claim;
use uuid::Uuid;
use web::{Code, Problem};

use super::submitted_body::SubmittedBody;
use crate::forms::redirect::redirect_target;
use crate::state::EdgeState;

const HEADER: &str = "idempotency-key";

/// The JSON response to a stored submission.
pub(super) struct Receipt(pub(super) String);

impl Receipt {
    /// `ignored` are the names of unknown fields that were dropped.
    pub(super) fn new(open: &OpenForm, submission_id: Uuid, ignored: &[String], now: DateTime<Utc>) -> Self {
        let message = "Thank you. Your answers have been received.";
        let mut body = json!({
            "success": true,
            "submissionId": submission_id,
            "message": open.form.success_message.as_deref().unwrap_or(message),
            "redirectUrl": redirect_target(open),
            "createdAt": now,
        });
        if !ignored.is_empty() {
            body["ignoredFields"] = json!(ignored);
        }
        Self(body.to_string())
    }

    /// Returns the submission that was stored.
    pub(super) fn submission_id(&self) -> Option<Uuid> {
        let body: Value = serde_json::from_str(&self.0).ok()?;
        body["submissionId"].as_str()?.parse().ok()
    }
}

/// A call with an idempotency key.
pub(super) struct IdempotentCall(CallId);

/// The stored response of a call.
#[derive(Serialize, Deserialize)]
struct StoredResponse {
    /// The digest of the request body.
    digest: [u8; 32],
    body: String,
}

impl IdempotentCall {
    /// Reads the key; `None` without one.
    ///
    /// # Errors
    /// The key is invalid.
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
        // Visitors have no credential, so form and key alone identify the call.
        Ok(Some(Self(CallId::new(master_key, "visitor", &form_id.to_string(), key))))
    }

    /// Locks the call in the transaction. Returns the stored response if the call was made after `after`.
    ///
    /// # Errors
    /// The call is in flight, or was made with another body.
    pub(super) async fn lock(
        &self,
        conn: &mut store::Conn,
        account_id: Uuid,
        body: &SubmittedBody,
        after: DateTime<Utc>,
    ) -> Result<Option<Receipt>, Problem> {
        match store::idempotency::lock_call(conn, account_id, &self.0.fingerprint(), after).await? {
            Claim::Granted => Ok(None),
            Claim::InFlight => {
                let detail = "a submission with this Idempotency-Key is being stored right now";
                Err(Problem::new(Code::Conflict, detail).retry_after(1))
            }
            Claim::Completed(sealed) => self.open(&sealed, body).map(Some),
        }
    }

    /// Returns the stored response if the call was made, without locking the call.
    ///
    /// # Errors
    /// The call was made with another body, or Postgres is unavailable.
    pub(super) async fn find(
        &self,
        state: &EdgeState,
        account_id: Uuid,
        body: &SubmittedBody,
    ) -> Result<Option<Receipt>, Problem> {
        let after = self.stored_after(state, state.clock.now());
        let fingerprint = self.0.fingerprint();
        let find = async |conn: &mut store::Conn| {
            Ok(store::idempotency::find_response(conn, account_id, &fingerprint, after).await?)
        };
        let sealed = state.db.query(find).await?;
        sealed.map(|sealed| self.open(&sealed, body)).transpose()
    }

    /// Returns the time before which stored responses are ignored.
    pub(super) fn stored_after(&self, state: &EdgeState, now: DateTime<Utc>) -> DateTime<Utc> {
        now - state.form_settings.idempotency_ttl
    }

    /// Decrypts a stored response, and checks that it belongs to this body.
    fn open(&self, sealed: &[u8], body: &SubmittedBody) -> Result<Receipt, Problem> {
        let stored: StoredResponse = serde_json::from_slice(&self.0.open(sealed)?).map_err(|error| {
            tracing::error!(%error, "a stored response has an unknown format");
            Problem::new(Code::Internal, "the first answer to this Idempotency-Key can't be read any more")
        })?;
        if stored.digest == body.digest {
            return Ok(Receipt(stored.body));
        }
        let detail = "this Idempotency-Key was used for another submission of this form";
        Err(Problem::new(Code::IdempotencyMismatch, detail)
            .hint("use a new key for a new submission, and the same key only to send the same one again"))
    }

    /// Stores the response in the transaction.
    pub(super) async fn store(
        &self,
        conn: &mut store::Conn,
        account_id: Uuid,
        body: &SubmittedBody,
        receipt: &Receipt,
        nonce: [u8; NONCE_BYTES],
        now: DateTime<Utc>,
    ) -> Result<(), Problem> {
        let stored = StoredResponse { digest: body.digest, body: receipt.0.clone() };
        let json =
            serde_json::to_vec(&stored).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        let sealed = self.0.seal(nonce, &json);
        store::idempotency::insert_response(conn, account_id, &self.0.fingerprint(), &sealed, now).await?;
        Ok(())
    }
}
