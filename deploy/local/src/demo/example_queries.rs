//! Example queries about the demo's visits: one call to copy for each kind of query.

use serde_json::{Value, json};

use super::visits::{ORDER_SENT, ORDER_STARTED};

/// A call with its title.
pub(super) struct ExampleQuery {
    pub(super) title: &'static str,
    pub(super) path: String,
    /// The body of a POST; `None` for a GET.
    pub(super) body: Option<Value>,
}

/// Returns the queries about a site.
pub(super) fn about(site_id: &str) -> Vec<ExampleQuery> {
    let get = |title: &'static str, path: String| ExampleQuery { title, path, body: None };
    let query = |title: &'static str, rest: &str| {
        get(title, format!("/api/analytics/query?siteId={site_id}&period=7d&{rest}"))
    };
    let post = |title: &'static str, path: &str, body: Value| ExampleQuery {
        title,
        path: path.to_owned(),
        body: Some(body),
    };
    vec![
        query(
            "Page views by day, compared with the week before",
            "metric=page_views&groupBy=day&compare=true",
        ),
        query("Visitors by channel", "metric=unique_visitors&breakdownBy=channel"),
        query("Visits by country", "metric=visits&breakdownBy=country"),
        query("Bounce rate by entry page", "metric=bounce_rate&breakdownBy=entry_page"),
        query("Visits from the newsletter", "metric=visits&filters.utm_source=newsletter"),
        get("Active visitors", format!("/api/analytics/realtime?siteId={site_id}")),
        get(
            "Visits from phones, with their pages",
            format!("/api/analytics/sessions?siteId={site_id}&period=7d&limit=5&filter.device=mobile"),
        ),
        post(
            "Conversion from page view to order",
            "/api/analytics/funnel",
            json!({"siteId": site_id, "period": "7d", "steps": [{"event": "page_view"}, {"event": ORDER_STARTED}, {"event": ORDER_SENT}]}),
        ),
        post(
            "Where visits went that ordered nothing",
            "/api/analytics/funnel/drop-off",
            json!({"siteId": site_id, "period": "7d", "steps": [{"event": "page_view"}, {"event": ORDER_STARTED}], "step": 2}),
        ),
        post(
            "Returning visitors by day",
            "/api/analytics/retention",
            json!({"siteId": site_id, "period": "7d", "firstEvent": "page_view", "returnEvent": "page_view", "granularity": "day"}),
        ),
        get("The site, with dropped events and the reasons", format!("/api/analytics/sites/{site_id}")),
    ]
}

impl ExampleQuery {
    /// Returns the call as a curl command, with the certificate of the authority that curl must trust.
    pub(super) fn command(&self, base: &str, key: &str, authority: Option<&str>) -> String {
        let trust = authority.map(|path| format!(" --cacert '{path}'")).unwrap_or_default();
        let call = format!("curl -s '{base}{}' -H 'Authorization: Bearer {key}'{trust}", self.path);
        match &self.body {
            Some(body) => format!("{call} -H 'Content-Type: application/json' -d '{body}'"),
            None => call,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_copied_to_a_shell() {
        let all = about("1");
        let commands: Vec<_> =
            all.iter().map(|query| query.command("http://localhost:1", "st_x", None)).collect();
        assert_eq!(
            commands[5],
            "curl -s 'http://localhost:1/api/analytics/realtime?siteId=1' -H 'Authorization: Bearer st_x'"
        );
        // The quotes are balanced.
        assert!(commands.iter().all(|command| command.matches('\'').count() % 2 == 0));
        assert!(commands[7].contains("-d '{") && commands[7].ends_with("}'"));
    }
}
