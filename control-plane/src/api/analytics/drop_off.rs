//! Drop-off: where visits went that left a funnel.

use axum::extract::State;
use domain::analytics::{
    NEXT_PAGES_DEFAULT, NEXT_PAGES_MAX, NextPage, Period, RawDays, RawDropOffQuery, RawFunnelQuery,
    RawFunnelStep, STEPS_MAX, STEPS_MIN, next_pages, parse_drop_off_query,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use web::{Json, Problem, Reply};

use super::funnel::FunnelStep;
use super::views::{resolve_query, run_query};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct QueryDropOffRequest {
    /// The analytics site to query.
    site_id: Uuid,
    /// 2 to 5 steps, as in analytics.funnel.
    #[schemars(length(min = STEPS_MIN, max = STEPS_MAX))]
    steps: Vec<FunnelStep>,
    /// Number of the step before which the visits left, from 2 to the number of steps: they completed all steps before it
    /// and not this one.
    #[schemars(range(min = 2, max = STEPS_MAX))]
    step: i64,
    /// Maximum number of pages in the response.
    #[schemars(range(min = 1, max = NEXT_PAGES_MAX), extend("default" = NEXT_PAGES_DEFAULT))]
    limit: Option<i64>,
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

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DropOffView {
    /// Visits that completed the steps before this one and not this one.
    visits: u64,
    /// Those of them that viewed no page within the period after they had completed the steps before.
    ended: u64,
    /// The first page that the others viewed after it; the pages of most visits first.
    next_pages: Vec<NextPage>,
}

pub(super) async fn drop_off(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Json(request): Json<QueryDropOffRequest>,
) -> Result<Reply<DropOffView>, Problem> {
    let (site, query) = resolve_query(&app, &call, request.site_id, |zone| {
        parse_drop_off_query(&request.raw(), call.now, zone)
    })
    .await?;
    let query = &query;
    let found =
        run_query(&app, &call, site.id, |questions| async move { questions.drop_off(query).await }).await?;
    let next_pages = next_pages(found.next_pages, found.visits);
    Ok(call.reply(DropOffView { visits: found.visits, ended: found.ended, next_pages }))
}

impl QueryDropOffRequest {
    fn raw(&self) -> RawDropOffQuery<'_> {
        let funnel = RawFunnelQuery {
            steps: self.steps.iter().map(RawFunnelStep::from).collect(),
            days: RawDays::new(self.period.as_deref(), self.from.as_deref(), self.to.as_deref()),
        };
        RawDropOffQuery { funnel, step: self.step, limit: self.limit }
    }
}
