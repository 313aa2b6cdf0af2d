-- Automations: definitions, runs with their steps, and the submissions that are to start a run.

create table automation_definitions (
    account_id  uuid not null references accounts on delete cascade,
    -- SHA-256 of the definition. A version is stored once, and runs keep the version they began with.
    hash        bytea not null,
    -- Canonical JSON. Text, because jsonb would change the order of fields and so the hash.
    definition  text not null,
    created_at  timestamptz not null,
    primary key (account_id, hash)
);

create table automations (
    id               uuid primary key,
    account_id       uuid not null references accounts on delete cascade,
    folder_id        uuid references folders on delete set null,
    slug             text not null,
    name             text not null,
    description      text,
    is_enabled       boolean not null,
    definition_hash  bytea not null,
    env_names        text[] not null default '{}',
    -- The variables as a JSON object, encrypted. Null if there are none.
    sealed_env       bytea,
    -- What the key that last saved it was allowed to do. Checked again at each step of a run.
    scopes           text[] not null,
    scope_folder_id  uuid,
    resource_ids     jsonb not null default '{}',
    trigger_type     text not null check (trigger_type in ('form_submission', 'http', 'schedule')),
    trigger_form_id  uuid,
    -- When the schedule fires next. Null without a schedule, or while it is disabled.
    next_fire_at     timestamptz,
    created_at       timestamptz not null,
    updated_at       timestamptz not null,
    unique (account_id, slug),
    foreign key (account_id, definition_hash) references automation_definitions
);
create index automations_folder on automations (folder_id);
create index automations_form on automations (trigger_form_id) where is_enabled and trigger_form_id is not null;
create index automations_schedule on automations (next_fire_at) where next_fire_at is not null;
create index automations_definition on automations (account_id, definition_hash);

-- Beside the automation, because they change with each run.
create table automation_statistics (
    automation_id         uuid primary key references automations on delete cascade,
    runs                  bigint not null default 0,
    failures              bigint not null default 0,
    consecutive_failures  int not null default 0,
    last_run_at           timestamptz,
    last_error            text
) with (fillfactor = 50);

create table automation_runs (
    id                 uuid primary key,
    account_id         uuid not null,
    automation_id      uuid not null references automations on delete cascade,
    definition_hash    bytea not null,
    trigger_type       text not null check (trigger_type in ('form_submission', 'http', 'schedule', 'test')),
    -- What expressions read as `trigger`. json, because jsonb would change the order of fields.
    trigger            json not null,
    status             text not null
                       check (status in ('queued', 'running', 'waiting', 'success', 'error', 'cancelled', 'skipped')),
    is_test            boolean not null default false,
    depth              smallint not null default 0,
    -- When a worker may claim it: of a running one, when its lease expires. Null once it has ended.
    due_at             timestamptz,
    -- The claim whose worker may write. Cancelling and a later claim remove it.
    lease_id           uuid,
    -- Claims since the last stored progress.
    claims             int not null default 0,
    concurrency_limit  int,
    concurrency_key    text,
    -- Number of the wait that the run's link ends.
    resume_number      int,
    -- What the link was called with.
    resumed            json,
    -- The answer of a `respond` step: {status, headers, body}.
    response           json,
    error              text,
    error_path         text,
    message            text,
    submission_id      uuid,
    -- The submission whose answers `trigger` holds. Replays have it too; they have no `submission_id`.
    source_submission_id  uuid,
    -- The time of the schedule that it is the run of.
    fire_at            timestamptz,
    traceparent        text,
    created_at         timestamptz not null,
    started_at         timestamptz,
    finished_at        timestamptz
)
-- Vacuumed by the number of changes, not by a share of all runs: the indexes of due runs must stay small.
with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
create index automation_runs_due on automation_runs (account_id, due_at)
    where due_at is not null and (concurrency_limit is null or status <> 'queued');
-- Queued runs that a concurrency limit may hold back, the oldest of each key first.
create index automation_runs_limited on automation_runs (account_id, automation_id, coalesce(concurrency_key, ''), id)
    where concurrency_limit is not null and status = 'queued';
create index automation_runs_active on automation_runs (automation_id, coalesce(concurrency_key, ''))
    where concurrency_limit is not null and status in ('running', 'waiting');
create index automation_runs_log on automation_runs (automation_id, id);
-- Logs of one status, and durations. Runs that are to end soon are left out, because each of their changes would cost
-- an insertion.
create index automation_runs_status on automation_runs (automation_id, status, id)
    where status not in ('queued', 'running');
-- The retention.
create index automation_runs_ended on automation_runs (account_id, finished_at) where finished_at is not null;
-- One run for each submission, and for each time of a schedule.
create unique index automation_runs_submission on automation_runs (submission_id, automation_id)
    where submission_id is not null;
-- Replays, which are deleted with the submission.
create index automation_runs_source on automation_runs (source_submission_id)
    where source_submission_id is not null and submission_id is null;
create unique index automation_runs_fire on automation_runs (automation_id, fire_at) where fire_at is not null;
create index automation_runs_definition on automation_runs (account_id, definition_hash) where due_at is not null;

create table automation_steps (
    run_id         uuid not null references automation_runs on delete cascade,
    -- Path in the run, such as `each[3].notify`.
    path           text not null,
    position       int not null,
    step_id        text not null,
    type           text not null,
    status         text not null check (status in ('success', 'error', 'skipped', 'waiting')),
    -- Both without values of variables, and cut at 64 KB.
    input          json not null,
    output         json not null,
    -- The whole output, encrypted, if `output` is not it. Null once the run has ended.
    sealed_output  bytea,
    -- Whether `output` was masked or cut: a replay can't go on from it.
    is_partial     boolean not null default false,
    error          text,
    attempts       int not null,
    started_at     timestamptz not null,
    finished_at    timestamptz not null,
    primary key (run_id, path)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);

-- Submissions that are to start a run. Written with the submission, deleted with the insertion of the run.
create table automation_triggers (
    id             bigint generated always as identity primary key,
    account_id     uuid not null,
    automation_id  uuid not null references automations on delete cascade,
    submission_id  uuid not null references submissions on delete cascade,
    depth          smallint not null,
    traceparent    text,
    created_at     timestamptz not null
);
-- Accounts take turns.
create index automation_triggers_account on automation_triggers (account_id, id);
create index automation_triggers_automation on automation_triggers (automation_id);
create index automation_triggers_submission on automation_triggers (submission_id);

alter table mails
    drop constraint mails_kind_check,
    add constraint mails_kind_check
        check (kind in ('help', 'question', 'submission', 'webhook_off', 'domain_records', 'certificate_expiring',
                        'automation_failed'));

create or replace view things as
    select 'pages' as kind, id, account_id, folder_id, title as name, created_at from pages
    union all
    select 'forms', id, account_id, folder_id, name, created_at from forms
    union all
    select 'analytics', id, account_id, folder_id, name, created_at from analytics_sites
    union all
    select 'automations', id, account_id, folder_id, name, created_at from automations
    union all
    select 'webhooks', id, account_id,
           (select case when not all_forms and count(*) = count(f.folder_id) and count(distinct f.folder_id) = 1
                        then min(f.folder_id::text)::uuid end
            from webhook_forms l join forms f on f.id = l.form_id where l.webhook_id = webhooks.id),
           coalesce(description, ''), created_at
    from webhooks
    union all
    select 'folders', id, account_id, id, name, created_at from folders
    union all
    select 'subdomains', id, account_id, null, name, created_at from subdomains
    union all
    select 'domains', id, account_id, null, domain, created_at from domains
    union all
    select 'keys', id, account_id, folder_id, label, created_at from api_keys;
