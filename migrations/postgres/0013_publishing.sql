-- Publishing: when pages go live, what they were before, who looked, and the entries they show.

alter table pages
    -- Rendered once for each entry, where the page's HTML has its marker.
    add entry_template  text,
    -- Counted here, so that the limit can stand in the statement that passes it.
    add entry_count     integer not null default 0 check (entry_count >= 0),
    -- When it publishes itself; null once it has.
    add publish_at      timestamptz,
    -- SHA-256 over all that is its content; null for a page that was never written since there is one.
    add content_hash    bytea;
create index pages_publish_at on pages (publish_at) where publish_at is not null;

-- The texts of versions, each stored once per account however many versions share it.
create table page_contents (
    id          bigint generated always as identity primary key,
    account_id  uuid not null references accounts on delete cascade,
    -- SHA-256 of the body.
    hash        bytea not null,
    body        text not null,
    unique (account_id, hash)
);

-- What a page was: the newest row is what it is. Older ones than the last twenty are deleted as new ones come.
create table page_versions (
    id           uuid primary key default gen_random_uuid(),
    account_id   uuid not null references accounts on delete cascade,
    page_id      uuid not null references pages on delete cascade,
    number       integer not null,
    title        text not null,
    html_id      bigint not null references page_contents,
    css_id       bigint references page_contents,
    template_id  bigint references page_contents,
    metadata     jsonb not null,
    -- The deploy that wrote it, if one did.
    deploy_id    uuid,
    created_at   timestamptz not null,
    unique (page_id, number)
);
create index page_versions_account on page_versions (account_id);
create index page_versions_html on page_versions (html_id);
create index page_versions_css on page_versions (css_id) where css_id is not null;
create index page_versions_template on page_versions (template_id) where template_id is not null;
create index page_versions_deploy on page_versions (deploy_id) where deploy_id is not null;

-- Pages of before are their own first version.
insert into page_contents (account_id, hash, body)
select account_id, sha256(convert_to(body, 'UTF8')), body
from (select account_id, html as body from pages
      union select account_id, css from pages where css is not null) texts;
insert into page_versions (account_id, page_id, number, title, html_id, css_id, metadata, created_at)
select p.account_id, p.id, 1, p.title, h.id, c.id, p.metadata, p.updated_at
from pages p
join page_contents h on h.account_id = p.account_id and h.hash = sha256(convert_to(p.html, 'UTF8'))
left join page_contents c on c.account_id = p.account_id and c.hash = sha256(convert_to(p.css, 'UTF8'));

-- Written often and narrowly: half of each block stays free, so that updates stay in it.
create table page_views (
    page_id  uuid primary key references pages on delete cascade,
    views    bigint not null
) with (fillfactor = 50);

create table page_entries (
    id             uuid primary key,
    account_id     uuid not null references accounts on delete cascade,
    page_id        uuid not null references pages on delete cascade,
    data           jsonb not null,
    -- The submission it was made of, if it was; also after that is gone.
    submission_id  uuid,
    created_at     timestamptz not null
);
create index page_entries_page on page_entries (page_id, created_at, id);
create index page_entries_account on page_entries (account_id);
create index page_entries_submission on page_entries (submission_id) where submission_id is not null;

-- Entries of deleted pages. They refer to no page, subdomain or folder: those may be gone.
create table entry_archives (
    id              uuid primary key,
    account_id      uuid not null references accounts on delete cascade,
    page_id         uuid not null,
    slug            text not null,
    subdomain_id    uuid not null,
    -- Where the page lay: who was kept to its folder may restore it.
    folder_id       uuid,
    entry_template  text,
    deleted_by      text not null,
    created_at      timestamptz not null
);
create index entry_archives_account on entry_archives (account_id, created_at, id);
create index entry_archives_age on entry_archives (created_at);

create table archived_entries (
    archive_id     uuid not null references entry_archives on delete cascade,
    id             uuid not null,
    data           jsonb not null,
    submission_id  uuid,
    created_at     timestamptz not null,
    primary key (archive_id, id)
);
create index archived_entries_submission on archived_entries (submission_id) where submission_id is not null;
