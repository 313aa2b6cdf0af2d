//! Derives visitor ids from address and user agent, which are not stored, with salts that all collectors share:
//!
//! - an id for one day (UTC) and one site;
//! - soon after midnight also the id of the day before, so that a visit continues over midnight;
//! - for retention alone, an id that lives as long as the site's owner chose.

mod salts;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use contract::events::Returner;
use domain::analytics::start_of_day;
use domain::tracking::Dropped;
use domain::visitors::visitor_id;
use service::Shutdown;
use store::sites::SiteOwner;

use super::find_site::Site;
use crate::incoming_event::IncomingEvent;
pub(crate) use salts::{Salts, SealedCopies};

/// How long after midnight a visit of the day before may continue: the maximum of `collector.visit_idle_timeout`.
const SOON_AFTER_MIDNIGHT: TimeDelta = TimeDelta::minutes(30);

/// Derives visitor ids. Clones share the salts.
#[derive(Clone)]
pub(crate) struct DeriveVisitorId(Salts);

/// The ids of one visitor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VisitorIds {
    pub(crate) id: u64,
    /// The id of the day before for events soon after midnight, else 0.
    pub(crate) previous: u64,
    /// The id for retention; `None` if the site is unresolved.
    pub(crate) returner: Option<Returner>,
}

impl DeriveVisitorId {
    pub(crate) fn new(salts: Salts) -> Self {
        Self(salts)
    }

    pub(crate) async fn step(
        &self,
        event: &IncomingEvent,
        site_token: &str,
        site: Site,
    ) -> Result<VisitorIds, Dropped> {
        let salt = self.0.of_day(event.occurred_at.date_naive()).await.map_err(|error| {
            tracing::warn!(%error, "an event is dropped because the salt of its day is unavailable");
            Dropped::Unavailable
        })?;
        let id = |salt: &salts::Salt| visitor_id(salt, site_token, event.ip, &event.user_agent);
        let previous = match previous_day(event.occurred_at) {
            // Without this id a visit over midnight counts as two.
            Some(day) => self.0.of_day(day).await.map_or(0, |salt| id(&salt)),
            None => 0,
        };
        let returner = match site.owner() {
            Some(owner) => self.returner(event, owner, id).await,
            None => None,
        };
        Ok(VisitorIds { id: id(&salt), previous, returner })
    }

    /// Returns `None` if the salt is unavailable: losing an event for retention is better than losing it altogether.
    async fn returner(
        &self,
        event: &IncomingEvent,
        owner: &SiteOwner,
        id: impl Fn(&salts::Salt) -> u64,
    ) -> Option<Returner> {
        let day = event.occurred_at.with_timezone(&owner.zone).date_naive();
        let (epoch, after) = owner.lifetime.epoch(day);
        let ends_at = start_of_day(after, owner.zone);
        match self.0.of_site(owner.site_id, epoch, ends_at).await {
            Ok(salt) => salt.map(|salt| Returner { id: id(&salt), day, epoch }),
            Err(error) => {
                tracing::warn!(%error, "an event is missing in retention because the site's salt is unavailable");
                None
            }
        }
    }

    /// Rotates, restores and copies the salts until shutdown.
    pub(crate) async fn maintain_salts(self, shutdown: Shutdown) -> anyhow::Result<()> {
        self.0.maintain_until(shutdown).await
    }
}

/// Returns the day before if the event is soon after midnight.
fn previous_day(at: DateTime<Utc>) -> Option<NaiveDate> {
    let since_midnight = at.time() - NaiveTime::MIN;
    (since_midnight <= SOON_AFTER_MIDNIGHT).then(|| at.date_naive() - Days::new(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_the_first_half_hour_have_a_previous_day() {
        let of = |at: &str| previous_day(at.parse().unwrap()).map(|day| day.to_string());
        assert_eq!(of("2026-11-21T00:00:00Z").as_deref(), Some("2026-11-20"));
        assert_eq!(of("2026-11-21T00:30:00Z").as_deref(), Some("2026-11-20"));
        assert_eq!(of("2026-11-21T00:30:00.001Z"), None);
    }
}
