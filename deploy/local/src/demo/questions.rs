//! What to ask about the demonstration's visits: one call for each kind of answer, to be copied.

use serde_json::{Value, json};

use super::visits::{BEGUN, SENT};

/// A call and what it tells.
pub(super) struct Question {
    pub(super) tells: &'static str,
    pub(super) path: String,
    /// Posted, if there is one.
    pub(super) body: Option<Value>,
}

/// The questions about a site.
pub(super) fn about(site_id: &str) -> Vec<Question> {
    let get = |tells: &'static str, path: String| Question { tells, path, body: None };
    let query = |tells: &'static str, rest: &str| {
        get(tells, format!("/api/analytics/query?siteId={site_id}&period=7d&{rest}"))
    };
    let post = |tells: &'static str, path: &str, body: Value| Question {
        tells,
        path: path.to_owned(),
        body: Some(body),
    };
    vec![
        query("Page views, day by day, beside the week before", "metric=page_views&groupBy=day&compare=true"),
        query("Visitors by the way they came", "metric=unique_visitors&breakdownBy=channel"),
        query("Visits by country", "metric=visits&breakdownBy=country"),
        query("How many left at once, by page they came to", "metric=bounce_rate&breakdownBy=entry_page"),
        query("What the newsletter brought", "metric=visits&filters.utm_source=newsletter"),
        get("Who is there right now", format!("/api/analytics/realtime?siteId={site_id}")),
        get(
            "Visits of phones, page by page",
            format!("/api/analytics/sessions?siteId={site_id}&period=7d&limit=5&filter.device=mobile"),
        ),
        post(
            "How many of those who came ordered",
            "/api/analytics/funnel",
            json!({"siteId": site_id, "period": "7d", "steps": [{"event": "page_view"}, {"event": BEGUN}, {"event": SENT}]}),
        ),
        post(
            "How many came again, day by day",
            "/api/analytics/retention",
            json!({"siteId": site_id, "period": "7d", "firstEvent": "page_view", "returnEvent": "page_view", "granularity": "day"}),
        ),
        get("The site, with what was dropped and why", format!("/api/analytics/sites/{site_id}")),
    ]
}

impl Question {
    /// The call as one types it.
    pub(super) fn command(&self, base: &str, key: &str) -> String {
        let call = format!("curl -s '{base}{}' -H 'Authorization: Bearer {key}'", self.path);
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
    fn a_call_can_be_copied() {
        let all = about("1");
        let commands: Vec<_> =
            all.iter().map(|question| question.command("http://localhost:1", "st_x")).collect();
        assert_eq!(
            commands[5],
            "curl -s 'http://localhost:1/api/analytics/realtime?siteId=1' -H 'Authorization: Bearer st_x'"
        );
        // Nothing ends a quote too early.
        assert!(commands.iter().all(|command| command.matches('\'').count() % 2 == 0));
        assert!(commands[7].contains("-d '{") && commands[7].ends_with("}'"));
    }
}
