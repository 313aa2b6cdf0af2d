//! Reads the overview of an account.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::restrictions::Restrictions;
use domain::scopes::Resource;
use domain::stored_fields::StoredFields;
use domain::submissions::SubmissionEvent;
use sqlx::query;
use sqlx::types::Json;
use uuid::Uuid;

use super::{
    AutomationCounts, AutomationOverview, DomainCounts, FormOverview, Overview, OverviewBounds, PageCounts,
    PageOverview, SiteOverview, SubdomainOverview, WebhookCounts, WebhookOverview,
};
use crate::usage::Usage;
use crate::{Conn, Error};

/// Returns an overview of the resources that `seen` allows, or `None` if the account no longer exists.
pub async fn find_overview(
    conn: &mut Conn,
    account_id: Uuid,
    seen: &Restrictions,
    bounds: OverviewBounds<'_>,
    now: DateTime<Utc>,
) -> Result<Option<Overview>, Error> {
    let ids = |kind: Resource| seen.ids_of(kind).map(|ids| ids.iter().copied().collect::<Vec<Uuid>>());
    let [pages, forms, webhooks, sites] =
        [Resource::Pages, Resource::Forms, Resource::Webhooks, Resource::Analytics].map(ids);
    let [automations, subdomains, domains, folders] =
        [Resource::Automations, Resource::Subdomains, Resource::Domains, Resource::Folders].map(ids);
    let all_ids: BTreeMap<&str, _> = seen.ids.iter().map(|(kind, ids)| (kind.as_str(), ids)).collect();
    let slugs: Vec<String> = bounds.slugs.iter().map(|&slug| slug.to_owned()).collect();
    // Without restrictions pages and forms are read in the order of an index; a filter that might apply would make the
    // planner sort all of them.
    let row = query!(
        r#"select u.projects, u.webhooks, u.domains, u.subdomains, u.storage_bytes,
                  pc.total as "pages!", pc.published as "published!",
                  p.id as "page_id?", p.folder_id as "page_folder_id?", p.subdomain_id as "page_subdomain_id?", p.slug as "page_slug?", p.title as "page_title?",
                  p.is_published as "page_is_published?", p.has_entry_template as "page_has_entry_template?",
                  p.created_at as "page_created_at?",
                  fc.total as "forms!", fc.submissions as "submissions!",
                  f.id as "form_id?", f.folder_id as "form_folder_id?", f.name as "form_name?", f.fields as "form_fields?: Json<StoredFields>",
                  f.submissions as "form_submissions?", f.is_open as "form_is_open?",
                  f.spam_proof_of_work as "form_proof_of_work?", f.has_webhook as "form_has_webhook?", f.has_link as "form_has_link?",
                  f.has_automation as "form_has_automation?", f.created_at as "form_created_at?",
                  wc.active as "active_webhooks!", wc.failing as "failing_webhooks!", wc.disabled as "disabled_webhooks!",
                  wc.newest as "webhook_id?", wc.linkable as "linkable_webhook_id?", wc.troubled as "troubled_webhook_id?",
                  exists (select from deliveries d where d.webhook_id = wc.newest) as "webhook_has_deliveries!",
                  sc.total as "sites!", s.id as "site_id?", s.folder_id as "site_folder_id?", s.name as "site_name?", s.subdomain_id as "site_subdomain_id?",
                  ac.enabled as "enabled_automations!", ac.failing as "failing_automations!",
                  ac.disabled as "disabled_automations!", ac.failing_id as "failing_automation_id?",
                  a.id as "automation_id?", a.folder_id as "automation_folder_id?", a.is_enabled as "automation_is_enabled?", a.has_run as "automation_has_run?",
                  nc.total as "seen_subdomains!", n.id as "subdomain_id?", n.name as "subdomain_name?",
                  n.has_site as "subdomain_has_site?", n.taken as "taken_slugs?",
                  dc.active as "active_domains!", dc.pending as "pending_domains!", dc.failed as "failed_domains!",
                  dc.inactive_id as "inactive_domain_id?",
                  oc.total as "folders!", oc.newest as "folder_id?",
                  (select count(*) from (
                       select from api_keys k
                       where k.account_id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $14)
                         and ($2::uuid is null or k.folder_id = $2)
                         and not exists (select from jsonb_each($12::jsonb) own
                                         where not (k.resource_ids ? own.key and k.resource_ids -> own.key <@ own.value))
                       limit $13::bigint) c) as "keys!"
           from usage u
           cross join lateral (
               select count(*) as total, count(*) filter (where is_published) as published
               from ((select is_published from pages where account_id = $1 and $2::uuid is null and $3::uuid[] is null
                      limit $13::bigint)
                     union all
                     (select is_published from pages
                      where account_id = $1 and ($2::uuid is not null or $3::uuid[] is not null)
                        and ($2::uuid is null or folder_id = $2) and ($3::uuid[] is null or id = any($3))
                      limit $13::bigint)) c) pc
           left join lateral (
               select id, folder_id, subdomain_id, slug, title, is_published, entry_template is not null as has_entry_template, created_at
               from pages
               where id in ((select id from pages where account_id = $1 and $2::uuid is null and $3::uuid[] is null
                             order by created_at desc, id desc limit 1)
                            union all
                            (select id from pages
                             where account_id = $1 and ($2::uuid is not null or $3::uuid[] is not null)
                               and ($2::uuid is null or folder_id = $2) and ($3::uuid[] is null or id = any($3))
                             order by created_at desc, id desc limit 1))) p on true
           cross join lateral (
               select count(*) as total,
                      coalesce(sum(c.submission_count
                                   + coalesce((select sum(t.submissions) from form_tallies t where t.form_id = c.id), 0)),
                               0)::bigint as submissions
               from ((select id, submission_count from forms
                      where account_id = $1 and $2::uuid is null and $4::uuid[] is null limit $13::bigint)
                     union all
                     (select id, submission_count from forms
                      where account_id = $1 and ($2::uuid is not null or $4::uuid[] is not null)
                        and ($2::uuid is null or folder_id = $2) and ($4::uuid[] is null or id = any($4))
                      limit $13::bigint)) c) fc
           left join lateral (
               select id, folder_id, name, fields, spam_proof_of_work, created_at,
                      (submission_count + coalesce((select sum(t.submissions) from form_tallies t where t.form_id = forms.id), 0)
                      )::bigint as submissions,
                      (closes_at is null or closes_at > $14)
                      and (max_submissions is null or submission_count < max_submissions) as is_open,
                      exists (select from webhooks w cross join wants(w.id, w.all_forms, w.events, forms.id, $11)
                              where w.account_id = $1 and w.is_active) as has_webhook,
                      exists (select from webhook_forms l where l.form_id = forms.id) as has_link,
                      exists (select from automations t where t.trigger_form_id = forms.id and t.is_enabled) as has_automation
               from forms
               where id in ((select id from forms where account_id = $1 and $2::uuid is null and $4::uuid[] is null
                             order by created_at desc, id desc limit 1)
                            union all
                            (select id from forms
                             where account_id = $1 and ($2::uuid is not null or $4::uuid[] is not null)
                               and ($2::uuid is null or folder_id = $2) and ($4::uuid[] is null or id = any($4))
                             order by created_at desc, id desc limit 1))) f on true
           cross join lateral (
               select count(*) filter (where is_active and failing_since is null) as active,
                      count(*) filter (where is_active and failing_since is not null) as failing,
                      count(*) filter (where not is_active) as disabled,
                      (array_agg(c.id order by created_at desc, id desc) filter (where is_active and is_covered))[1] as newest,
                      -- One for all forms would lose the others by a link, and a mapping may not fit the form.
                      (array_agg(c.id order by created_at desc, id desc)
                       filter (where is_active and is_covered and not all_forms and field_mapping is null
                                     and (events = '{}' or $11 = any(events) or '*' = any(events))))[1] as linkable,
                      (array_agg(c.id order by created_at desc, id desc)
                       filter (where is_covered and (is_active and failing_since is not null
                                                     or deactivated_reason is not null)))[1] as troubled
               from (select id, is_active, failing_since, deactivated_reason, created_at, all_forms, field_mapping, events,
                            -- One that also receives events of other forms is not the caller's to change.
                            $4::uuid[] is null
                            or not all_forms and not exists (select from webhook_forms l where l.webhook_id = webhooks.id
                                                                                            and l.form_id <> all($4))
                            as is_covered
                     from webhooks
                     where account_id = $1
                       and ($2::uuid is null or exists (select from things where kind = 'webhooks'
                                                                             and things.id = webhooks.id and folder_id = $2))
                       and ($5::uuid[] is null or id = any($5))
                     order by webhooks.created_at desc, webhooks.id desc limit $13::bigint) c) wc
           cross join lateral (
               select count(*) as total
               from (select from analytics_sites
                     where account_id = $1 and ($2::uuid is null or folder_id = $2) and ($6::uuid[] is null or id = any($6))
                     limit $13::bigint) c) sc
           left join lateral (
               select id, folder_id, name, subdomain_id from analytics_sites
               where account_id = $1 and ($2::uuid is null or folder_id = $2) and ($6::uuid[] is null or id = any($6))
               order by created_at desc, id desc limit 1) s on true
           cross join lateral (
               select count(*) filter (where is_enabled and not has_failed) as enabled,
                      count(*) filter (where is_enabled and has_failed) as failing,
                      count(*) filter (where not is_enabled) as disabled,
                      (array_agg(c.id order by created_at desc, id desc) filter (where is_enabled and has_failed))[1]
                      as failing_id
               from (select id, is_enabled, created_at,
                            exists (select from automation_statistics t
                                    where t.automation_id = automations.id and t.consecutive_failures > 0) as has_failed
                     from automations
                     where account_id = $1 and ($2::uuid is null or folder_id = $2) and ($7::uuid[] is null or id = any($7))
                     order by automations.created_at desc, automations.id desc limit $13::bigint) c) ac
           left join lateral (
               select id, folder_id, is_enabled,
                      exists (select from automation_runs r where r.automation_id = automations.id) as has_run
               from automations
               where account_id = $1 and ($2::uuid is null or folder_id = $2) and ($7::uuid[] is null or id = any($7))
               order by created_at desc, id desc limit 1) a on true
           cross join lateral (
               select count(*) as total
               from (select from subdomains where account_id = $1 and ($8::uuid[] is null or id = any($8))
                     limit $13::bigint) c) nc
           -- The account's first subdomain is the default, also for a caller that may not use it.
           left join lateral (
               select id, name, exists (select from analytics_sites t where t.subdomain_id = first.id) as has_site,
                      array(select t.slug from pages t where t.subdomain_id = first.id and t.slug = any($15::text[])) as taken
               from (select id, name from subdomains where account_id = $1 order by created_at, id limit 1) first
               where $8::uuid[] is null or id = any($8)) n on true
           cross join lateral (
               select count(*) filter (where status = 'active') as active,
                      count(*) filter (where status = 'pending') as pending,
                      count(*) filter (where status = 'failed') as failed,
                      (array_agg(c.id order by created_at, id) filter (where status <> 'active'))[1] as inactive_id
               from (select id, status, created_at from domains
                     -- Domains belong to the whole account.
                     where account_id = $1 and $2::uuid is null and ($9::uuid[] is null or id = any($9))
                     limit $13::bigint) c) dc
           cross join lateral (
               select count(*) as total, (array_agg(c.id order by created_at desc, id desc))[1] as newest
               from (select id, created_at from folders
                     where account_id = $1 and ($2::uuid is null or id = $2) and ($10::uuid[] is null or id = any($10))
                     order by folders.created_at desc, folders.id desc limit $13::bigint) c) oc
           where u.account_id = $1"#,
        account_id,
        seen.folder_id,
        pages.as_deref(),
        forms.as_deref(),
        webhooks.as_deref(),
        sites.as_deref(),
        automations.as_deref(),
        subdomains.as_deref(),
        domains.as_deref(),
        folders.as_deref(),
        SubmissionEvent::Created.as_str(),
        Json(all_ids) as _,
        bounds.count_max,
        now,
        &slugs,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Overview {
        usage: Usage {
            projects: row.projects,
            webhooks: row.webhooks,
            domains: row.domains,
            subdomains: row.subdomains,
            storage_bytes: row.storage_bytes,
        },
        pages: PageCounts { total: row.pages, published: row.published },
        page: row.page_id.map(|id| PageOverview {
            id,
            folder_id: row.page_folder_id,
            subdomain_id: row.page_subdomain_id.unwrap_or_default(),
            slug: row.page_slug.unwrap_or_default(),
            title: row.page_title.unwrap_or_default(),
            is_published: row.page_is_published == Some(true),
            has_entry_template: row.page_has_entry_template == Some(true),
            created_at: row.page_created_at.unwrap_or_default(),
        }),
        forms: row.forms,
        form: row.form_id.map(|id| FormOverview {
            id,
            folder_id: row.form_folder_id,
            name: row.form_name.unwrap_or_default(),
            fields: row.form_fields.map(|fields| fields.0.0).unwrap_or_default(),
            submissions: row.form_submissions.unwrap_or_default(),
            is_open: row.form_is_open == Some(true),
            proof_of_work: row.form_proof_of_work == Some(true),
            has_webhook: row.form_has_webhook == Some(true),
            has_link: row.form_has_link == Some(true),
            has_automation: row.form_has_automation == Some(true),
            created_at: row.form_created_at.unwrap_or_default(),
        }),
        submissions: row.submissions,
        webhooks: WebhookCounts {
            active: row.active_webhooks,
            failing: row.failing_webhooks,
            disabled: row.disabled_webhooks,
        },
        webhook: row.webhook_id.map(|id| WebhookOverview { id, has_deliveries: row.webhook_has_deliveries }),
        linkable_webhook_id: row.linkable_webhook_id,
        troubled_webhook_id: row.troubled_webhook_id,
        sites: row.sites,
        site: row.site_id.map(|id| SiteOverview {
            id,
            folder_id: row.site_folder_id,
            name: row.site_name.unwrap_or_default(),
            subdomain_id: row.site_subdomain_id,
        }),
        automations: AutomationCounts {
            enabled: row.enabled_automations,
            failing: row.failing_automations,
            disabled: row.disabled_automations,
        },
        automation: row.automation_id.map(|id| AutomationOverview {
            id,
            folder_id: row.automation_folder_id,
            is_enabled: row.automation_is_enabled == Some(true),
            has_run: row.automation_has_run == Some(true),
        }),
        failing_automation_id: row.failing_automation_id,
        subdomains: row.seen_subdomains,
        subdomain: row.subdomain_id.map(|id| SubdomainOverview {
            id,
            name: row.subdomain_name.unwrap_or_default(),
            has_site: row.subdomain_has_site == Some(true),
            taken_slugs: row.taken_slugs.unwrap_or_default(),
        }),
        domains: DomainCounts {
            active: row.active_domains,
            pending: row.pending_domains,
            failed: row.failed_domains,
        },
        inactive_domain_id: row.inactive_domain_id,
        folders: row.folders,
        folder_id: row.folder_id,
        keys: row.keys,
    }))
}
