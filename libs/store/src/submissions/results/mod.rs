//! Aggregated results of a form: how often each option was chosen, and averages of numbers.

mod numbers;

use domain::results::{Countable, Tally};
use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

pub use numbers::{count_histograms, list_number_summaries};

/// Aggregates choice fields and number fields over the submissions of a form that count. Also returns the number of
/// those submissions. Ignores values that are not among the current options, because the field may have had another
/// type before.
pub async fn get_results(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    countable: &Countable,
) -> Result<(i64, Vec<Tally>), Error> {
    let (names, options): (Vec<String>, Vec<String>) = countable.choices.iter().cloned().unzip();
    let rows = query!(
        r#"with counted as not materialized (
               select payload from submissions where account_id = $1 and form_id = $2 and status <> 'spam'
           ), known as materialized (
               select * from unnest($3::text[], $4::text[]) as known (name, option)
           ), chosen as not materialized (
               select name, case jsonb_typeof(payload -> name) when 'array' then payload -> name
                                else jsonb_build_array(payload -> name) end as answers
               from counted, (select distinct name from known) as names where payload ? name
           )
           select null as "field?", null as "answer?", count(*) as "count!", null::float8 as "mean?" from counted
           union all
           select name, answer, count(*), null from chosen, jsonb_array_elements_text(answers) as answer
           where (name, answer) in (select name, option from known)
           group by name, answer
           union all
           select name, null, count(*), round(avg((payload -> name)::numeric), 12)::float8
           from counted, unnest($5::text[]) as name where jsonb_typeof(payload -> name) = 'number'
           group by name"#,
        account_id,
        form_id,
        &names,
        &options,
        &countable.numbers,
    )
    .fetch_all(conn)
    .await?;
    let mut total = 0;
    let mut tallies = Vec::new();
    for row in rows {
        match row.field {
            None => total = row.count,
            Some(field) => {
                tallies.push(Tally { field, answer: row.answer, count: row.count, mean: row.mean });
            }
        }
    }
    Ok((total, tallies))
}
