-- How many submissions a form has that nothing limits. One counter would be one queue: each submission would wait until
-- the one before is on disk. Each connection has a row of its own instead; forms.submission_count holds the rest.
--
-- While a form has a limit, its submissions are counted in submission_count, and nothing changes here.
create table form_tallies (
    form_id      uuid not null references forms on delete cascade,
    slot         integer not null,
    submissions  bigint not null,
    primary key (form_id, slot)
) with (fillfactor = 50);
