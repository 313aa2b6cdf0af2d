//! What services tell each other at once, over Redis, and may miss.
//!
//! Nothing depends on a signal's arrival: caches look again after a minute, and the outbox is swept.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A message on the bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case")]
pub enum Signal {
    /// Something that caches hold has changed.
    Changed(Change),
    /// The outbox has new rows: the relay need not wait for its next look.
    OutboxFilled,
    /// Webhook deliveries are due: nobody need wait for the next look at them.
    DeliveriesDue {
        /// To whom; empty if anybody may be meant.
        #[serde(default)]
        webhook_ids: Vec<Uuid>,
    },
}

/// What has changed, by the keys caches use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// A page was created, edited, published or unpublished.
    Page {
        /// Where it is served.
        subdomain_id: Uuid,
        /// Under which slug.
        slug: String,
    },
    /// A host was given to a site, or taken from it; or its account was claimed, suspended or resumed.
    Host {
        /// The subdomain: the host name without the sites domain. Or a custom domain, which has a dot.
        host: String,
    },
    /// A subdomain is gone with all its pages: nothing of them may stay in memory.
    SubdomainGone {
        /// Which.
        subdomain_id: Uuid,
    },
    /// A form was created, edited or deleted, or its account was suspended, resumed or put on another plan.
    Form {
        /// Which.
        form_id: Uuid,
    },
    /// The bytes of an asset have come, or it was deleted.
    Asset {
        /// Which.
        asset_id: Uuid,
    },
    /// A deploy was published on a subdomain, or undone: its files and any of its pages may be others.
    Site {
        /// Which subdomain.
        subdomain_id: Uuid,
    },
    /// An account was suspended or resumed, or has ended: none of its files may be shown before it is looked again.
    AccountFiles {
        /// Whose.
        account_id: Uuid,
    },
    /// An analytics site was created, edited or deleted, or its account was suspended or resumed.
    AnalyticsSite {
        /// Its public token.
        site_token: String,
        /// The subdomain whose pages are counted by themselves, if there is one.
        #[serde(default)]
        subdomain_id: Option<Uuid>,
    },
}
