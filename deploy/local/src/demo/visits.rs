//! What people do on the demonstration's site, as the tracker would tell it.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use service::Rng;

use super::people::{Coming, below, in_percent};

/// An event that happened.
pub(super) struct Happened {
    pub(super) at: DateTime<Utc>,
    pub(super) ip: String,
    pub(super) agent: &'static str,
    pub(super) body: Value,
}

/// The site: where it is, the token it is counted by, and its pages (slug and title), the first being its front.
pub(super) struct Place<'a> {
    pub(super) url: &'a str,
    pub(super) token: &'a str,
    pub(super) pages: &'a [(&'static str, &'static str)],
}

/// The event of whoever begins to order, and of those who see it through.
pub(super) const BEGUN: &str = "order_started";
pub(super) const SENT: &str = "order_sent";
const LOAVES: [(&str, u32); 3] = [("rye", 5), ("sourdough", 6), ("brioche", 4)];

/// Everything that happened until `now`, in order of time.
pub(super) fn all(place: &Place<'_>, comings: Vec<Coming>, now: DateTime<Utc>, rng: &Rng) -> Vec<Happened> {
    let mut happened: Vec<Happened> = Vec::new();
    for coming in comings {
        happened.extend(visit(place, &coming, rng).into_iter().filter(|event| event.at <= now));
    }
    happened.sort_by_key(|event| event.at);
    happened
}

/// Some look at one page and go; of those who stay, some order.
fn visit(place: &Place<'_>, coming: &Coming, rng: &Rng) -> Vec<Happened> {
    let mut visit = Visit { place, coming, at: coming.at, told: Vec::new() };
    visit.look(0, coming.way.query, coming.way.referrer, rng);
    if in_percent(rng, 42) {
        return visit.told;
    }
    for _ in 0..=below(rng, 3) {
        let page = below(rng, place.pages.len() as u32) as usize;
        visit.look(page, "", place.url, rng);
    }
    if in_percent(rng, 35) {
        let contact = place.pages.len() - 1;
        visit.look(contact, "", place.url, rng);
        let (loaf, euros) = LOAVES[below(rng, LOAVES.len() as u32) as usize];
        visit.tell(contact, BEGUN, json!({"props": {"loaf": loaf}}));
        if in_percent(rng, 55) {
            visit.at += TimeDelta::seconds(i64::from(20 + below(rng, 90)));
            visit.tell(contact, SENT, json!({"props": {"loaf": loaf, "euros": euros}}));
        }
    }
    visit.told
}

struct Visit<'a> {
    place: &'a Place<'a>,
    coming: &'a Coming,
    at: DateTime<Utc>,
    told: Vec<Happened>,
}

impl Visit<'_> {
    /// A view of a page, and what the tracker tells when it is left.
    fn look(&mut self, page: usize, query: &str, referrer: &str, rng: &Rng) {
        let view = json!({
            "url": format!("{}{query}", self.url(page)), "referrer": referrer, "title": self.place.pages[page].1,
            "screenWidth": self.coming.who.screen_width,
        });
        self.tell(page, "page_view", view);
        let seconds = 4 + below(rng, 80);
        self.at += TimeDelta::seconds(i64::from(seconds));
        let left = json!({"engagementMs": seconds * 900, "scrollDepth": 25 + below(rng, 76)});
        self.tell(page, "engagement", left);
    }

    fn tell(&mut self, page: usize, name: &str, more: Value) {
        let mut body = json!({"siteToken": self.place.token, "name": name, "url": self.url(page)});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        let who = &self.coming.who;
        self.told.push(Happened { at: self.at, ip: who.ip.clone(), agent: who.agent, body });
        // What comes next comes later, were it by a moment.
        self.at += TimeDelta::milliseconds(400);
    }

    fn url(&self, page: usize) -> String {
        let slug = self.place.pages[page].0;
        if page == 0 { self.place.url.to_owned() } else { format!("{}{slug}", self.place.url) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::people;

    #[test]
    fn a_week_of_visits_has_views_and_orders_and_fits_a_free_plan() {
        let now = "2026-11-21T15:00:00Z".parse().unwrap();
        let rng = Rng::system();
        let pages = [("index", "Home"), ("contact", "Contact")];
        let place = Place { url: "http://a.localhost/", token: "site_a", pages: &pages };
        let happened = all(&place, people::of_a_week(now, &rng), now, &rng);
        let of = |name: &str| happened.iter().filter(|event| event.body["name"] == name).count();
        assert!(of("page_view") > 500 && of(BEGUN) > of(SENT) && of(SENT) > 10);
        assert!(happened.len() < 5_000, "{}", happened.len());
        assert!(happened.is_sorted_by_key(|event| event.at));
        assert!(
            happened.iter().all(|event| domain::tracking::parse(event.body.to_string().as_bytes()).is_ok())
        );
    }
}
