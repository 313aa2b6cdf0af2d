-- Deliveries at less cost, owners who are told when a webhook is switched off, and old secrets that go.

alter table deliveries
    -- They end with their webhook, which ends with its account: a second way there costs every delivery an index entry at
    -- each step of its life, and a look at the account's row.
    drop constraint deliveries_account_id_fkey,
    -- Room in each page for every row as an attempt begins it: bodies are long, and few rows share a page.
    set (fillfactor = 50);
drop index deliveries_account;

alter table webhooks
    -- When its owner is to be mailed that it was switched off by us. Null once mailed, or given up.
    add mail_due_at    timestamptz,
    add mail_attempts  int not null default 0;
create index webhooks_mail on webhooks (mail_due_at) where mail_due_at is not null;
create index webhooks_previous_secret on webhooks (previous_secret_until) where previous_secret_until is not null;
