//! The filters of a list of deliveries, which are parameters of the page and of the API alike.

use crate::api_client::Call;
use crate::api_client::operations::DELIVERIES_LIST_ALL;
use crate::url_query::UrlQuery;

/// Deliveries of a page.
const PAGE_DELIVERIES: &str = "50";
/// The filters of the menu. The status has links of its own.
const FILTERS: [&str; 4] = ["statusClass", "from", "to", "submissionId"];

/// Values of `status`, with their labels.
pub(super) const STATUSES: [(&str, &str); 5] = [
    ("", "All"),
    ("failed", "Failed"),
    ("pending", "Waiting"),
    ("delivered", "Delivered"),
    ("canceled", "Canceled"),
];
/// Values of `statusClass`, with their labels.
pub(super) const CLASSES: [(&str, &str); 6] = [
    ("", "Any answer"),
    ("2xx", "2xx, success"),
    ("3xx", "3xx, redirect"),
    ("4xx", "4xx, refused"),
    ("5xx", "5xx, error there"),
    ("none", "No answer"),
];

/// Returns the call that lists the deliveries of a webhook.
pub(super) fn call(webhook_id: &str, query: &UrlQuery) -> Call {
    let call = Call::of(&DELIVERIES_LIST_ALL).query("webhookId", webhook_id).query("limit", PAGE_DELIVERIES);
    let names = ["status", "cursor"].into_iter().chain(FILTERS);
    names.fold(call, |call, name| call.optional_query(name, query.get(name)))
}

/// Whether a filter of the menu is chosen.
pub(super) fn is_filtered(query: &UrlQuery) -> bool {
    FILTERS.iter().any(|name| query.get(name).is_some())
}
