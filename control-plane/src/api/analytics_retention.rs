//! Asking how many visitors came back.

use axum::extract::State;
use chrono::NaiveDate;
use domain::analytics::{
    AskedRetention, Cohort, Granularity, Lifetime, Period, fill_cohorts, hint_for, mean_retention,
    read_retention,
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
pub(super) struct WantedRetention {
    site_id: Uuid,
    /// What makes somebody a member of a cohort: the first time they did this, as far back as their id reaches.
    /// `page_view` unless told otherwise.
    #[schemars(length(min = 1, max = 64))]
    first_event: Option<String>,
    /// What counts as having come back; `page_view` unless told otherwise.
    #[schemars(length(min = 1, max = 64))]
    return_event: Option<String>,
    /// Of which days the cohorts are: whole days of the site's time zone; `7d` unless told otherwise.
    #[schemars(extend("enum" = Period::ALL.map(Period::word)))]
    period: Option<String>,
    /// First day, when the period is custom.
    #[schemars(extend("format" = "date"))]
    from: Option<String>,
    /// Last day, when the period is custom.
    #[schemars(extend("format" = "date"))]
    to: Option<String>,
    /// How long the periods are in which cohorts come and return: calendar days (unless told otherwise), weeks from
    /// Monday on, or calendar months. At most 100 cohorts.
    #[schemars(extend("enum" = Granularity::ALL.map(Granularity::word)))]
    granularity: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RetentionView {
    /// In order of time, the empty ones included.
    cohorts: Vec<CohortView>,
    /// The same of all cohorts taken together, period by period; cohorts whose cell is null are left out of it.
    average_retention: Vec<Option<f64>>,
    /// How long a visitor can be known to return: nobody is known from one calendar day, week, month or quarter of
    /// the site to the next.
    visitor_id_lifetime: Lifetime,
    /// Says so where periods are too long for any return to be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CohortView {
    /// First day of the cohort's period, as far as it lies in the days asked about.
    period: NaiveDate,
    /// How many visitors came in it for the first time.
    total: u64,
    /// How many percent of them were there, from the period they came in (100; 0 if nobody came) to as many later
    /// ones as there are cohorts; the current one so far. Null where the period lies in the future, or where ids
    /// were made anew in between, so that nobody can tell.
    retention: Vec<Option<f64>>,
}

pub(super) async fn retention(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Json(wanted): Json<WantedRetention>,
) -> Result<Reply<RetentionView>, Problem> {
    let (site, asked) =
        asked_about(&app, &call, wanted.site_id, |zone| read_retention(&wanted.asked(), call.now, zone))
            .await?;
    let question = &asked;
    let (returns, epochs) =
        ask(&app, &call, site.id, |questions| async move { questions.returns(question).await }).await?;
    let lifetime = Lifetime::from_word(&site.visitor_id_lifetime).unwrap_or_default();
    let cohorts = fill_cohorts(&asked, &returns, &epochs, lifetime);
    let view = |cohort: &Cohort| CohortView {
        period: cohort.first_day,
        total: cohort.total,
        retention: cohort.retention(),
    };
    Ok(call.reply(RetentionView {
        cohorts: cohorts.iter().map(view).collect(),
        average_retention: mean_retention(&cohorts),
        visitor_id_lifetime: lifetime,
        hint: hint_for(asked.granularity, lifetime),
    }))
}

impl WantedRetention {
    fn asked(&self) -> AskedRetention<'_> {
        AskedRetention {
            first_event: self.first_event.as_deref(),
            return_event: self.return_event.as_deref(),
            period: self.period.as_deref(),
            from: self.from.as_deref(),
            to: self.to.as_deref(),
            granularity: self.granularity.as_deref(),
        }
    }
}
