//! Retention: how many visitors came back. The collector fixes the day of each event in the time zone that the site has
//! at the time, because the ids of visitors are destroyed by those days.

use axum::extract::State;
use chrono::NaiveDate;
use domain::analytics::{
    Cohort, Granularity, Lifetime, Period, RawDays, RawRetentionQuery, fill_cohorts, mean_retention,
    parse_retention_query, retention_hint,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use web::{Json, Problem, Reply};

use super::views::{resolve_query, run_query};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct QueryRetentionRequest {
    /// The analytics site to query.
    site_id: Uuid,
    /// A visitor joins the cohort of the period in which this event first occurred, as far back as the visitor id
    /// reaches. Default `page_view`.
    #[schemars(length(min = 1, max = 64))]
    first_event: Option<String>,
    /// The event that counts as a return; default `page_view`.
    #[schemars(length(min = 1, max = 64))]
    return_event: Option<String>,
    /// The days that cohorts are formed from: whole days in the site's time zone; default `7d`. Retention counts UTC days
    /// until the site gets another time zone, and keeps those days after it changes.
    #[schemars(extend("enum" = Period::ALL.map(Period::as_str)))]
    period: Option<String>,
    /// First day of a `custom` period.
    #[schemars(extend("format" = "date"))]
    from: Option<String>,
    /// Last day of a `custom` period.
    #[schemars(extend("format" = "date"))]
    to: Option<String>,
    /// Length of the periods in which cohorts form and return: calendar days (the default), weeks from Monday, or
    /// calendar months. At most 100 cohorts.
    #[schemars(extend("enum" = Granularity::ALL.map(Granularity::as_str)))]
    granularity: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RetentionView {
    /// In order of time, including empty cohorts.
    cohorts: Vec<RetentionCohort>,
    /// Retention of all cohorts together, period by period. Cohorts with a null value are left out.
    average_retention: Vec<Option<f64>>,
    /// How long a returning visitor can be recognized: the id changes with each calendar day, week, month or quarter
    /// of the site.
    visitor_id_lifetime: Lifetime,
    /// Present if the requested periods are too long for any return to be recognized.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RetentionCohort {
    /// First day of the cohort's period within the requested days.
    period: NaiveDate,
    /// Number of visitors with their first event in this period.
    total: u64,
    /// Percentage of the cohort seen in each period: first its own (100; 0 if the cohort is empty), then one per
    /// later cohort; the current period counts so far. Null if the period lies in the future, or if visitor ids
    /// changed in between, so that returns can't be recognized.
    retention: Vec<Option<f64>>,
}

pub(super) async fn retention(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Json(request): Json<QueryRetentionRequest>,
) -> Result<Reply<RetentionView>, Problem> {
    let (site, query) = resolve_query(&app, &call, request.site_id, |zone| {
        parse_retention_query(&request.raw(), call.now, zone)
    })
    .await?;
    let parsed = &query;
    let (returns, epochs) =
        run_query(&app, &call, site.id, |questions| async move { questions.retention(parsed).await }).await?;
    let lifetime = Lifetime::parse(&site.visitor_id_lifetime).unwrap_or_default();
    let cohorts = fill_cohorts(&query, &returns, &epochs, lifetime);
    let view = |cohort: &Cohort| RetentionCohort {
        period: cohort.first_day,
        total: cohort.total,
        retention: cohort.retention(),
    };
    Ok(call.reply(RetentionView {
        cohorts: cohorts.iter().map(view).collect(),
        average_retention: mean_retention(&cohorts),
        visitor_id_lifetime: lifetime,
        hint: retention_hint(query.granularity, lifetime),
    }))
}

impl QueryRetentionRequest {
    fn raw(&self) -> RawRetentionQuery<'_> {
        RawRetentionQuery {
            first_event: self.first_event.as_deref(),
            return_event: self.return_event.as_deref(),
            days: RawDays::new(self.period.as_deref(), self.from.as_deref(), self.to.as_deref()),
            granularity: self.granularity.as_deref(),
        }
    }
}
