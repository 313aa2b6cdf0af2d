//! The list of an account's deploys.

use sqlx::query_as;
use uuid::Uuid;

use super::deploy::{Deploy, DeployRow};
use crate::{Conn, Error, ListFilter};

/// Returns the account's deploys, newest first. The filter's ids are those of subdomains. A deploy that was never processed has
/// none; if `unprocessed_by` is a key, those of other creators are not listed. With `subdomain_id`, only those of
/// this subdomain are.
pub async fn list_deploys(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
    unprocessed_by: Option<Uuid>,
    subdomain_id: Option<Uuid>,
) -> Result<Vec<Deploy>, Error> {
    let rows = query_as!(
        DeployRow,
        r#"select d.id, d.subdomain_id, s.name as "subdomain?", d.status, d.size_bytes, d.has_manifest, d.leased_until,
                  d.files_done, d.files_total, d.has_files, d.previous_id, d.created_at, d.created_by, d.created_by_key,
                  d.processed_at, d.stats, d.preview_token, d.preview_expires_at, d.message, b.id as "blob_id?", b.sha256 as "sha256?",
                  exists (select from served_deploys v where v.deploy_id = d.id) as "is_live!"
           from deploys d left join blobs b on b.id = d.blob_id left join subdomains s on s.id = d.subdomain_id
           where d.account_id = $1 and ($2::uuid[] is null or d.subdomain_id is null or d.subdomain_id = any($2))
             and ($6::uuid is null or d.subdomain_id is not null or d.created_by_key = $6)
             and ($7::uuid is null or d.subdomain_id = $7)
             and ($3::timestamptz is null or (d.created_at, d.id) < ($3, $4))
           order by d.created_at desc, d.id desc limit $5::bigint + 1"#,
        account_id,
        filter.ids.as_deref(),
        filter.after.map(|after| after.created_at),
        filter.after.map(|after| after.id),
        filter.limit,
        unprocessed_by,
        subdomain_id,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Deploy::try_from).collect()
}
