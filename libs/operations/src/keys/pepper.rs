//! API keys by the pepper that they are stored under.

use anyhow::Result;
use chrono::{DateTime, Utc};
use domain::peppers::Peppers;
use store::Conn;
use store::key_peppers::{KeyOnPepper, PepperUse, list_keys_on_other_peppers, list_pepper_uses};
use uuid::Uuid;

/// How far the rotation of the pepper is.
#[derive(Debug)]
pub struct PepperStatus {
    /// The configured peppers' ids, that of the first one first.
    pub configured: Vec<String>,
    /// Working keys by pepper.
    pub uses: Vec<PepperUse>,
    /// Working keys that are not stored under the first pepper, up to the limit.
    pub on_others: Vec<KeyOnPepper>,
}

impl PepperStatus {
    /// Working keys that are not stored under the first pepper.
    #[must_use]
    pub fn count_on_others(&self) -> i64 {
        let first = self.configured.first();
        self.uses.iter().filter(|one| one.pepper_id.as_ref() != first).map(|one| one.keys).sum()
    }
}

/// Returns how many working keys are stored under each pepper, and up to `limit` of those that need an old one.
pub async fn pepper_status(
    conn: &mut Conn,
    peppers: &Peppers,
    limit: i64,
    now: DateTime<Utc>,
) -> Result<PepperStatus> {
    let uses = list_pepper_uses(conn, now).await?;
    let on_others = list_keys_on_other_peppers(conn, peppers.first_id(), Uuid::nil(), limit, now).await?;
    Ok(PepperStatus { configured: peppers.ids(), uses, on_others })
}
