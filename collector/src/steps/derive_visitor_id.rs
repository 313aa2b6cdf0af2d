//! Gives the visitor an id that holds for a day and one site, from salts that all collectors share; soon after
//! midnight yesterday's too, so that a visit goes on; and for retention alone one that lives as long as the site's
//! owner chose. Address and user agent end here.

mod salts;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use contract::events::Returner;
use domain::analytics::start_of_day;
use domain::tracking::{Dropped, Hit};
use domain::visitors::visitor_id;
use service::Shutdown;
use store::sites::SiteOwner;

use super::find_site::Site;
use crate::pipeline::IncomingEvent;
pub(crate) use salts::Salts;

/// How long after midnight a visit of the day before may go on: the longest silence within one.
const SOON_AFTER_MIDNIGHT: TimeDelta = TimeDelta::minutes(30);

/// Names visitors. Clones share the salts.
#[derive(Clone)]
pub(crate) struct DeriveVisitorId(Salts);

/// Who it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visitor {
    /// The id of the day.
    pub(crate) id: u64,
    /// That of the day before, if it matters, else 0.
    pub(crate) previous: u64,
    /// The one that outlives the day, if the site is known.
    pub(crate) returner: Option<Returner>,
}

impl DeriveVisitorId {
    pub(crate) fn new(salts: Salts) -> Self {
        Self(salts)
    }

    pub(crate) async fn step(
        &self,
        arrival: &IncomingEvent,
        hit: &Hit,
        site: Site,
    ) -> Result<Visitor, Dropped> {
        let salt = self.0.of_day(arrival.at.date_naive()).await.map_err(|error| {
            tracing::warn!(%error, "no salt for the day of an event: it is dropped");
            Dropped::Unavailable
        })?;
        let id = |salt: &salts::Salt| visitor_id(salt, &hit.site_token, arrival.ip, &arrival.user_agent);
        let previous = match yesterday(arrival.at) {
            // Without it a visit over midnight counts as two.
            Some(day) => self.0.of_day(day).await.map_or(0, |salt| id(&salt)),
            None => 0,
        };
        let returner = match site.owner() {
            Some(owner) => self.returner(arrival, owner, id).await,
            None => None,
        };
        Ok(Visitor { id: id(&salt), previous, returner })
    }

    /// Retention can do without an event; the event shouldn't be lost with it.
    async fn returner(
        &self,
        arrival: &IncomingEvent,
        owner: &SiteOwner,
        id: impl Fn(&salts::Salt) -> u64,
    ) -> Option<Returner> {
        let day = arrival.at.with_timezone(&owner.zone).date_naive();
        let (epoch, after) = owner.lifetime.epoch(day);
        let ends_at = start_of_day(after, owner.zone);
        match self.0.of_site(owner.site_id, epoch, ends_at).await {
            Ok(salt) => salt.map(|salt| Returner { id: id(&salt), day, epoch }),
            Err(error) => {
                tracing::warn!(%error, "no salt for a site's returning visitors: one is not noted");
                None
            }
        }
    }

    /// Fetches tomorrow's salt ahead, so that midnight needs no database, and destroys those that have served.
    pub(crate) async fn look_after_salts(self, shutdown: Shutdown) -> anyhow::Result<()> {
        self.0.look_after(shutdown).await
    }
}

/// The day before, of events soon after midnight.
fn yesterday(at: DateTime<Utc>) -> Option<NaiveDate> {
    let since_midnight = at.time() - NaiveTime::MIN;
    (since_midnight <= SOON_AFTER_MIDNIGHT).then(|| at.date_naive() - Days::new(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yesterday_matters_for_half_an_hour() {
        let of = |at: &str| yesterday(at.parse().unwrap()).map(|day| day.to_string());
        assert_eq!(of("2026-11-21T00:00:00Z").as_deref(), Some("2026-11-20"));
        assert_eq!(of("2026-11-21T00:30:00Z").as_deref(), Some("2026-11-20"));
        assert_eq!(of("2026-11-21T00:30:00.001Z"), None);
    }
}
