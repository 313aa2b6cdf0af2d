//! The tracker events of the demo site's visits.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use service::Rng;

use super::visitors::{Visit, below, chance};

/// A tracker event.
pub(super) struct Event {
    pub(super) at: DateTime<Utc>,
    pub(super) ip: String,
    pub(super) agent: &'static str,
    pub(super) body: Value,
}

/// The site: its URL, analytics token and pages (slug and title). The first page is the home page.
pub(super) struct DemoSite<'a> {
    pub(super) url: &'a str,
    pub(super) token: &'a str,
    pub(super) pages: &'a [(&'static str, &'static str)],
}

/// The events of a started and a completed order.
pub(super) const ORDER_STARTED: &str = "order_started";
pub(super) const ORDER_SENT: &str = "order_sent";
const LOAVES: [(&str, u32); 3] = [("rye", 5), ("sourdough", 6), ("brioche", 4)];

/// Returns all events until `now`, ordered by time.
pub(super) fn all(site: &DemoSite<'_>, visits: Vec<Visit>, now: DateTime<Utc>, rng: &Rng) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for visit in visits {
        events.extend(events_of(site, &visit, rng).into_iter().filter(|event| event.at <= now));
    }
    events.sort_by_key(|event| event.at);
    events
}

/// Returns the events of a visit. Some visits have one page view only; some of the others end with an order.
fn events_of(site: &DemoSite<'_>, visit: &Visit, rng: &Rng) -> Vec<Event> {
    let mut recorder = Recorder { site, visit, at: visit.at, events: Vec::new() };
    recorder.view(0, visit.channel.query, visit.channel.referrer, rng);
    if chance(rng, 42) {
        return recorder.events;
    }
    for _ in 0..=below(rng, 3) {
        let page = below(rng, site.pages.len() as u32) as usize;
        recorder.view(page, "", site.url, rng);
    }
    if chance(rng, 35) {
        let contact = site.pages.len() - 1;
        recorder.view(contact, "", site.url, rng);
        let (loaf, euros) = LOAVES[below(rng, LOAVES.len() as u32) as usize];
        recorder.record(contact, ORDER_STARTED, json!({"props": {"loaf": loaf}}));
        if chance(rng, 55) {
            recorder.at += TimeDelta::seconds(i64::from(20 + below(rng, 90)));
            recorder.record(contact, ORDER_SENT, json!({"props": {"loaf": loaf, "euros": euros}}));
        }
    }
    recorder.events
}

/// Records the events of one visit.
struct Recorder<'a> {
    site: &'a DemoSite<'a>,
    visit: &'a Visit,
    at: DateTime<Utc>,
    events: Vec<Event>,
}

impl Recorder<'_> {
    /// Records a page view and the engagement at its end.
    fn view(&mut self, page: usize, query: &str, referrer: &str, rng: &Rng) {
        let view = json!({
            "url": format!("{}{query}", self.url(page)), "referrer": referrer, "title": self.site.pages[page].1,
            "screenWidth": self.visit.visitor.screen_width,
        });
        self.record(page, "page_view", view);
        let seconds = 4 + below(rng, 80);
        self.at += TimeDelta::seconds(i64::from(seconds));
        let left = json!({"engagementMs": seconds * 900, "scrollDepth": 25 + below(rng, 76)});
        self.record(page, "engagement", left);
    }

    fn record(&mut self, page: usize, name: &str, more: Value) {
        let mut body = json!({"siteToken": self.site.token, "name": name, "url": self.url(page)});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        let visitor = &self.visit.visitor;
        self.events.push(Event { at: self.at, ip: visitor.ip.clone(), agent: visitor.agent, body });
        // The next event has a later time.
        self.at += TimeDelta::milliseconds(400);
    }

    fn url(&self, page: usize) -> String {
        let slug = self.site.pages[page].0;
        if page == 0 { self.site.url.to_owned() } else { format!("{}{slug}", self.site.url) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::visitors;

    #[test]
    fn a_week_of_visits_has_views_and_orders_and_fits_a_free_plan() {
        let now = "2026-11-21T15:00:00Z".parse().unwrap();
        let rng = Rng::system();
        let pages = [("index", "Home"), ("contact", "Contact")];
        let site = DemoSite { url: "http://a.localhost/", token: "site_a", pages: &pages };
        let events = all(&site, visitors::of_a_week(now, &rng), now, &rng);
        let of = |name: &str| events.iter().filter(|event| event.body["name"] == name).count();
        assert!(of("page_view") > 500 && of(ORDER_STARTED) > of(ORDER_SENT) && of(ORDER_SENT) > 10);
        assert!(events.len() < 5_000, "{}", events.len());
        assert!(events.is_sorted_by_key(|event| event.at));
        assert!(
            events.iter().all(|event| domain::tracking::parse(event.body.to_string().as_bytes()).is_ok())
        );
    }
}
