//! Proofs of work for forms that require them: issues challenges and redeems solved ones.

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

/// `GET /api/forms/{id}/challenge`: the puzzles for one submission. Issuing them stores nothing.
pub(crate) async fn issue(
    State(state): State<EdgeState>,
    Path(form_id): Path<Uuid>,
) -> Result<Response, Problem> {
    let open = state.forms.find(form_id).await?;
    let ttl = TimeDelta::from_std(state.form_settings.challenge_ttl).unwrap_or_default();
    let expires_at = state.clock.now() + ttl;
    let body = json!({
        "challenge": proof_of_work::challenge(state.form_renderer.key(), open.form.id, expires_at, state.rng.bytes()),
        "puzzles": proof_of_work::PUZZLES,
        "bits": proof_of_work::BITS,
        "expiresAt": expires_at,
    });
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, body.to_string()).into_response())
}

/// Returns whether `proof` solves an unused challenge of this form, and marks it as used in the transaction. Of two
/// concurrent submissions with the same proof one succeeds.
pub(crate) async fn redeem(
    state: &EdgeState,
    conn: &mut store::Conn,
    open: &OpenForm,
    proof: &str,
    now: DateTime<Utc>,
) -> Result<bool, Problem> {
    let key = state.form_renderer.key();
    let Some(challenge) = proof_of_work::verify(key, open.form.id, proof, now) else { return Ok(false) };
    // A used challenge is stored like an idempotent call, which is retained for longer than the challenge is valid.
    let fingerprint = key.digest("form.challenge.used", &[challenge]);
    let after = now - TimeDelta::from_std(state.form_settings.idempotency_ttl).unwrap_or_default();
    if store::idempotency::lock_call(conn, open.account_id, &fingerprint, after).await? != Claim::Granted {
        return Ok(false);
    }
    store::idempotency::insert_response(conn, open.account_id, &fingerprint, &[], now).await?;
    Ok(true)
}
