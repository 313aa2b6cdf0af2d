//! The chart of the chosen metric.

use chrono::{DateTime, NaiveDate, TimeDelta};
use serde::Serialize;
use serde_json::Value;

use super::figures::{Metric, figure_of};
use crate::charts::{LineChart, Mark, Point};
use crate::formatting::times::{Wall, parse};
use crate::url_query::UrlQuery;

/// The chart and the table of its values.
#[derive(Debug, Serialize)]
pub(super) struct ChartView {
    svg: String,
    rows: Vec<RowView>,
    has_previous: bool,
    has_deploys: bool,
    interval: &'static str,
}

#[derive(Debug, Serialize)]
struct RowView {
    label: String,
    value: String,
    previous: Option<String>,
    deploys: usize,
    link: String,
}

/// What the chart is made of.
pub(super) struct ChartInput<'a> {
    pub(super) metric: &'static Metric,
    pub(super) overview: &'a Value,
    pub(super) deploys: Option<&'a Value>,
    pub(super) interval: &'static str,
    pub(super) query: &'a UrlQuery,
    pub(super) wall: Wall,
}

/// A point of a series.
struct Moment {
    day: NaiveDate,
    /// The start of an hour.
    hour: Option<DateTime<chrono::FixedOffset>>,
    value: f64,
}

fn moments(series: &Value) -> Vec<Moment> {
    let series = series.as_array().into_iter().flatten();
    let moment = |point: &Value| {
        let date = point["date"].as_str()?;
        let hour = DateTime::parse_from_rfc3339(date).ok();
        let day = hour.map(|hour| hour.date_naive()).or_else(|| date.parse().ok())?;
        Some(Moment { day, hour, value: point["value"].as_f64().unwrap_or_default() })
    };
    series.filter_map(moment).collect()
}

impl ChartInput<'_> {
    pub(super) fn view(&self) -> ChartView {
        let now = self.wall.now;
        let series = &self.overview["series"];
        let mut moments = moments(&series["current"]);
        // Hours to come have no value yet.
        moments.retain(|moment| moment.hour.is_none_or(|hour| hour <= now));
        let previous = self::moments(&series["previous"]);
        let end = self.overview["to"].as_str().and_then(parse);
        let deploys: Vec<_> = moments.iter().map(|moment| self.deploys_at(moment)).collect();
        let points = moments.iter().enumerate().map(|(at, moment)| {
            let before = previous.get(at).map(|moment| moment.value);
            let is_last = at + 1 == moments.len();
            self.point(moment, before, is_last && end.is_none_or(|end| end > now), deploys[at])
        });
        let total = figure_of(self.metric, self.overview)["total"].as_f64().unwrap_or_default();
        let chart = LineChart {
            points: points.collect(),
            marks: (0..moments.len()).filter(|at| deploys[*at] > 0).map(|at| Mark { at }).collect(),
            is_last_partial: moments.len() > 1 && end.is_none_or(|end| end > now),
            summary: self.metric.words(total),
            is_count: self.metric.is_count,
            shown: Some(self.metric.shown),
        };
        let rows =
            chart.points.iter().zip(&deploys).zip(&moments).map(|((point, deploys), moment)| RowView {
                label: self.label(moment),
                value: (self.metric.shown)(point.value),
                previous: point.previous.map(self.metric.shown),
                deploys: *deploys,
                link: point.link.clone(),
            });
        ChartView {
            rows: rows.collect(),
            svg: chart.to_svg(),
            has_previous: !previous.is_empty(),
            has_deploys: !chart.marks.is_empty(),
            interval: self.interval,
        }
    }

    fn point(&self, moment: &Moment, previous: Option<f64>, is_partial: bool, deploys: usize) -> Point {
        let mut words = format!("{}: {}", self.label(moment), self.metric.words(moment.value));
        if is_partial {
            words.push_str(" so far");
        }
        if let Some(previous) = previous {
            words = format!("{words}, {} before", (self.metric.shown)(previous));
        }
        match deploys {
            0 => {}
            1 => words.push_str(" · deployed"),
            more => words = format!("{words} · deployed {more} times"),
        }
        let label = match moment.hour {
            Some(hour) => hour.format("%-H:%M").to_string(),
            None => self.wall.day(moment.day),
        };
        Point { value: moment.value, previous, label, words, link: self.link(moment.day) }
    }

    fn label(&self, moment: &Moment) -> String {
        match moment.hour {
            Some(hour) => format!("{} at {}", self.wall.day(moment.day), hour.format("%-H:%M")),
            None if self.interval == "day" => {
                format!("{} {}", moment.day.format("%a"), self.wall.day(moment.day))
            }
            None => format!("{} from {}", self.interval, self.wall.day(moment.day)),
        }
    }

    /// Returns the last day of a point's interval.
    fn last_day(&self, day: NaiveDate) -> NaiveDate {
        match self.interval {
            "week" => day + TimeDelta::days(6),
            "month" => {
                day.checked_add_months(chrono::Months::new(1)).and_then(|next| next.pred_opt()).unwrap_or(day)
            }
            _ => day,
        }
    }

    /// Returns the link to the days of a point alone.
    fn link(&self, day: NaiveDate) -> String {
        let query = self.query.with("period", Some("custom")).with("from", Some(&day.to_string()));
        query.with("to", Some(&self.last_day(day).to_string())).to_link()
    }

    fn deploys_at(&self, moment: &Moment) -> usize {
        let deploys = self.deploys.and_then(|answer| answer["deploys"].as_array()).into_iter().flatten();
        let at = deploys.filter_map(|deploy| parse(deploy["processedAt"].as_str()?));
        at.filter(|at| match moment.hour {
            Some(hour) => (hour.to_utc()..hour.to_utc() + TimeDelta::hours(1)).contains(at),
            None => (moment.day..=self.last_day(moment.day))
                .contains(&at.with_timezone(&self.wall.zone).date_naive()),
        })
        .count()
    }
}
