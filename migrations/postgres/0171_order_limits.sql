-- Orders by what they count for: renewals wait for no count of orders, and first orders are counted by account too.

alter table acme_orders
    -- The account of the domain; null for hosts of the installation and for orders before this migration. The account's
    -- deletion deletes its orders: the authority's own answer is the limit then.
    add column account_id uuid references accounts on delete cascade,
    -- A renewal, or an order for a host of the installation: no count of orders includes or delays it.
    add column is_exempt boolean not null default false,
    -- Whether the authority refused it at once: it counts as a failure of its name, not as an order.
    add column is_rejected boolean not null default false;
create index acme_orders_account on acme_orders (account_id, created_at) where account_id is not null;

-- `certificates.failing_since` is the first failure, or delay by a limit, since the last success. A renewal that is overdue
-- without a failed attempt fails too.
drop index certificates_failing;
create index certificates_ending on certificates (not_after) where expiry_mailed_at is null;
