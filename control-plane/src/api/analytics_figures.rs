//! Asking for one figure: in all, in buckets of time, by a dimension, compared with the time before.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::analytics::{
    Asked, Dimension, Figure, Grouping, LIMIT_DEFAULT, LIMIT_MAX, Metric, NONE, Period, Question,
    change_percent, read_question,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use warehouse::Questions;
use web::{Problem, Query, Reply};

use super::analytics_views::{ask, asked_about};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AskedFigure {
    site_id: Uuid,
    #[schemars(extend("enum" = Metric::ALL.map(Metric::word), "description" = meanings()))]
    metric: Option<String>,
    /// Whole days of the site's time zone: `7d` (unless told otherwise) is today and the 6 days before; `custom` is
    /// from `from` to `to`, both included.
    #[schemars(extend("enum" = Period::ALL.map(Period::word)))]
    period: Option<String>,
    /// First day, when the period is custom.
    #[schemars(extend("format" = "date"))]
    from: Option<String>,
    /// Last day, when the period is custom.
    #[schemars(extend("format" = "date"))]
    to: Option<String>,
    /// Adds `series`: a value for each of these within the period, empty ones included, by the site's clock. Weeks
    /// begin on Monday; the first and the last are cut where the period ends. Where clocks are moved a day has 23
    /// or 25 hours. At most 2,500 values.
    #[schemars(extend("enum" = Grouping::ALL.map(Grouping::word)))]
    group_by: Option<String>,
    /// Adds `breakdown`. `url`, `entry_page` and `exit_page` are paths; `referrer` is a host; campaign, referrer and
    /// channel are those of the first event of a visit and hold for all of it.
    #[schemars(extend("enum" = Dimension::ALL.map(Dimension::word)))]
    breakdown_by: Option<String>,
    /// A JSON object: only what has all of these values, exactly; names as in `breakdownBy`. `(none)` or an empty
    /// text is what has no value. The same can be written as `filters.utm_source=…`.
    #[schemars(extend("examples" = [r#"{"utm_source":"newsletter"}"#]))]
    filters: Option<String>,
    /// Adds `comparison` with as many days immediately before; days to come are left out of either.
    #[serde(default)]
    compare: bool,
    /// Rows of the breakdown, 10 unless told otherwise.
    #[schemars(range(min = 1, max = LIMIT_MAX), extend("default" = LIMIT_DEFAULT))]
    limit: Option<i64>,
    #[serde(rename = "filters.url")]
    url: Option<String>,
    #[serde(rename = "filters.referrer")]
    referrer: Option<String>,
    #[serde(rename = "filters.country")]
    country: Option<String>,
    #[serde(rename = "filters.city")]
    city: Option<String>,
    #[serde(rename = "filters.region")]
    region: Option<String>,
    #[serde(rename = "filters.device")]
    device: Option<String>,
    #[serde(rename = "filters.browser")]
    browser: Option<String>,
    #[serde(rename = "filters.os")]
    os: Option<String>,
    #[serde(rename = "filters.utm_source")]
    utm_source: Option<String>,
    #[serde(rename = "filters.utm_medium")]
    utm_medium: Option<String>,
    #[serde(rename = "filters.utm_campaign")]
    utm_campaign: Option<String>,
    #[serde(rename = "filters.entry_page")]
    entry_page: Option<String>,
    #[serde(rename = "filters.exit_page")]
    exit_page: Option<String>,
    #[serde(rename = "filters.channel")]
    channel: Option<String>,
}

/// What each metric is, for the API's document.
fn meanings() -> String {
    let line = |metric: Metric| format!("\n- `{}`: {}", metric.word(), metric.meaning());
    let lines: String = Metric::ALL.map(line).concat();
    format!("`page_views` unless told otherwise.\n{lines}")
}

