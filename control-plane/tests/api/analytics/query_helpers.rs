//! Random queries, and the comparison of their responses with the reference counts.

use form_urlencoded::Serializer;
use serde_json::{Value, json};
use uuid::Uuid;

use super::expected::{MetricQuery, ReferenceModel};
use super::fixture::Fixture;
use super::traffic::{PATHS, Rng};

impl MetricQuery {
    fn path(&self, site: Uuid, rng: &mut Rng) -> String {
        let mut query = Serializer::new(String::from("/api/analytics/query?"));
        query.append_pair("siteId", &site.to_string()).append_pair("metric", self.metric);
        query.append_pair("period", "custom").append_pair("compare", rng.choose(&["true", "1"]));
        query.append_pair("from", &self.from.to_string()).append_pair("to", &self.to.to_string());
        query.append_pair("limit", &self.limit.to_string());
        for (name, value) in [("groupBy", self.group_by), ("breakdownBy", self.breakdown_by)] {
            value.map(|value| query.append_pair(name, value));
        }
        let written = |value: &String| if value.is_empty() { "(none)".to_owned() } else { value.clone() };
        let spelling = usize::try_from(rng.below(3)).unwrap();
        if spelling < 2 {
            for (dimension, value) in &self.filters {
                let name = ["filters.", "filters["][spelling].to_owned() + *dimension + ["", "]"][spelling];
                query.append_pair(&name, &written(value));
            }
        } else {
            let filters: serde_json::Map<String, Value> = self
                .filters
                .iter()
                .map(|(dimension, value)| ((*dimension).to_owned(), json!(written(value))))
                .collect();
            query.append_pair("filters", &json!(filters).to_string());
        }
        query.finish()
    }
}

impl Fixture {
    /// Sends the query and compares the response with the recorded events.
    pub(super) async fn check(&self, site: Uuid, model: &ReferenceModel, query: &MetricQuery, rng: &mut Rng) {
        let path = query.path(site, rng);
        let response = self.get(&path).await;
        let expected = model.response(query);
        let mut found = json!({"total": response["total"], "before": response["comparison"]["total"]});
        for part in ["series", "breakdown"] {
            if !response[part].is_null() {
                found[part] = response[part].clone();
            }
        }
        assert_eq!(found, expected, "{}: {path}", model.zone);
    }
}

/// A random value of the dimension.
pub(super) fn random_value(dimension: &str, rng: &mut Rng) -> String {
    match dimension {
        "url" | "entry_page" | "exit_page" => rng.choose(PATHS),
        "referrer" => rng.choose(&["google.com", "", "t.co"]),
        "country" | "region" => rng.choose(&["DE", "US", "", "FR"]),
        "city" => rng.choose(&["São Paulo", "Berlin", ""]),
        "device" => rng.choose(&["desktop", "mobile"]),
        "browser" => rng.choose(&["Chrome", "Firefox"]),
        "os" => rng.choose(&["Linux", "iOS"]),
        "utm_source" => rng.choose(&["newsletter", "twitter", ""]),
        "utm_medium" => rng.choose(&["email", "social", "it's \\ {x:String} \"?\""]),
        "utm_campaign" => rng.choose(&["autumn", ""]),
        _ => rng.choose(&["Email", "Direct", "Organic Search"]),
    }
    .to_owned()
}
