//! Receives change signals and invalidates the caches.
//!
//! After every reconnection all entries are invalidated, because signals sent meanwhile are lost. Until then entries are
//! reloaded when they are a second old: a deleted page must not be served for as long as Redis is down.

use std::time::Duration;

use cache::BusEvent;
use contract::{Change, DatedSignal, Signal};
use domain::previews::PreviewLabel;
use futures::StreamExt;
use service::{Check, Shutdown};

use crate::metrics;
use crate::state::EdgeState;
use crate::tls::TlsTermination;

/// Age limit of cache entries while no signals arrive.
const MAX_AGE_WITHOUT_SIGNALS: Duration = Duration::from_secs(1);

/// Applies signals until `shutdown`.
pub(crate) async fn listen(state: EdgeState, check: Check, shutdown: Shutdown) -> anyhow::Result<()> {
    // Without signals the state stays ready: entries expire by age.
    check.ok();
    limit_age(&state, Some(MAX_AGE_WITHOUT_SIGNALS));
    let mut events = std::pin::pin!(state.bus.with_messages::<DatedSignal>().subscribe());
    while let Some(Some(event)) = shutdown.unless_requested(events.next()).await {
        match event {
            BusEvent::Message(DatedSignal { signal: Signal::Changed(change), written_at }) => {
                apply(&state, change);
                if let Some(written_at) = written_at {
                    // Another machine's clock may be ahead.
                    let lag = (state.clock.now() - written_at).to_std().unwrap_or_default();
                    metrics::INVALIDATION_LAG_SECONDS.record(lag, &[]);
                }
            }
            BusEvent::Message(DatedSignal {
                signal:
                    Signal::OutboxFilled
                    | Signal::DeliveriesDue { .. }
                    | Signal::TriggersDue
                    | Signal::RunsDue { .. }
                    | Signal::RunsAnswered { .. },
                ..
            }) => {}
            BusEvent::Lagged => {
                state.sites.invalidate_all();
                state.answers.invalidate_all();
                state.short_urls.invalidate_all();
                state.sitemaps.invalidate_all();
                state.forms.invalidate_all();
                state.assets.invalidate_all();
                state.tls.iter().for_each(TlsTermination::invalidate_all);
                limit_age(&state, None);
            }
            BusEvent::Disconnected => limit_age(&state, Some(MAX_AGE_WITHOUT_SIGNALS)),
        }
    }
    Ok(())
}

fn limit_age(state: &EdgeState, limit: Option<Duration>) {
    state.sites.limit_age(limit);
    state.answers.limit_age(limit);
    state.short_urls.limit_age(limit);
    state.sitemaps.limit_age(limit);
    state.forms.limit_age(limit);
    state.assets.limit_age(limit);
    state.tls.iter().for_each(|tls| tls.limit_age(limit));
}

/// Invalidates the entries that a change affects.
pub(crate) fn apply(state: &EdgeState, change: Change) {
    match change {
        Change::Page { subdomain_id, slug, path } => {
            state.short_urls.invalidate(&slug);
            state.answers.remove_page(subdomain_id, &slug, path.as_deref());
            state.sitemaps.invalidate(subdomain_id);
        }
        Change::Host { host } => {
            if PreviewLabel::parse(&host).is_some() {
                // A new preview has images and fonts with URLs by content.
                state.assets.invalidate_absent();
            }
            state.sites.remove(&host);
        }
        Change::Certificate { name } => state.tls.iter().for_each(|tls| tls.invalidate(&name)),
        Change::SubdomainGone { subdomain_id } => state.answers.remove_site(subdomain_id),
        Change::Asset { asset_id } => state.assets.remove(asset_id),
        Change::Site { subdomain_id } => {
            // The hosts have the rules of the deploy.
            state.sites.invalidate_site(subdomain_id);
            // The rollback of a deploy may have removed pages.
            state.answers.remove_site(subdomain_id);
            state.sitemaps.invalidate(subdomain_id);
            state.short_urls.invalidate_all();
            state.assets.invalidate_absent();
        }
        Change::AccountFiles { account_id } => state.assets.remove_account(account_id),
        Change::Form { form_id } => {
            state.forms.remove(form_id);
            state.results.remove(form_id);
        }
        Change::AnalyticsSite { subdomain_id, .. } => {
            subdomain_id.into_iter().for_each(|id| state.answers.invalidate_site(id));
        }
    }
}
