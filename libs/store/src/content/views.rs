//! Page view counts.

use std::collections::BTreeMap;

use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// Adds views to pages. Skips pages that do not exist; a page may occur more than once.
///
/// Rows are locked in the order of their ids, so that concurrent edge servers can't deadlock. On an error no view is
/// added.
pub async fn add_views(conn: &mut Conn, counted: &[(Uuid, i64)]) -> Result<(), Error> {
    let mut views = BTreeMap::<Uuid, i64>::new();
    for (page_id, count) in counted {
        *views.entry(*page_id).or_default() += count;
    }
    let (ids, counts): (Vec<Uuid>, Vec<i64>) = views.into_iter().unzip();
    // Locks the pages against deletion, but not against updates.
    query!(
        "insert into page_views (page_id, views)
         select p.id, counted.views from unnest($1::uuid[], $2::bigint[]) as counted (page_id, views)
         join pages p on p.id = counted.page_id order by p.id for key share of p
         on conflict (page_id) do update set views = page_views.views + excluded.views",
        &ids,
        &counts,
    )
    .execute(conn)
    .await?;
    Ok(())
}
