//! Asking how many visits went through a series of steps.

use std::collections::BTreeMap;

use axum::extract::State;
use domain::analytics::{
    AskedFunnel, AskedStep, Period, STEPS_MAX, STEPS_MIN, StepFigures, fill_steps, read_funnel,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use web::{Json, Problem, Reply};

use super::analytics_views::{ask, asked_about};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WantedFunnel {
    site_id: Uuid,
    /// 2 to 5. A visit reaches a step if, within the period, it has different events for that step and all before
    /// it in this order; other events may lie between.
    #[schemars(length(min = STEPS_MIN, max = STEPS_MAX))]
    steps: Vec<WantedStep>,
    /// Whole days of the site's time zone; `7d` unless told otherwise.
    #[schemars(extend("enum" = Period::ALL.map(Period::word)))]
    period: Option<String>,
    /// First day, when the period is custom.
    #[schemars(extend("format" = "date"))]
    from: Option<String>,
    /// Last day, when the period is custom.
    #[schemars(extend("format" = "date"))]
    to: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WantedStep {
    /// `page_view`, or the name of a custom event.
    #[schemars(length(min = 1, max = 64))]
    event: String,
    /// Only events with all of these values; names as in `breakdownBy` of analytics.query. `url` is the path of the
    /// event's own page.
    filters: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunnelView {
    steps: Vec<StepFigures>,
    /// Of the visits that reached the first step, how many percent reached the last.
    overall_rate: f64,
}

pub(super) async fn funnel(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Json(wanted): Json<WantedFunnel>,
) -> Result<Reply<FunnelView>, Problem> {
    let (site, funnel) =
        asked_about(&app, &call, wanted.site_id, |zone| read_funnel(&wanted.asked(), call.now, zone)).await?;
    let asked = &funnel;
    let reached = ask(&app, &call, site.id, |questions| async move { questions.funnel(asked).await }).await?;
    let (steps, overall_rate) = fill_steps(&funnel.steps, &reached);
    Ok(call.reply(FunnelView { steps, overall_rate }))
}

impl WantedFunnel {
    fn asked(&self) -> AskedFunnel<'_> {
        AskedFunnel {
            steps: self.steps.iter().map(AskedStep::from).collect(),
            period: self.period.as_deref(),
            from: self.from.as_deref(),
            to: self.to.as_deref(),
        }
    }
}

impl<'a> From<&'a WantedStep> for AskedStep<'a> {
    fn from(step: &'a WantedStep) -> Self {
        let filters = step.filters.iter().flatten().map(|(word, value)| (word.as_str(), value.as_str()));
        Self { event: &step.event, filters: filters.collect() }
    }
}
