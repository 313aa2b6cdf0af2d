-- The request of each attempt at a delivery, and the mails of submissions that ended.
set local lock_timeout = '5s';

-- Both are null for attempts that sent nothing, and for those of earlier releases. The request itself is built again from the
-- delivery and its webhook; the digest tells whether it is still the same.
alter table delivery_attempts
    -- The time that the signature covers.
    add signed_at timestamptz,
    -- The beginning of the SHA-256 of URL, headers and body.
    add request_digest bytea;

-- Queued mails are in `mails`, which forgets them when they end.
create table submission_mails (
    submission_id  uuid primary key references submissions on delete cascade,
    account_id     uuid not null references accounts on delete cascade,
    -- `skipped`: no recipient had agreed, or the form's mails of the hour were used up.
    result         text not null check (result in ('sent', 'failed', 'skipped')),
    attempts       int not null,
    finished_at    timestamptz not null
);
create index submission_mails_account on submission_mails (account_id);
