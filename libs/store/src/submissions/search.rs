//! Searches for words in submissions.

use domain::submissions::search_terms;
use sqlx::query;

use crate::{Conn, Error};

/// Returns the query of a search for the column `search`, as text; `None` if nothing in it can be searched for. It is a
/// constant of the statement that searches, so that Postgres knows how selective it is; the same statement also makes
/// Postgres plan for this constant until the end of the transaction.
///
/// A word also matches the words that begin with it. Postgres splits the word as it splits the answers; beside that, the
/// word as a whole matches the beginning of what Postgres keeps whole, such as an address.
pub(super) async fn build_query(conn: &mut Conn, search: Option<&str>) -> Result<Option<String>, Error> {
    let mut columns = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (alternative, terms) in (0..).zip(search_terms(search.unwrap_or_default())) {
        for term in terms {
            columns.0.push(alternative);
            columns.1.push(term.text);
            columns.2.push(term.is_exact);
            columns.3.push(term.is_excluded);
        }
    }
    // Lexemes are quoted by doubling their quotes and backslashes. Punctuation alone has none and is ignored.
    let row = query!(
        r"select set_config('plan_cache_mode', 'force_custom_plan', true) as mode, (
              select string_agg(terms, ' | ') from (
                  select string_agg(case when is_excluded then '!(' else '(' end || term || ')', ' & ') as terms
                  from unnest($1::int[], $2::text[], $3::bool[], $4::bool[])
                           as input (alternative, word, is_exact, is_excluded)
                      cross join lateral (
                          select case when is_exact then nullif(phraseto_tsquery('simple', word)::text, '')
                              else (select '''' || replace(replace(lower(word), '\', '\\'), '''', '''''') || ''':* | '
                                           || string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''')
                                                         || ''':*', ' & ')
                                    from unnest(to_tsvector('simple', word)))
                              end as term
                      ) as written
                  where term is not null
                  group by alternative
              ) as alternatives
          ) as query",
        &columns.0,
        &columns.1,
        &columns.2,
        &columns.3,
    )
    .fetch_one(conn)
    .await?;
    Ok(row.query)
}
