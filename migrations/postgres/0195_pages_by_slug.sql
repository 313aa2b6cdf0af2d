-- no-transaction
-- Release 0.2: finds the pages of an account by their slug. A slug is taken once on each of its subdomains.
create index concurrently pages_account_slug on pages (account_id, slug);
