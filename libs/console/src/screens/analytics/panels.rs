//! The four breakdowns.

use serde::Serialize;

use super::filters::label_of;
use crate::api_client::{Answer, Refusal};
use crate::url_query::UrlQuery;

/// Rows of a panel, and of one that was asked for all.
const ROWS: &str = "8";
const ALL_ROWS: &str = "100";

/// A panel, with the dimensions that it can show.
#[derive(Debug)]
pub(super) struct PanelKind {
    pub(super) id: &'static str,
    title: &'static str,
    dimensions: &'static [&'static str],
}

pub(super) const PANELS: [PanelKind; 4] = [
    PanelKind {
        id: "sources",
        title: "Sources",
        dimensions: &["referrer", "channel", "utm_campaign", "utm_source"],
    },
    PanelKind { id: "pages", title: "Pages", dimensions: &["url", "entry_page", "exit_page"] },
    PanelKind { id: "places", title: "Places", dimensions: &["country", "region", "city"] },
    PanelKind { id: "devices", title: "Devices", dimensions: &["device", "browser", "os"] },
];

/// A breakdown.
#[derive(Debug, Serialize)]
pub(super) struct Panel {
    id: &'static str,
    title: &'static str,
    dimension: &'static str,
    label: &'static str,
    tabs: Vec<(&'static str, &'static str)>,
    rows: Vec<Row>,
    /// Whether there may be more rows.
    has_more: bool,
    refusal: Option<Refusal>,
}

#[derive(Debug, Serialize)]
struct Row {
    key: String,
    shown: String,
    value: f64,
    /// The width of its bar, in percent of the longest.
    share: String,
}

impl PanelKind {
    /// Returns the dimension that the page asks for.
    pub(super) fn dimension(&self, query: &UrlQuery) -> &'static str {
        let asked = query.get(self.id);
        self.dimensions.iter().find(|name| Some(**name) == asked).unwrap_or(&self.dimensions[0])
    }

    /// Returns how many rows the page asks for.
    pub(super) fn limit(&self, query: &UrlQuery) -> &'static str {
        if query.get("all") == Some(self.id) { ALL_ROWS } else { ROWS }
    }

    pub(super) fn panel(&self, query: &UrlQuery, answer: &Answer) -> Panel {
        let dimension = self.dimension(query);
        let breakdown = answer.as_ref().ok().and_then(|answer| answer["breakdown"].as_array());
        let values = || breakdown.into_iter().flatten();
        let longest = values().filter_map(|row| row["value"].as_f64()).fold(1.0, f64::max);
        let rows: Vec<_> = values()
            .filter_map(|row| {
                let (key, value) = (row["key"].as_str()?.to_owned(), row["value"].as_f64()?);
                Some(Row {
                    shown: shown(dimension, &key),
                    key,
                    value,
                    share: format!("{:.1}", value / longest * 100.0),
                })
            })
            .collect();
        Panel {
            id: self.id,
            title: self.title,
            dimension,
            label: label_of(dimension).unwrap_or_default(),
            tabs: self.dimensions.iter().map(|name| (*name, label_of(name).unwrap_or_default())).collect(),
            has_more: self.limit(query) == ROWS && rows.len().to_string() == ROWS,
            rows,
            refusal: answer.as_ref().err().cloned(),
        }
    }
}

/// Returns a value as people read it.
fn shown(dimension: &str, key: &str) -> String {
    match (dimension, key) {
        ("referrer", "(none)") => "Direct, or unknown".to_owned(),
        (_, "(none)") => "Unknown".to_owned(),
        _ => key.to_owned(),
    }
}
