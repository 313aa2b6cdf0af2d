//! Funnels: how many visits completed a series of steps.

use std::collections::BTreeMap;

use axum::extract::State;
use domain::analytics::{
    FunnelStepResult, Period, RawDays, RawFunnelQuery, RawFunnelStep, STEPS_MAX, STEPS_MIN, fill_steps,
    parse_funnel_query,
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
pub(super) struct QueryFunnelRequest {
    /// The analytics site to query.
    site_id: Uuid,
    /// 2 to 5 steps. A visit reaches a step if, within the period, it has a different event for that step and for
    /// each step before it, in this order. Other events may lie between.
    #[schemars(length(min = STEPS_MIN, max = STEPS_MAX))]
    steps: Vec<FunnelStep>,
    /// Whole days in the site's time zone; default `7d`.
    #[schemars(extend("enum" = Period::ALL.map(Period::as_str)))]
    period: Option<String>,
    /// First day of a `custom` period.
    #[schemars(extend("format" = "date"))]
    from: Option<String>,
    /// Last day of a `custom` period.
    #[schemars(extend("format" = "date"))]
    to: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FunnelStep {
    /// `page_view`, or the name of a custom event.
    #[schemars(length(min = 1, max = 64))]
    event: String,
    /// Only events with all of these values; the names are those of `breakdownBy` in analytics.query. `url` is the
    /// path of the event's own page.
    filters: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunnelView {
    /// The steps with their counts, in the requested order.
    steps: Vec<FunnelStepResult>,
    /// Percentage of the visits in the first step that reached the last step. Without such visits it and the rates of the steps
    /// are 0 and not null, as the counts beside them are: these are numbers in every response. Means are null instead, as no
    /// number is the mean of nothing.
    overall_rate: f64,
}

pub(super) async fn funnel(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Json(request): Json<QueryFunnelRequest>,
) -> Result<Reply<FunnelView>, Problem> {
    let (site, funnel) = resolve_query(&app, &call, request.site_id, |zone| {
        parse_funnel_query(&request.raw(), call.now, zone)
    })
    .await?;
    let query = &funnel;
    let reached =
        run_query(&app, &call, site.id, |questions| async move { questions.funnel(query).await }).await?;
    let (steps, overall_rate) = fill_steps(&funnel.steps, &reached);
    Ok(call.reply(FunnelView { steps, overall_rate }))
}

impl QueryFunnelRequest {
    fn raw(&self) -> RawFunnelQuery<'_> {
        RawFunnelQuery {
            steps: self.steps.iter().map(RawFunnelStep::from).collect(),
            days: RawDays::new(self.period.as_deref(), self.from.as_deref(), self.to.as_deref()),
        }
    }
}

impl<'a> From<&'a FunnelStep> for RawFunnelStep<'a> {
    fn from(step: &'a FunnelStep) -> Self {
        let filters = step.filters.iter().flatten().map(|(word, value)| (word.as_str(), value.as_str()));
        Self { event: &step.event, filters: filters.collect() }
    }
}
