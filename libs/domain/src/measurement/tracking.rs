//! Parses the tracker's request body.
//!
//! The body comes from code in visitors' browsers, so it is untrusted: texts are truncated, and only host and path of
//! URLs are retained after the campaign is read, because the rest of a URL may contain personal data.

use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

mod drop_reasons;
mod screens;
#[cfg(test)]
mod tests;

pub use drop_reasons::Dropped;
pub use screens::Screen;

/// Maximum size of a body; a longer one is dropped without parsing.
pub const BODY_BYTES_MAX: usize = 8 * 1024;
/// The event that every page view sends; all other names are custom events.
pub const PAGE_VIEW: &str = "page_view";
/// The tracker's report of engagement. It belongs to a page view and is not counted as an event.
pub const ENGAGEMENT: &str = "engagement";
/// Maximum number of custom properties.
pub const PROPS_MAX: usize = 20;

/// Click parameters of advertisers.
const CLICKS: &[&str] = &["gclid", "gbraid", "wbraid", "msclkid", "fbclid", "twclid"];
pub(crate) const NAME_CHARS_MAX: usize = 64;
const PATH_CHARS_MAX: usize = 1024;
const TEXT_CHARS_MAX: usize = 300;
const TOKEN_BYTES_MAX: usize = 64;
/// Maximum length of a DNS name.
const HOST_CHARS_MAX: usize = 253;
/// Half an hour: a longer report would follow so much silence that it belongs to no visit.
const ENGAGEMENT_MS_MAX: u32 = 30 * 60 * 1_000;

/// A parsed event. It contains no personal data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Public token of the site.
    pub site_token: String,
    /// [`PAGE_VIEW`] or the name of a custom event.
    pub name: String,
    /// Host of the page, in lower case, without port.
    pub host: String,
    /// Path of the page, percent-encoded as sent by the browser; with `#…` if the site routes by fragment.
    pub path: String,
    /// Title of the page; empty if absent.
    pub title: String,
    /// Host of the external referrer, without `www.`; empty if unknown or the same site.
    pub referrer_host: String,
    /// Campaign of the page's URL.
    pub campaign: Campaign,
    /// Size class of the screen, if its width was sent.
    pub screen: Option<Screen>,
    /// Custom properties in the order sent.
    pub props: Vec<(String, String)>,
    /// Milliseconds for which the page was visible and focused since the last report; half an hour at most.
    pub engagement_ms: u32,
    /// Deepest scroll position in percent of the page, if measured.
    pub scroll_depth: Option<u8>,
    /// Random number of the events that left the page together; 0 if not sent. It is not stored.
    pub group: u32,
    /// Position in that group; 0 for the first, and for one that left alone.
    pub sequence: u16,
}

/// The `utm_…` parameters of a URL; empty where absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Campaign {
    /// `utm_source`
    pub source: String,
    /// `utm_medium`
    pub medium: String,
    /// `utm_campaign`
    pub name: String,
    /// Name of the advertiser's click parameter. Its value identifies a person and is discarded.
    pub click: &'static str,
}

/// The wire format, with the short names of our tracker. Unknown fields are ignored, because a newer tracker may send
/// to an older collector.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    #[serde(alias = "t")]
    site_token: Option<String>,
    #[serde(alias = "n")]
    name: Option<String>,
    #[serde(alias = "u")]
    url: Option<String>,
    #[serde(alias = "r")]
    referrer: Option<String>,
    #[serde(alias = "i")]
    title: Option<String>,
    // Browsers report fractions at zoom levels other than 100 %.
    #[serde(alias = "w")]
    screen_width: Option<f64>,
    #[serde(alias = "p")]
    props: Option<Map<String, Value>>,
    #[serde(alias = "e")]
    engagement_ms: Option<f64>,
    #[serde(alias = "s")]
    scroll_depth: Option<f64>,
    /// Whether the site routes by the fragment.
    #[serde(alias = "h")]
    hash_routing: Option<bool>,
    #[serde(alias = "g")]
    group: Option<f64>,
    #[serde(alias = "q")]
    sequence: Option<f64>,
}

