-- What was changed in an account, and by whom.
set local lock_timeout = '5s';

create table activity (
    id             uuid primary key default gen_random_uuid(),
    account_id     uuid not null references accounts on delete cascade,
    at             timestamptz not null,
    -- When it is deleted, by the plan that the account had then.
    expires_at     timestamptz not null,
    actor_type     text not null check (actor_type in ('person', 'key', 'automation', 'operator')),
    -- The identity, key or automation. It may be gone.
    actor_id       uuid,
    actor_name     text not null,
    -- The operation of the API, such as `forms.update`, or the operator's command.
    operation      text not null,
    -- What was changed, with its name at that time; null for the account itself and for many things at once.
    resource_type  text,
    resource_id    uuid,
    resource_name  text,
    request_id     text
);
create index activity_account on activity (account_id, at, id);
create index activity_expiry on activity (expires_at);
