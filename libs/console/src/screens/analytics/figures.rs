//! The six figures, each with its change.

use serde::Serialize;
use serde_json::Value;

use crate::formatting::numbers;
use crate::formatting::times::parse;

/// A metric, as the page names and shows it.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) id: &'static str,
    pub(super) label: &'static str,
    /// The noun of its values: `641 visitors`.
    pub(super) noun: &'static str,
    pub(super) shown: fn(f64) -> String,
    pub(super) is_lower_better: bool,
    /// Whether the noun follows a value.
    pub(super) is_count: bool,
}

fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

const fn count(id: &'static str, label: &'static str, noun: &'static str) -> Metric {
    Metric { id, label, noun, shown: numbers::count, is_lower_better: false, is_count: true }
}

const fn measure(
    id: &'static str,
    label: &'static str,
    noun: &'static str,
    shown: fn(f64) -> String,
) -> Metric {
    Metric { id, label, noun, shown, is_lower_better: false, is_count: false }
}

/// The metrics in the order of the page.
pub(super) const METRICS: [Metric; 6] = [
    count("unique_visitors", "Visitors", "visitors"),
    count("visits", "Visits", "visits"),
    count("page_views", "Page views", "page views"),
    measure("views_per_visit", "Views per visit", "views per visit", ratio),
    Metric {
        is_lower_better: true,
        ..measure("bounce_rate", "Bounce rate", "bounce rate", numbers::percent)
    },
    measure("avg_session_duration", "Time of a visit", "time of a visit", numbers::duration),
];

impl Metric {
    /// Returns the metric of a page; an unknown one is the first.
    pub(super) fn of(name: Option<&str>) -> &'static Self {
        METRICS.iter().find(|metric| Some(metric.id) == name).unwrap_or(&METRICS[0])
    }

    /// Returns a value with its noun: `641 visitors`, `41 %`.
    pub(super) fn words(&self, value: f64) -> String {
        let shown = (self.shown)(value);
        if !self.is_count {
            return shown;
        }
        let noun = if value == 1.0 { self.noun.trim_end_matches('s') } else { self.noun };
        format!("{shown} {noun}")
    }
}

/// A figure.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    id: &'static str,
    label: &'static str,
    value: Option<String>,
    /// What it was before.
    previous: Option<String>,
    change: Option<f64>,
    is_lower_better: bool,
}

impl Figure {
    /// Returns the figure of a metric in an overview; without a value if there is no overview.
    pub(super) fn new(metric: &Metric, overview: Option<&Value>) -> Self {
        let figure = overview.map(|overview| figure_of(metric, overview)).unwrap_or(&Value::Null);
        Self {
            id: metric.id,
            label: metric.label,
            value: figure["total"].as_f64().map(metric.shown),
            previous: figure["previous"].as_f64().map(metric.shown),
            change: figure["changePercent"].as_f64(),
            is_lower_better: metric.is_lower_better,
        }
    }
}

/// Returns the figure of a metric in an overview.
pub(super) fn figure_of<'a>(metric: &Metric, overview: &'a Value) -> &'a Value {
    let mut figures = overview["figures"].as_array().into_iter().flatten();
    figures.rfind(|figure| figure["metric"] == metric.id).unwrap_or(&Value::Null)
}

/// Returns what changed, as a sentence: `31 % more visitors than in the 30 days before.`
pub(super) fn change_in_words(metric: &Metric, overview: &Value) -> Option<String> {
    let figure = figure_of(metric, overview);
    let total = figure["total"].as_f64()?;
    let compared = &overview["compared"];
    let days = days_between(compared["from"].as_str()?, compared["to"].as_str()?)?;
    let before =
        if days == 1 { "on the day before".to_owned() } else { format!("in the {days} days before") };
    let previous = figure["previous"].as_f64().unwrap_or_default();
    let Some(change) = figure["changePercent"].as_f64() else {
        return (total > 0.0 && metric.is_count)
            .then(|| format!("{}, and none {before}.", metric.words(total)));
    };
    if total == 0.0 && previous == 0.0 {
        return None;
    }
    if change.abs() < 0.5 {
        return Some(format!("As many {} as {before}: {}.", metric.noun, (metric.shown)(previous)));
    }
    let shown = numbers::percent(change.abs());
    Some(match (metric.is_count, change > 0.0) {
        (true, true) => format!("{shown} more {} than {before}.", metric.noun),
        (true, false) => format!("{shown} fewer {} than {before}.", metric.noun),
        (false, up) => {
            let direction = if up { "higher" } else { "lower" };
            format!("{} {shown} {direction} than {before}.", metric.label)
        }
    })
}

fn days_between(from: &str, to: &str) -> Option<i64> {
    let (from, to) = (parse(from)?, parse(to)?);
    // Days on which the clock changes have 23 or 25 hours.
    Some(((to - from).num_hours() + 12) / 24)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_change_is_a_sentence() {
        let words = |metric: &str, total: f64, change: Option<f64>| {
            let overview = json!({
                "compared": { "from": "2026-10-01T00:00:00+02:00", "to": "2026-10-31T00:00:00+01:00" },
                "figures": [{ "metric": metric, "total": total, "previous": 100, "changePercent": change }] });
            change_in_words(Metric::of(Some(metric)), &overview).unwrap_or_default()
        };
        assert_eq!(
            words("unique_visitors", 131.0, Some(31.0)),
            "31 % more visitors than in the 30 days before."
        );
        assert_eq!(words("visits", 90.0, Some(-10.0)), "10 % fewer visits than in the 30 days before.");
        assert_eq!(
            words("bounce_rate", 41.0, Some(-3.0)),
            "Bounce rate 3 % lower than in the 30 days before."
        );
        assert_eq!(words("page_views", 1.0, None), "1 page view, and none in the 30 days before.");
        assert_eq!(words("visits", 100.0, Some(0.0)), "As many visits as in the 30 days before: 100.");
    }
}
