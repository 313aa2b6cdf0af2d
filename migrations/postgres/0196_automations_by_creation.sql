-- no-transaction
-- Release 0.2: lists the automations of an account in the order of their creation.
create index concurrently automations_account on automations (account_id, created_at, id);
