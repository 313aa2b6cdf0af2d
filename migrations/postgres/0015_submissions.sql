-- What a form can be told, and what is known of a submission.

alter table forms
    -- No two submissions agree on all of these fields.
    add unique_by           text[],
    add public_results      boolean not null default false,
    -- The page that gets an entry of each submission. No reference: when the page is gone, submissions say so
    -- (entry_note), and who takes one locks the form before the page, which a reference would do the other way round.
    add auto_entry_page_id  uuid,
    add spam_honeypot       boolean not null default true,
    add spam_min_seconds    integer not null default 2,
    add spam_proof_of_work  boolean not null default false,
    -- Who is mailed of each submission.
    add notify_email        text;

alter table submissions
    -- The owner's own name for it.
    add external_id    text,
    -- Why it is held to be spam.
    add spam_reasons   text[] not null default '{}',
    -- Why no entry was made of it, where one was wanted.
    add entry_note     text,
    -- SHA-256 of its answers to the form's unique_by, as they are compared. Null: it has no twin, and forbids none.
    add unique_digest  bytea,
    -- An older one has the same digest: both are from before unique_by asked. The elder forbids newer ones.
    add is_twin        boolean not null default false,
    -- Every text and number in it. A tsvector has its limits, so of the largest the beginning must do.
    add search         tsvector not null generated always as (
        case when octet_length(payload::text) <= 131072
             then jsonb_to_tsvector('simple', payload, '["string", "numeric"]')
             else to_tsvector('simple', left(payload::text, 50000)) end) stored;

create unique index submissions_external on submissions (form_id, external_id) where external_id is not null;
create unique index submissions_unique on submissions (form_id, unique_digest)
    where unique_digest is not null and not is_twin;
create index submissions_twins on submissions (form_id, unique_digest) where is_twin;

-- Over all forms: those few who search pay with a look at other forms' rows, rather than all who submit with a second
-- index. New words wait in a short list, so that no submission has to tidy away a long one.
create index submissions_search on submissions using gin (search) with (gin_pending_list_limit = 512);
