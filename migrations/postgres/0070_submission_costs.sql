-- How many deliveries led to this one: 1 for a submission that a visitor sent, one more for each delivery that posted to a
-- form's submit address. From 5 on, such a submission is refused.
alter table deliveries add depth smallint not null default 1;

-- Most submissions that one address may send to a form per minute and per day; 0 for no limit, null for the edge's setting.
alter table forms
    add spam_per_minute integer check (spam_per_minute >= 0),
    add spam_per_day    integer check (spam_per_day >= 0);

-- Submissions over that limit are counted before another one is stored.
create index submissions_rate_limited on submissions (form_id) where status = 'spam' and 'rate' = any (spam_reasons);
