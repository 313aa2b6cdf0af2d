//! The four breakdowns.

use serde::Serialize;
use serde_json::Value;

use super::filters::label_of;

use crate::api_client::{Answer, Refusal};
use crate::url_query::UrlQuery;

/// Rows of a panel, and of one that was asked for all.
pub(super) const ROWS: &str = "8";
pub(super) const ALL_ROWS: &str = "100";

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
    /// The change against the period before, in percent.
    change: Option<f64>,
    /// The width of its bar, in percent of the longest.
    share: String,
}

impl PanelKind {
    /// Returns the dimension that the page asks for.
    pub(super) fn dimension(&self, query: &UrlQuery) -> &'static str {
        let asked = query.get(self.id);
        self.dimensions.iter().find(|name| Some(**name) == asked).unwrap_or(&self.dimensions[0])
    }

    /// Whether the page asks for all rows.
    pub(super) fn is_asked_for_all(&self, query: &UrlQuery) -> bool {
        query.get("all") == Some(self.id)
    }

    /// Returns the panel of an overview, or of a query of its own for all rows.
    pub(super) fn panel(&self, query: &UrlQuery, overview: Option<&Value>, all: Option<&Answer>) -> Panel {
        let dimension = self.dimension(query);
        let breakdown = match all {
            Some(answer) => answer.as_ref().ok().map(|answer| &answer["breakdown"]),
            None => overview.map(|overview| &overview["panels"][self.id]["rows"]),
        };
        let values = || breakdown.and_then(Value::as_array).into_iter().flatten();
        let longest = values().filter_map(|row| row["value"].as_f64()).fold(1.0, f64::max);
        let row = |row: &Value| {
            let (key, value) = (row["key"].as_str()?.to_owned(), row["value"].as_f64()?);
            Some(Row {
                shown: shown(dimension, &key),
                key,
                value,
                change: row["previous"]
                    .as_f64()
                    .filter(|before| *before > 0.0)
                    .map(|before| (value - before) / before * 100.0),
                share: format!("{:.1}", value / longest * 100.0),
            })
        };
        let rows: Vec<_> = values().filter_map(row).collect();
        Panel {
            id: self.id,
            title: self.title,
            dimension,
            label: label_of(dimension).unwrap_or_default(),
            tabs: self.dimensions.iter().map(|name| (*name, label_of(name).unwrap_or_default())).collect(),
            has_more: all.is_none() && rows.len().to_string() == ROWS,
            rows,
            refusal: all.and_then(|answer| answer.as_ref().err().cloned()),
        }
    }
}

/// Returns a value as people read it.
pub(super) fn shown(dimension: &str, key: &str) -> String {
    match (dimension, key) {
        ("referrer", "(none)") => "Direct, or unknown".to_owned(),
        (_, "(none)") => "Unknown".to_owned(),
        _ => key.to_owned(),
    }
}
