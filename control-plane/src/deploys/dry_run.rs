//! Says what publishing a built site would do: by the comparison and the pages of publishing, in a transaction that ends without
//! a commit.

use std::collections::BTreeSet;

use domain::deploys::report::DeployStats;
use store::pages::{UpsertOutcome, compare_pages};
use store::subdomains::Subdomain;
use store::usage;
use uuid::Uuid;
use web::Problem;

use super::build::BuiltSite;
use super::publish::{Published, PublishedPage, charge_bytes};
use super::site_changes::{SiteChanges, batch_len, in_order, status_of, upserts_of};
use crate::App;
use crate::call::Call;

/// Returns what publishing would answer now, and removes from the site's missing files those that would still be served. Returns
/// the problems that publishing would, too.
pub(crate) async fn dry_run<S>(
    app: &App,
    call: &Call<S>,
    deploy_id: Uuid,
    subdomain: &Subdomain,
    site: &mut BuiltSite,
) -> Result<Published, Problem> {
    let (account_id, now) = (call.account_id, app.clock.now());
    let mut tx = store::begin(&app.db).await?;
    usage::lock(&mut tx, account_id).await?;
    let served = store::deploys::files::lock_served_deploy(&mut tx, account_id, subdomain.id).await?;
    let SiteChanges { stale, taken_over, .. } =
        SiteChanges::find(call, &mut tx, subdomain.id, served, site).await?;
    let own = site.files.iter().map(|file| file.blob.size_bytes);
    let bytes = own.chain(taken_over.iter().map(|file| file.size_bytes)).sum();
    charge_bytes(call, &mut tx, served.map_or(0, |served| served.size_bytes), bytes).await?;
    let mut pages = Vec::with_capacity(site.pages.len());
    let all = in_order(site);
    let mut rest = all.as_slice();
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(batch_len(rest));
        rest = others;
        let upserts = upserts_of(app, site, batch, subdomain.id, deploy_id, now).await?;
        let outcomes = compare_pages(&mut tx, account_id, upserts, now).await?;
        pages.extend(batch.iter().zip(outcomes).map(|(page, outcome)| {
            let (id, status) = status_of(outcome);
            let id = Some(id).filter(|_| !matches!(outcome, UpsertOutcome::Created(_)));
            PublishedPage { id, slug: page.slug.clone(), status }
        }));
    }
    drop(tx);
    let still_served: BTreeSet<&str> = taken_over
        .iter()
        .map(|file| file.path.as_str())
        .chain(stale.iter().filter_map(|page| page.path.as_deref()))
        .collect();
    site.missing.retain(|path| !still_served.contains(path.as_str()));
    let count = |status: &str| pages.iter().filter(|page| page.status == status).count();
    let stats =
        DeployStats { pages_created: count("created"), pages_updated: count("updated"), ..site.stats() };
    Ok(Published { pages, stale, previous_id: served.map(|served| served.deploy_id), note: None, stats })
}
