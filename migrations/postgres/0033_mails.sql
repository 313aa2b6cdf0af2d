-- All mails that are to be sent, in one place: they were taken up in the same way from four tables.

create table mails (
    -- What it says; `about` is the id of what it says that of.
    kind        text not null check (kind in ('help', 'question', 'submission', 'webhook_off')),
    about       uuid not null,
    account_id  uuid not null references accounts on delete cascade,
    -- While an attempt is under way: when it is taken for dead.
    due_at      timestamptz not null,
    attempts    int not null default 0,
    primary key (about, kind)
);
create index mails_due on mails (kind, due_at);
create index mails_account on mails (account_id);

insert into mails
    select 'submission', submission_id, account_id, due_at, attempts from notifications
    union all
    select 'help', id, account_id, mail_due_at, mail_attempts from help_requests where mail_due_at is not null
    union all
    select 'question', id, account_id, mail_due_at, mail_attempts from mail_recipients where mail_due_at is not null
    union all
    select 'webhook_off', id, account_id, mail_due_at, mail_attempts from webhooks where mail_due_at is not null;

drop table notifications;
alter table help_requests drop mail_due_at, drop mail_attempts;
alter table mail_recipients drop mail_due_at, drop mail_attempts;
alter table webhooks drop mail_due_at, drop mail_attempts;

-- How many mails a form has caused lately: nobody's mailbox is filled by those who answer it.
create table form_mails (
    form_id    uuid primary key references forms on delete cascade,
    -- Since when they are counted.
    since      timestamptz not null,
    mails      bigint not null,
    -- The submission whose mail was the last for now, and says so.
    filled_by  uuid
);
