//! Hears what has changed and forgets it.
//!
//! After every reconnection everything is asked about again, because what was said meanwhile is lost.

use cache::BusEvent;
use contract::{Change, Signal};
use futures::StreamExt;
use service::{Check, Shutdown};

use crate::state::EdgeState;

pub(crate) async fn listen(edge: EdgeState, check: Check, shutdown: Shutdown) -> anyhow::Result<()> {
    // Not hearing is no reason to take no traffic: entries are asked about again after a minute.
    check.ok();
    let mut events = std::pin::pin!(edge.bus.subscribe());
    while let Some(Some(event)) = shutdown.unless_requested(events.next()).await {
        match event {
            BusEvent::Message(Signal::Changed(change)) => forget(&edge, change),
            BusEvent::Message(Signal::OutboxFilled | Signal::DeliveriesDue { .. }) => {}
            BusEvent::Lagged => {
                edge.sites.forget_all();
                edge.pages.forget_all();
                edge.holders.forget_all();
                edge.site_maps.forget_all();
                edge.forms.forget_all();
                edge.assets.forget_all();
                edge.files.forget_all();
            }
        }
    }
    Ok(())
}

/// Forgets what has changed.
pub(crate) fn forget(edge: &EdgeState, change: Change) {
    match change {
        Change::Page { subdomain_id, slug } => {
            edge.holders.forget(&slug);
            edge.pages.forget(subdomain_id, &slug);
            edge.site_maps.forget(subdomain_id);
        }
        Change::Host { host } => edge.sites.forget(&host),
        Change::SubdomainGone { subdomain_id } => {
            edge.pages.drop_site(subdomain_id);
            edge.files.drop_site(subdomain_id);
        }
        Change::Asset { asset_id } => edge.assets.forget(asset_id),
        Change::Site { subdomain_id } => {
            edge.files.forget_site(subdomain_id);
            // A deploy that was undone may have taken pages along.
            edge.pages.drop_site(subdomain_id);
            edge.site_maps.forget(subdomain_id);
            edge.holders.forget_all();
            edge.assets.forget_absent();
        }
        Change::AccountFiles { account_id } => edge.assets.forget_account(account_id),
        Change::Form { form_id } => {
            edge.forms.forget(form_id);
            edge.results.forget(form_id);
        }
        Change::AnalyticsSite { subdomain_id, .. } => {
            subdomain_id.into_iter().for_each(|id| edge.pages.forget_site(id));
        }
    }
}
