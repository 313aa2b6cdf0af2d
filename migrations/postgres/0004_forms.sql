-- Forms, their submissions, and the webhooks told of them.

create table forms (
    id                uuid primary key,
    account_id        uuid not null references accounts on delete cascade,
    name              text not null,
    fields            jsonb not null,
    success_message   text,
    submit_label      text,
    redirect_url      text,
    closes_at         timestamptz,
    max_submissions   bigint,
    submission_count  bigint not null default 0 check (submission_count >= 0),
    created_at        timestamptz not null,
    updated_at        timestamptz not null
);
create index forms_account on forms (account_id, created_at, id);

create table submissions (
    id          uuid primary key,
    account_id  uuid not null references accounts on delete cascade,
    form_id     uuid not null references forms on delete cascade,
    payload     jsonb not null,
    status      text not null default 'received' check (status in ('received', 'spam', 'archived')),
    created_at  timestamptz not null,
    updated_at  timestamptz not null
);
create index submissions_form on submissions (form_id, created_at, id);

create table webhooks (
    id             uuid primary key,
    account_id     uuid not null references accounts on delete cascade,
    -- Sealed: addresses of chat platforms are secrets themselves.
    sealed_url     bytea not null,
    events         text[] not null,
    description    text,
    field_mapping  jsonb,
    -- Told of every form of the account. Only a webhook created without forms is.
    all_forms      boolean not null,
    is_active      boolean not null default true,
    sealed_secret  bytea not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null
);
create index webhooks_account on webhooks (account_id, created_at, id);

create table webhook_forms (
    webhook_id  uuid not null references webhooks on delete cascade,
    form_id     uuid not null references forms on delete cascade,
    primary key (webhook_id, form_id)
);
create index webhook_forms_form on webhook_forms (form_id);

-- One event for one webhook. The id is the `webhook-id` the receiver sees, the same over all attempts.
create table deliveries (
    id               uuid primary key,
    account_id       uuid not null references accounts on delete cascade,
    webhook_id       uuid not null references webhooks on delete cascade,
    submission_id    uuid references submissions on delete cascade,
    event            text not null,
    payload          jsonb not null,
    state            text not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
    attempts         int not null default 0,
    next_attempt_at  timestamptz not null,
    -- While an attempt is under way nobody else may begin one.
    leased_until     timestamptz,
    created_at       timestamptz not null,
    finished_at      timestamptz
);
create index deliveries_due on deliveries (next_attempt_at) where state = 'pending';
create index deliveries_webhook on deliveries (webhook_id, created_at, id);
create index deliveries_submission on deliveries (submission_id);

create table delivery_attempts (
    delivery_id    uuid not null references deliveries on delete cascade,
    attempt        int not null,
    status_code    int,
    duration_ms    bigint not null,
    -- Stable word for what went wrong; null when the receiver answered 2xx.
    error_class    text,
    response_body  text,
    attempted_at   timestamptz not null,
    primary key (delivery_id, attempt)
);
