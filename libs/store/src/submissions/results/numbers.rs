//! Statistics of number fields, for the form's owner.

use domain::results::{NumberSummary, PartCount};
use serde_json::json;
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// Returns a summary of each number field that has answers, over the submissions of a form that count. Ignores answers
/// that are no numbers, because the field may have had another type before.
pub async fn list_number_summaries(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    fields: &[String],
) -> Result<Vec<NumberSummary>, Error> {
    let rows = query_as!(
        NumberSummary,
        r#"select field as "field!", count(*) as "count!", round(avg(number), 12)::float8 as "mean!",
                  percentile_cont(0.5) within group (order by number::float8) as "median!",
                  min(number)::float8 as "min!", max(number)::float8 as "max!",
                  bool_and(number = trunc(number)) as "is_whole!"
           from (
               select field, (payload -> field)::numeric as number
               from submissions, unnest($3::text[]) as field
               where account_id = $1 and form_id = $2 and status <> 'spam' and jsonb_typeof(payload -> field) = 'number'
           ) as answers
           group by field"#,
        account_id,
        form_id,
        fields,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows)
}

/// Counts the answers in each part of the histograms of these fields.
pub async fn count_histograms(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    summaries: &[NumberSummary],
) -> Result<Vec<PartCount>, Error> {
    // The last end is left out: it belongs to the last part.
    let starts = |summary: &NumberSummary| {
        let bounds = summary.bounds();
        json!({"field": summary.field, "starts": bounds[..bounds.len() - 1]})
    };
    let histograms: Vec<_> = summaries.iter().map(starts).collect();
    let rows = query!(
        r#"with histograms as materialized (
               select one ->> 'field' as field,
                      array(select start::float8 from jsonb_array_elements_text(one -> 'starts') with ordinality
                            as starts (start, place) order by place) as starts
               from jsonb_array_elements($3::jsonb) as one
           )
           select field as "field!", width_bucket((payload -> field)::numeric::float8, starts) as "part!",
                  count(*) as "count!"
           from submissions, histograms
           where account_id = $1 and form_id = $2 and status <> 'spam' and jsonb_typeof(payload -> field) = 'number'
           group by 1, 2"#,
        account_id,
        form_id,
        json!(histograms),
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| PartCount { field: row.field, part: row.part, count: row.count }).collect())
}
