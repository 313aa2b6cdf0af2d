//! Receives change signals and invalidates the caches.
//!
//! After every reconnection all entries are invalidated, because signals sent meanwhile are lost.

use cache::BusEvent;
use contract::{Change, Signal};
use futures::StreamExt;
use service::{Check, Shutdown};

use crate::state::EdgeState;

/// Applies signals until `shutdown`.
pub(crate) async fn listen(state: EdgeState, check: Check, shutdown: Shutdown) -> anyhow::Result<()> {
    // Without signals the state stays ready: entries expire by age.
    check.ok();
    let mut events = std::pin::pin!(state.bus.subscribe());
    while let Some(Some(event)) = shutdown.unless_requested(events.next()).await {
        match event {
            BusEvent::Message(Signal::Changed(change)) => apply(&state, change),
            BusEvent::Message(Signal::OutboxFilled | Signal::DeliveriesDue { .. }) => {}
            BusEvent::Lagged => {
                state.sites.invalidate_all();
                state.pages.invalidate_all();
                state.short_urls.invalidate_all();
                state.sitemaps.invalidate_all();
                state.forms.invalidate_all();
                state.assets.invalidate_all();
                state.files.invalidate_all();
            }
        }
    }
    Ok(())
}

/// Invalidates the entries that a change affects.
pub(crate) fn apply(state: &EdgeState, change: Change) {
    match change {
        Change::Page { subdomain_id, slug } => {
            state.short_urls.invalidate(&slug);
            state.pages.remove(subdomain_id, &slug);
            state.sitemaps.invalidate(subdomain_id);
        }
        Change::Host { host } => state.sites.remove(&host),
        Change::SubdomainGone { subdomain_id } => {
            state.pages.remove_site(subdomain_id);
            state.files.remove_site(subdomain_id);
        }
        Change::Asset { asset_id } => state.assets.remove(asset_id),
        Change::Site { subdomain_id } => {
            state.files.invalidate_site(subdomain_id);
            // The rollback of a deploy may have removed pages.
            state.pages.remove_site(subdomain_id);
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
            subdomain_id.into_iter().for_each(|id| state.pages.invalidate_site(id));
        }
    }
}