/// Parses a body of any content type: trackers send `text/plain` to avoid the CORS preflight.
pub fn parse(body: &[u8]) -> Result<Hit, Dropped> {
    let wire: Wire = serde_json::from_slice(body).map_err(|_| Dropped::Unreadable)?;
    let site_token = wire.site_token.filter(|token| (1..=TOKEN_BYTES_MAX).contains(&token.len()));
    let page = wire.url.as_deref().and_then(page_address).ok_or(Dropped::Url)?;
    let host = cut(page.host_str().unwrap_or_default(), HOST_CHARS_MAX);
    Ok(Hit {
        site_token: site_token.ok_or(Dropped::UnknownSite)?,
        name: event_name(wire.name.as_deref().unwrap_or_default())?,
        path: cut(&path(&page, wire.hash_routing.unwrap_or_default()), PATH_CHARS_MAX),
        title: cut(wire.title.as_deref().unwrap_or_default().trim(), TEXT_CHARS_MAX),
        referrer_host: referrer_host(wire.referrer.as_deref(), &host),
        campaign: campaign(&page),
        screen: wire.screen_width.and_then(Screen::from_width),
        props: props(wire.props.unwrap_or_default())?,
        engagement_ms: integer(wire.engagement_ms.unwrap_or_default(), ENGAGEMENT_MS_MAX)
            .min(ENGAGEMENT_MS_MAX),
        scroll_depth: wire.scroll_depth.map(|percent| integer(percent.min(100.0), 100)),
        group: integer(wire.group.unwrap_or_default(), u32::MAX),
        sequence: integer(wire.sequence.unwrap_or_default(), u16::MAX),
        host,
    })
}

fn event_name(name: &str) -> Result<String, Dropped> {
    let name = name.trim();
    let fits = (1..=NAME_CHARS_MAX).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    fits.then(|| name.to_owned()).ok_or(Dropped::Name)
}

fn page_address(address: &str) -> Option<Url> {
    Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// Returns the page's path. A fragment is part of it if it is a route (`#/users/1?tab=2`), again without a query.
fn path(page: &Url, hash_routing: bool) -> String {
    let fragment = page.fragment().filter(|_| hash_routing);
    match fragment.and_then(|fragment| fragment.split('?').next()).filter(|route| !route.is_empty()) {
        Some(route) => format!("{}#{route}", page.path()),
        None => page.path().to_owned(),
    }
}

/// Returns the external host of the referrer; empty for the same site.
fn referrer_host(referrer: Option<&str>, page_host: &str) -> String {
    let parsed = referrer.and_then(|text| Url::parse(text).ok());
    let host = parsed
        .as_ref()
        .filter(|url| matches!(url.scheme(), "http" | "https" | "android-app"))
        .and_then(Url::host_str)
        .map(str::to_lowercase)
        .unwrap_or_default();
    let bare = without_www(&host);
    if bare == without_www(page_host) { String::new() } else { cut(bare, HOST_CHARS_MAX) }
}

fn without_www(host: &str) -> &str {
    host.strip_prefix("www.").unwrap_or(host)
}

fn campaign(page: &Url) -> Campaign {
    let mut campaign = Campaign::default();
    // Shorter source parameters, which are older than `utm_source`.
    let mut stand_in = None;
    for (key, value) in page.query_pairs() {
        let place = match key.as_ref() {
            "utm_source" => &mut campaign.source,
            "utm_medium" => &mut campaign.medium,
            "utm_campaign" => &mut campaign.name,
            "source" | "ref" => stand_in.get_or_insert_default(),
            key => {
                campaign.click = CLICKS.iter().find(|click| **click == key).unwrap_or(&campaign.click);
                continue;
            }
        };
        *place = cut(value.trim(), TEXT_CHARS_MAX);
    }
    if campaign.source.is_empty() {
        campaign.source = stand_in.unwrap_or_default();
    }
    campaign
}

/// Converts scalars to text and skips nulls; lists and objects are rejected.
fn props(sent: Map<String, Value>) -> Result<Vec<(String, String)>, Dropped> {
    if sent.len() > PROPS_MAX {
        return Err(Dropped::Props);
    }
    let mut props = Vec::with_capacity(sent.len());
    for (key, value) in sent {
        let text = match value {
            Value::Null => continue,
            Value::String(text) => cut(&text, TEXT_CHARS_MAX),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Array(_) | Value::Object(_) => return Err(Dropped::Props),
        };
        props.push((event_name(&key).map_err(|_| Dropped::Props)?, text));
    }
    Ok(props)
}

fn cut(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

/// Converts a measurement to an integer between 0 and `max`; NaN becomes 0.
fn integer<N: TryFrom<u64>>(measured: f64, max: N) -> N {
    // The cast saturates at both ends and maps NaN to 0.
    N::try_from(measured.round() as u64).unwrap_or(max)
}
