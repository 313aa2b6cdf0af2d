//! Work around certificates that is not an order: rows of our own hosts, the wildcard from files, expired rows, metrics,
//! and emails about renewals that fail.

use std::time::Duration;

use chrono::TimeDelta;
use service::{Rounds, Shutdown};
use store::{acme, certificates};
use tokio::time::{Instant, sleep_until};

use super::files;
use super::settings::{Settings, WildcardMode};
use crate::metrics;
use crate::state::JobState;

/// How often it runs.
pub(crate) const INTERVAL: Duration = Duration::from_secs(60);
/// When it runs again after a failure. Until it has run once, a new installation orders no certificate for its own hosts.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The owner is mailed when a certificate ends sooner and its renewals fail.
const WARNED_BEFORE_END: TimeDelta = TimeDelta::days(7);
const SECONDS_PER_DAY: f64 = 86_400.0;
/// Every state, so that one without certificates shows zero.
const STATES: [&str; 5] = ["active", "renewal_failing", "expired", "issuing", "failed"];

/// The periodic work.
pub(crate) struct Upkeep {
    state: JobState,
    settings: Settings,
    base_host: Option<String>,
    wildcard: String,
}

impl Upkeep {
    pub(crate) fn new(
        state: &JobState,
        settings: &Settings,
        base_host: Option<String>,
        sites_domain: &str,
    ) -> Self {
        let wildcard = format!("*.{sites_domain}");
        Self { state: state.clone(), settings: settings.clone(), base_host, wildcard }
    }

    /// Returns the hosts that get a certificate without being a domain of an account.
    pub(crate) fn ordered_names(&self) -> Vec<String> {
        let is_ordered = matches!(self.settings.wildcard, WildcardMode::Exec | WildcardMode::Rfc2136);
        let wildcard = is_ordered.then(|| self.wildcard.clone());
        self.base_host.iter().cloned().chain(wildcard).collect()
    }

    /// Runs until shutdown.
    pub(crate) async fn run(self, rounds: Rounds, shutdown: Shutdown) -> anyhow::Result<()> {
        while let Some(result) = shutdown.unless_requested(rounds.watch(self.run_once())).await {
            let pause = result.map_or_else(
                |error| {
                    let error = format!("{error:#}");
                    tracing::warn!(error, "the work around certificates failed and is retried");
                    RETRY_INTERVAL
                },
                |()| INTERVAL,
            );
            if shutdown.unless_requested(sleep_until(Instant::now() + pause)).await.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn run_once(&self) -> anyhow::Result<()> {
        let state = &self.state;
        if self.settings.wildcard == WildcardMode::Files
            && let Err(error) = files::load(state, &self.settings.files, &self.wildcard).await
        {
            let (error, name) = (format!("{error:#}"), &self.wildcard);
            tracing::error!(certificate.name = name, error, "a certificate could not be read from files");
        }
        let now = state.clock.now();
        let mut conn = store::acquire(&state.db).await?;
        if self.settings.is_on() {
            for name in self.ordered_names() {
                certificates::insert_due(&mut conn, &name, now).await?;
            }
        }
        let mailed = certificates::insert_expiry_mails(&mut conn, now, now + WARNED_BEFORE_END).await?;
        if mailed > 0 {
            tracing::warn!(mailed, "certificates end within a week and their renewals fail");
        }
        self.measure(&certificates::summarize(&mut conn, now).await?);
        acme::delete_expired(&mut conn, now).await?;
        Ok(())
    }

    fn measure(&self, summaries: &[certificates::StateSummary]) {
        let now = self.state.clock.now();
        let labels = STATES.map(|name| [("state", name)]);
        let of_state = |name| summaries.iter().find(|summary| summary.state == name);
        #[expect(clippy::cast_precision_loss, reason = "a count of certificates is exact in a double")]
        let count = |name| of_state(name).map_or(0, |summary| summary.count) as f64;
        metrics::CERTIFICATES.set_all(labels.iter().map(|label| (&label[..], count(label[0].1))));
        #[expect(clippy::cast_precision_loss, reason = "a count of certificates is exact in a double")]
        let ending = |count: fn(&certificates::StateSummary) -> i64| {
            let unexpired =
                summaries.iter().filter(|summary| ["active", "renewal_failing"].contains(&&*summary.state));
            unexpired.map(count).sum::<i64>() as f64
        };
        metrics::CERTIFICATES_EXPIRING.set_all([
            (&[("within", "7d")][..], ending(|summary| summary.within_7_days)),
            (&[("within", "21d")][..], ending(|summary| summary.within_21_days)),
        ]);
        let days_left = |name| {
            let end = of_state(name)?.first_end?;
            Some((end - now).as_seconds_f64() / SECONDS_PER_DAY)
        };
        let days_left = labels.iter().filter_map(|label| Some((&label[..], days_left(label[0].1)?)));
        metrics::CERTIFICATES_MIN_LEFT_DAYS.set_all(days_left);
    }
}
