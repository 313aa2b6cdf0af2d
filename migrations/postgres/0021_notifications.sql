-- Owners who are still to be mailed of a submission. A row goes when it is done, or given up.

create table notifications (
    submission_id  uuid primary key references submissions on delete cascade,
    account_id     uuid not null references accounts on delete cascade,
    -- While an attempt is under way: when it is taken for dead.
    due_at         timestamptz not null,
    attempts       int not null default 0
);
create index notifications_due on notifications (due_at);
create index notifications_account on notifications (account_id);
