-- Who may be mailed of an account's submissions, besides whoever owns it: asked once, by a mail with a link.

create table mail_recipients (
    id             uuid primary key,
    account_id     uuid not null references accounts on delete cascade,
    -- In small letters.
    address        text not null,
    -- SHA-256 of the link's token.
    token_hash     bytea not null unique,
    -- The link itself, for mails: it says yes, and later no.
    sealed_link    bytea not null,
    asked_at       timestamptz not null,
    -- What they said last. Whoever has said no is never asked again.
    has_agreed     boolean,
    -- Null once the question is mailed, or given up.
    mail_due_at    timestamptz,
    mail_attempts  int not null default 0,
    unique (account_id, address)
);
create index mail_recipients_address on mail_recipients (address, asked_at);
create index mail_recipients_due on mail_recipients (mail_due_at) where mail_due_at is not null;
create index mail_recipients_unanswered on mail_recipients (asked_at) where has_agreed is null;
