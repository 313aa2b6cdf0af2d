-- What must happen after a commit: jobs to queue and signals to send. The job-runner relays due rows in
-- order of id and deletes them in the same transaction.

create table outbox (
    id           bigint generated always as identity primary key,
    kind         text not null check (kind in ('job', 'signal')),
    body         jsonb not null,
    -- W3C trace context of whoever wrote the row, so that one trace runs on through the job.
    traceparent  text,
    due_at       timestamptz not null,
    created_at   timestamptz not null
);
create index outbox_due on outbox (kind, due_at, id);
