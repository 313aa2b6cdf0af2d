-- What is counted by the calendar month (UTC). A month without a row has used nothing.

create table monthly_usage (
    account_id       uuid not null references accounts on delete cascade,
    -- Its first day.
    month            date not null check (extract(day from month) = 1),
    -- Taken, and leased by collectors that have not given the rest back.
    events           bigint not null default 0 check (events >= 0),
    automation_runs  bigint not null default 0 check (automation_runs >= 0),
    primary key (account_id, month)
);
