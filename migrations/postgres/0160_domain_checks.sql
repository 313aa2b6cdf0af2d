-- Checks of custom domains: what their DNS holds, since when everything stands, and when to look again.

alter table domains
    -- What the last check found; null before the first one.
    add found                   jsonb,
    add error_code              text,
    -- When ownership and routing last stood. Set on the one row of a domain that holds it: the domain is served for a week
    -- after it, and another account that proves ownership takes it at once.
    add verified_at             timestamptz,
    add next_attempt_at         timestamptz not null default now(),
    -- Failed scheduled checks since the last success.
    add failed_checks           integer not null default 0 check (failed_checks >= 0),
    -- While a check is under way: when it counts as dead.
    add check_leased_until      timestamptz,
    -- When the owner was told that the records are gone; null again after the next success.
    add records_gone_mailed_at  timestamptz,
    -- The domain that requests are redirected to.
    add redirect_to             uuid references domains on delete set null check (redirect_to <> id),
    -- Strict-Transport-Security in seconds; null if it is not sent.
    add hsts_max_age            bigint check (hsts_max_age >= 0),
    add hsts_include_subdomains boolean not null default false;

update domains set verified_at = now() where dns_status = 'verified';

drop index domains_held;
create unique index domains_held on domains (domain) where verified_at is not null;
create index domains_domain on domains (domain);
create index domains_due on domains (next_attempt_at);
create index domains_redirect on domains (redirect_to) where redirect_to is not null;

alter table mails drop constraint mails_kind_check;
alter table mails add constraint mails_kind_check
    check (kind in ('help', 'question', 'submission', 'webhook_off', 'domain_records', 'certificate_expiring'));