impl AskedFigure {
    /// The filters that were written one by one.
    fn filter(&self) -> Vec<(&str, &str)> {
        let given = |dimension: Dimension| {
            let value = match dimension {
                Dimension::Url => &self.url,
                Dimension::Referrer => &self.referrer,
                Dimension::Country => &self.country,
                Dimension::City => &self.city,
                Dimension::Region => &self.region,
                Dimension::Device => &self.device,
                Dimension::Browser => &self.browser,
                Dimension::Os => &self.os,
                Dimension::UtmSource => &self.utm_source,
                Dimension::UtmMedium => &self.utm_medium,
                Dimension::UtmCampaign => &self.utm_campaign,
                Dimension::EntryPage => &self.entry_page,
                Dimension::ExitPage => &self.exit_page,
                Dimension::Channel => &self.channel,
            };
            Some((dimension.word(), value.as_deref()?))
        };
        Dimension::ALL.into_iter().filter_map(given).collect()
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            metric: self.metric.as_deref(),
            period: self.period.as_deref(),
            from: self.from.as_deref(),
            to: self.to.as_deref(),
            group_by: self.group_by.as_deref(),
            breakdown_by: self.breakdown_by.as_deref(),
            filters: self.filters.as_deref(),
            filter: self.filter(),
            limit: self.limit,
            compare: self.compare,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnsweredFigure {
    metric: String,
    /// Null where there is nothing to be the mean of.
    total: Figure,
    /// The first instant that counts.
    from: DateTime<Utc>,
    /// The first instant that doesn't.
    to: DateTime<Utc>,
    /// IANA name of the site's time zone.
    timezone: String,
    /// In order of time, without gaps; only with `groupBy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Vec<Point>>,
    /// Those that weigh most first: of counts the largest, of rates and means those of most visits. Only with
    /// `breakdownBy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    breakdown: Option<Vec<Row>>,
    /// Only with `compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Point {
    /// First day of the day, week or month; of an hour its beginning with the offset from UTC.
    date: String,
    value: Figure,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    /// `(none)` where there is no value.
    key: String,
    value: Figure,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Comparison {
    total: Figure,
    /// How much more it is now, in percent with one decimal; null if there was nothing before.
    change_percent: Option<f64>,
    /// The first instant of the time before.
    from: DateTime<Utc>,
    /// The first instant after it.
    to: DateTime<Utc>,
}

pub(super) async fn query(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Query(asked): Query<AskedFigure>,
) -> Result<Reply<AnsweredFigure>, Problem> {
    let (site, question) =
        asked_about(&app, &call, asked.site_id, |zone| read_question(&asked.asked(), call.now, zone)).await?;
    let timezone = site.timezone;
    let answered =
        ask(&app, &call, site.id, |questions| async move { answer(&questions, &question, timezone).await })
            .await?;
    Ok(call.reply(answered))
}

async fn answer(
    questions: &Questions<'_>,
    question: &Question,
    timezone: String,
) -> Result<AnsweredFigure, warehouse::Error> {
    let metric = question.metric;
    let total = metric.figure(questions.total(question, question.counted).await?);
    let mut answer = AnsweredFigure {
        metric: metric.word().to_owned(),
        total,
        from: question.range.start,
        to: question.range.end,
        timezone,
        series: None,
        breakdown: None,
        comparison: None,
    };
    if !question.buckets.is_empty() {
        let sums = questions.series(question).await?;
        let point = |(bucket, sums): (&domain::analytics::Bucket, _)| Point {
            date: bucket.date.clone(),
            value: metric.figure(sums),
        };
        answer.series = Some(question.buckets.iter().zip(sums).map(point).collect());
    }
    if let Some(dimension) = question.breakdown {
        let rows = questions.breakdown(question, dimension).await?;
        let key = |word: String| if word.is_empty() { NONE.to_owned() } else { word };
        let row = |(word, sums)| Row { key: key(word), value: metric.figure(sums) };
        answer.breakdown = Some(rows.into_iter().map(row).collect());
    }
    if let Some(range) = question.compared {
        let before = metric.figure(questions.total(question, range).await?);
        let change_percent = change_percent(before, total);
        answer.comparison =
            Some(Comparison { total: before, change_percent, from: range.start, to: range.end });
    }
    Ok(answer)
}
