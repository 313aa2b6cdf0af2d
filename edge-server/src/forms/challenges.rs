//! Proofs of work for forms that ask for them: a challenge for whoever is about to answer, and what becomes of a proof.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use domain::proof_of_work;
use http::header;
use serde_json::json;
use store::forms::OpenForm;
use store::idempotency::Claim;
use uuid::Uuid;
use web::{Path, Problem};

use crate::state::EdgeState;

/// `GET /api/forms/{id}/challenge`: puzzles for one answer to the form. They cost nothing to give out.
pub(crate) async fn give(
    State(edge): State<EdgeState>,
    Path(form_id): Path<Uuid>,
) -> Result<Response, Problem> {
    let open = edge.forms.find(form_id).await?;
    let within = TimeDelta::from_std(edge.form_rules.proof_within).unwrap_or_default();
    let expires_at = edge.clock.now() + within;
    let body = json!({
        "challenge": proof_of_work::challenge(edge.forms.key(), open.form.id, expires_at, edge.rng.bytes()),
        "puzzles": proof_of_work::PUZZLES,
        "bits": proof_of_work::BITS,
        "expiresAt": expires_at,
    });
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, body.to_string()).into_response())
}

/// Whether `proof` is one for this form that nobody has used. If the transaction is committed, it is used; of two that
/// bring the same at once, one has it.
///
/// # Errors
/// A problem of the database's.
pub(crate) async fn spend(
    edge: &EdgeState,
    conn: &mut store::Conn,
    open: &OpenForm,
    proof: &str,
    now: DateTime<Utc>,
) -> Result<bool, Problem> {
    let key = edge.forms.key();
    let Some(challenge) = proof_of_work::verify(key, open.form.id, proof, now) else { return Ok(false) };
    // A challenge is remembered as a call that was made: for longer than it is good.
    let fingerprint = key.digest("form.challenge.used", &[challenge]);
    let after = now - TimeDelta::from_std(edge.form_rules.answers_kept_for).unwrap_or_default();
    if store::idempotency::lock_call(conn, open.account_id, &fingerprint, after).await? != Claim::Granted {
        return Ok(false);
    }
    store::idempotency::insert_response(conn, open.account_id, &fingerprint, &[], now).await?;
    Ok(true)
}
