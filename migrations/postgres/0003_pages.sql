-- Pages, and the addresses `/p/<slug>` of the base host.

create table pages (
    id            uuid primary key,
    account_id    uuid not null references accounts on delete cascade,
    subdomain_id  uuid not null references subdomains on delete cascade,
    slug          text not null,
    title         text not null,
    html          text not null,
    css           text,
    metadata      jsonb not null default '{}',
    is_published  boolean not null default true,
    created_at    timestamptz not null,
    updated_at    timestamptz not null,
    unique (subdomain_id, slug)
);
create index pages_account on pages (account_id, created_at, id);

-- The first page of a slug holds the bare address. It is never handed on: after the page is gone the
-- row stays with a null page, and the address is a 404.
create table short_addresses (
    slug     text primary key,
    page_id  uuid references pages on delete set null
);
create index short_addresses_page on short_addresses (page_id);
